// Records the events of real runs of `sluice agent`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { kDemo } from './agent.mjs';
import { delta, kStop, start_api, words } from './remote_api.mjs';
import { clean_environment, program, root } from './server.mjs';

const call_piece = (index, id, name, piece) =>
  delta({
    tool_calls: [{ index, id, type: 'function', function: { name, arguments: piece } }],
  });
const more_of_call = (index, piece) =>
  delta({ tool_calls: [{ index, function: { arguments: piece } }] });

// The events of a run. It is interrupted, as by Ctrl-C, when `ends_at` is true for one of them.
async function record(args, { code, ends_at = () => false }) {
  const child = spawn(program, ['agent', '--json', ...args], {
    cwd: root,
    env: clean_environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const events = [];
  let rest = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      events.push(JSON.parse(line));
      if (ends_at(events.at(-1))) child.kill('SIGINT');
    }
  }
  const [status] = await closed;
  assert.equal(status, code, stderr);
  assert.equal(events.at(-1)?.type, 'sluice:run.done');
  return events;
}

// `answers` are the model's, in their order: functions that write a reply.
async function scripted(t, answers, args = [], how = {}) {
  const { url } = await start_api(t, (_, reply) => answers.shift()(reply));
  return record(['--model', url, ...args, 'Go on'], { code: 0, ...how });
}

// The events of a run of each kind, by name. The test `t`, or anything else with an `after`, stops
// what the runs need.
export async function record_runs(t) {
  return {
    'the built-in model comments on a tool that runs': await record([kDemo], { code: 0 }),
    'reasoning, text and two calls': await scripted(t, [
      (reply) =>
        reply.done(
          delta({ reasoning_content: 'Two ' }),
          delta({ reasoning_content: 'things.' }),
          ...words('Grüß ', 'dich 🌊 "\\"\n'),
          call_piece(0, 'one', 'add', '{"a":'),
          more_of_call(0, '2,"b":3}'),
          call_piece(1, 'two', 'stream_numbers', '{"count"'),
          more_of_call(1, ':2}'),
          delta({}, 'tool_calls'),
        ),
      (reply) => reply.done(...words('Both ', 'are done.'), ...kStop),
    ], ['--policy', 'pass']),
    'a tool interrupts the model': await scripted(t, [
      (reply) =>
        reply.done(
          call_piece(0, 'one', 'stream_numbers', '{"count":2}'),
          delta({}, 'tool_calls'),
        ),
      (reply) => reply.send(...words('So far ', 'there is')), // and nothing more
      (reply) => reply.done(...words('It is over.'), ...kStop),
      (reply) => reply.done(...words('It is over.'), ...kStop),
    ], ['--policy', 'interrupt']),
    'an answer that is too long': await scripted(
      t,
      [(reply) => reply.done(...words('Once upon '), delta({}, 'length'))],
      [],
      { code: 1 },
    ),
    'a cancelled answer': await scripted(
      t,
      [(reply) => reply.send(...words('Half a '), call_piece(0, 'one', 'add', '{"a":'))],
      [],
      { code: 130, ends_at: ({ type }) => type === 'response.function_call_arguments.delta' },
    ),
    'a model that breaks down': await scripted(
      t,
      [
        (reply) => {
          reply.send(...words('I feel '));
          reply.done({ error: { message: 'out of memory', code: 500 } });
        },
      ],
      [],
      { code: 1 },
    ),
  };
}

// The responses of a run: the events of each answer of its model.
export function responses_of(events) {
  const responses = [];
  for (const event of events.filter(({ type }) => !type.startsWith('sluice:'))) {
    if (event.type === 'response.created') responses.push([]);
    responses.at(-1).push(event);
  }
  return responses;
}
