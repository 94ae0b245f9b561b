// An agent that is killed, or ends, in the middle of a streamed call over Streamable HTTP, and another
// process that goes on with its snapshot.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { of_type } from '../lib/agent.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { program, run_program, start_example, temporary_folder } from '../lib/server.mjs';

const command = path.join(path.dirname(program), 'sluice_agent_in_parts');
const kSteps = 25;
const numbers = Array.from({ length: kSteps }, (_, index) => index + 1);

const relay = await start_example({ after }, 'relay');
const foreign = await start_foreign({ after }, foreign_command('typescript_v1_events.mjs'));
const servers = {
  'Sluice': {
    url: relay.mcp_url,
    call: ['stream_numbers', { count: kSteps }],
    output: `${numbers.map((number) => 2 * number).join(' ')}.`,
    result: /^2 4 .* 50\.$/,
  },
  'the TypeScript SDK': {
    url: `${foreign.base}/mcp`,
    call: ['steps', { to: kSteps }],
    output: `${numbers.join(' ')} `,
    result: /^made 25 steps$/,
    calls: () => foreign.output.match(/steps was called/g)?.length ?? 0,
  },
};

async function events_of(...words) {
  const { code, signal, stdout, stderr } = await run_program(words, { command });
  const events = stdout.trim().split('\n').map((line) => JSON.parse(line));
  return { code, signal, stderr, events };
}

describe('calls that another process goes on with', () => {
  for (const [name, { url, call, output, result, calls }] of Object.entries(servers)) {
    for (const how of ['killed', 'ended']) {
      test(`at ${name}, if the first one is ${how}`, async (t) => {
        const before = calls?.();
        const file = path.join(temporary_folder(t), 'snapshot.json');
        const [tool, given] = call;
        const first = await events_of('begin', url, tool, JSON.stringify(given), file, '3', how);
        assert.equal(how === 'killed' ? first.signal : first.code, how === 'killed' ? 'SIGKILL' : 0);
        const second = await events_of('go-on', url, file);
        assert.equal(second.code, 0, second.stderr);

        const chunks = [first, second].flatMap(({ events }) =>
          of_type(events, 'sluice:tool.output.delta'),
        );
        assert.equal(chunks.map(({ delta }) => delta).join(''), output, 'each chunk comes once');
        let next = 0;
        for (const chunk of chunks) {
          assert.equal(chunk.first, next);
          next = chunk.last + 1;
        }
        assert.deepEqual(of_type(first.events, 'sluice:tool.output.done'), []);
        const done = of_type(second.events, 'sluice:tool.output.done');
        assert.equal(done.length, 1);
        assert.equal(done[0].status, 'completed');
        assert.match(done[0].text, result);
        assert.equal(second.events.at(-1).output_text, 'It is done.');
        if (calls) assert.equal(calls() - before, 1, 'the tool ran once');
      });
    }
  }
});
