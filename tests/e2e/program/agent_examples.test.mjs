// Runs the demos of examples/agents. Their models are scripts, so that they always end the same.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { block_at } from '../lib/documentation.mjs';
import { delta, kStop, start_api, words } from '../lib/remote_api.mjs';
import { example, run_program } from '../lib/server.mjs';

const run_demo = (name, args = [], options = {}) =>
  run_program(args, { command: example(name), ...options });

// What a demo prints, in lines, if it ends well. The documentation shows it in its block `number`. Each
// lane is as it is shown there; how the lanes are interleaved depends on time.
async function run_as_documented(name, number) {
  const [command, ...shown] = block_at('docs/agent.md', 'console', number).split('\n');
  assert.equal(command, `$ build/release/bin/example-${name}`);
  const { code, stdout, stderr } = await run_demo(name);
  assert.equal(code, 0, stderr);
  const lines = stdout.split('\n');
  for (const is_of_tool of [true, false]) {
    const lane = (all) => all.filter((line) => line.startsWith('  | ') === is_of_tool);
    assert.deepEqual(lane(lines), lane(shown));
  }
  assert.match(lines[0], /^The model is a script/);
  return lines;
}

// The indices of lines, one behind the other.
function assert_order(lines, ...expected) {
  const found = expected.map((line) => lines.indexOf(line));
  assert.ok(!found.includes(-1), `${expected}\n${lines.join('\n')}`);
  assert.deepEqual(found, found.toSorted((a, b) => a - b), lines.join('\n'));
}

describe('the demos of agents', { concurrency: true }, () => {
  test('a build is stopped at its first error', async () => {
    const lines = await run_as_documented('stopped-build', 2);
    assert_order(
      lines,
      "  | parser.cpp:88: warning: unused variable 'depth'",
      "  | printer.cpp:41: error: 'Tree' has no member 'childs'",
      '[broken off]',
      '  | cancelled',
      "I stopped the build. Its first error is in printer.cpp: a Tree has no 'childs'.",
      // The program waits for the handler before it says so.
      '4 of 6 files were begun',
    );
    assert.ok(!lines.some((line) => line.includes('main.cpp')));
  });

  test('a search is refined from its first hits', async () => {
    const lines = await run_as_documented('refined-search', 3);
    assert_order(
      lines,
      '  | search {"words":"jaguar"}',
      '  | what a used jaguar costs, and what it eats',
      'These are cars, and I look for the cat.',
      '  | cancelled',
      '  | search {"words":"jaguar hunts"}',
      '  | the jaguar, a cat that swims: it hunts caimans',
      '  | completed',
      'The jaguar hunts caimans and capybaras, says the archive:',
    );
    // The first search would have found it.
    assert.ok(!lines.includes('  | jaguar builds its last engine'));
  });

  test('an alarm is said while the sensor still measures', async () => {
    const lines = await run_as_documented('watched-sensor', 4);
    assert_order(
      lines,
      '  | 31.2 degrees',
      'Alarm: the server room has 31.2 degrees!',
      '  | 27.5 degrees',
      '  | completed',
      'The highest temperature was 34.6 degrees.',
    );
  });

  test('a model at a URL is asked instead of the script', async (t) => {
    const call = (name, given) => {
      const made = { name, arguments: JSON.stringify(given) };
      const calls = [{ index: 0, id: `id_${name}`, type: 'function', function: made }];
      return [delta({ tool_calls: calls }), delta({}, 'tool_calls')];
    };
    const api = await start_api(t, ({ messages }, reply) => {
      const last = messages.at(-1).content;
      if (last.startsWith('Build the program')) return reply.done(...call('build', {}));
      if (last.includes('cancelled')) return reply.done(...words('Stopped by me.'), ...kStop);
      if (!last.includes('error:')) return reply.done(...words('[[pass]]'), ...kStop);
      return reply.done(...call('tool_cancel', { call_id: 'id_build' }));
    });
    const { code, stdout, stderr } = await run_demo('stopped-build', ['--model', `${api.url}#small`]);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stdout, /script|\[5\/6\]/);
    assert.match(stdout, /\| cancelled\nStopped by me\.\ncompleted\n4 of 6 files were begun\n$/);
    const [{ model, tools }] = api.asked;
    assert.equal(model, 'small');
    const names = tools.map(({ function: { name } }) => name);
    assert.deepEqual(names, ['build', 'tool_status', 'tool_cancel']);
  });

  test('a key is not sent without TLS, and wrong words are explained', async (t) => {
    const key = 'a-key-of-a-model';
    const api = await start_api(t, () => assert.fail('the key was sent'), { key });
    const env = { SLUICE_MODEL_KEY: key };
    const refused = await run_demo('watched-sensor', ['--model', api.url], { env });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Incorrect API key/);
    for (const args of [['--modell', api.url], ['--model'], ['--model', api.url, 'more']]) {
      const { code, stderr } = await run_demo('watched-sensor', args);
      assert.equal(code, 2);
      assert.match(stderr, /^usage: .*example-watched-sensor \[--model URL\[#NAME\]\]\n/);
    }
  });
});
