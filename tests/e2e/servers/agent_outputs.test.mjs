// `sluice agent` with servers whose tools write in each form, are slow, or end in the middle.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import {
  check_history,
  check_stream,
  events_of,
  of_type,
  output_of,
  scripted_model,
} from '../lib/agent.mjs';
import { calling_model } from '../lib/calling_model.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { clean_environment, program, run_program, temporary_folder } from '../lib/server.mjs';

const kScript = 'outputs.mjs';

// How `sluice agent` reaches a server of a kind: words before the prompt, and after it.
async function reach(t, kind, era) {
  const command = foreign_command(kScript, kind, era);
  if (kind === 'stdio') return { first: [], last: ['--', ...command] };
  return { first: ['--server', `${(await start_foreign(t, command)).base}/mcp`], last: [] };
}

async function run_with(model, { first, last }, ...options) {
  const words = ['--policy', 'pass', '--model', model.url, ...options];
  const { code, events, stderr } = await events_of([...words, ...first, 'Go on', ...last]);
  assert.equal(code, 0, stderr);
  check_stream(events);
  model.asked.forEach(check_history);
  return events;
}

// What each call wrote, and its result.
const outcomes = (events) =>
  of_type(events, 'sluice:tool.output.done').map(({ call_id, status, text }) => [
    status,
    output_of(events, call_id),
    text,
  ]);

// A model that makes these calls, one after the other.
const patient_model = (t, ...tools) =>
  scripted_model(t, (messages, turn) =>
    turn > tools.length ? { text: 'Done.' } : { calls: [{ name: tools[turn - 1], arguments: {} }] },
  );

// A folder with servers of these names for `sluice`, each {kind, era} and what else is in its entry.
async function named_servers(t, servers) {
  const folder = temporary_folder(t);
  const mcpServers = {};
  for (const [name, { kind, era, ...more }] of Object.entries(servers)) {
    const [command, ...args] = foreign_command(kScript, kind, era);
    const place =
      kind === 'stdio'
        ? { command, args }
        : { url: `${(await start_foreign(t, [command, ...args])).base}/mcp` };
    mcpServers[name] = { ...place, ...more };
  }
  writeFileSync(path.join(folder, '.mcp.json'), JSON.stringify({ mcpServers }));
  return folder;
}

const kEnds = {
  stdio: /the server's process is over: it has ended with code 3$/,
  http: /(closed the connection early|Connection refused|reset by peer)$/,
};

const kWays = ['stdio', 'http'].flatMap((kind) => [
  [kind, 'modern'],
  [kind, 'legacy'],
]);

describe('outputs', { concurrency: 2 }, () => {
  for (const [kind, era] of kWays) {
    describe(`over ${kind}, ${era}`, () => {
      test('log messages of both forms are output, and links are shown', async (t) => {
        const model = await patient_model(t, 'flat', 'nested', 'link');
        const events = await run_with(model, await reach(t, kind, era));
        assert.deepEqual(outcomes(events), [
          ['completed', 'one two', 'flat'],
          ['completed', 'one two three[a link: note://one]', 'nested'],
          ['completed', '', 'see\n[a link: note://one]'],
        ]);
        const { result } = of_type(events, 'sluice:tool.output.done').at(-1);
        assert.equal(result.content.at(-1).uri, 'note://one');
        const shown = model.asked.at(-1).messages.at(-1).content;
        assert.equal(shown, 'see\n[a link: note://one]');
      });

      test('nothing is shown of what comes after a result', async (t) => {
        const way = await reach(t, kind, era);
        // The second run has the same server, if that is one that listens.
        for (let round = 0; round < 2; ++round) {
          const model = await patient_model(t, 'late', 'next');
          const events = await run_with(model, way);
          assert.deepEqual(outcomes(events), [
            ['completed', 'in time', 'late'],
            ['completed', 'next', 'next'],
          ]);
          assert.doesNotMatch(JSON.stringify([events, model.asked]), /TOO LATE/);
        }
      });

      test('a server that dies in a call takes nothing else with it', async (t) => {
        const cwd = await named_servers(t, {
          one: { kind: 'stdio', era: 'modern' },
          two: { kind, era },
        });
        const until = path.join(cwd, 'go');
        // Both servers have a tool of this name.
        const model = await calling_model(t, ['work', { until }], ['two_work', { dies: true }]);
        const words = ['--policy', 'pass', '--model', model.url, '--server', 'one', '--server', 'two'];
        const child = spawn(program, ['agent', '--json', ...words, 'Go on'], {
          cwd,
          env: clean_environment(),
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        t.after(() => child.kill('SIGKILL'));
        const exited = once(child, 'exit');
        const events = [];
        for await (const line of createInterface({ input: child.stdout })) {
          events.push(JSON.parse(line));
          // The other call writes and ends only once the server is dead.
          if (events.at(-1).type === 'sluice:tool.output.done') writeFileSync(until, '');
        }
        assert.deepEqual(await exited, [0, null]);
        check_stream(events);
        model.asked.forEach(check_history);
        const names = model.asked[0].tools.map((tool) => tool.function.name);
        assert.equal(names.filter((name) => name.includes('work')).join(), 'work,two_work');
        const [dead, alive] = outcomes(events);
        // Its tool only reads, so it does not matter whether the call was carried out.
        assert.deepEqual(dead.slice(0, 2), ['failed', 'one ']);
        assert.match(dead[2], /^The tool failed: \S/);
        assert.match(dead[2], kEnds[kind]);
        assert.deepEqual(alive, ['completed', 'one two', 'worked']);
        // The model has both, in the order of its calls.
        const told = model.asked[1].messages.filter(({ role }) => role === 'tool');
        assert.deepEqual(told.map(({ content }) => content), [alive[2], dead[2]]);
      });
    });
  }
});

test('a tool may be silent for longer than its server may be otherwise', async (t) => {
  const cwd = await named_servers(t, { slow: { kind: 'stdio', era: 'legacy', timeout: 2000 } });
  const given_up = await run_program(['call', 'slow', 'silent', 'ms:=4000'], { cwd });
  assert.equal(given_up.code, 1);
  assert.match(given_up.stderr, /the server was silent too long/);
  const model = await calling_model(t, ['silent', { ms: 4000 }]);
  const words = ['--model', model.url, '--server', 'slow', 'Go on'];
  const { code, events, stderr } = await events_of(words, { cwd });
  assert.equal(code, 0, stderr);
  assert.deepEqual(outcomes(events), [['completed', '', 'it took its time']]);
});
