// `sluice agent` on a terminal: approvals and questions of tools are asked in place, one at a time.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { calling_model } from '../lib/calling_model.mjs';
import { delta, kStop, start_api, words } from '../lib/remote_api.mjs';
import { program, run_program, start_example, temporary_folder } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';

const agent = (t, model, { mcp_url }, ...more) =>
  new Terminal(t, [
    ...[program, 'agent', '--model', model.url, '--server', mcp_url, '--policy', 'pass'],
    ...more,
    'Do it',
  ]);

const asks = (seen) => seen.includes('It may change something. [y/N]');

// What a model says that makes calls: [id, name, arguments].
const calls = (...made) =>
  delta({
    tool_calls: made.map(([id, name, given], index) => ({
      index,
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(given) },
    })),
  });

test('a call is made if the user says so', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  for (const [answer, result] of [['y', '{"sum":6}'], ['n', 'The user rejected this call']]) {
    const model = await calling_model(t, ['count', { to: 3 }]);
    const terminal = agent(t, model, server);
    const seen = await terminal.until(asks, 'it asks');
    assert.match(seen, /Call count with \{"to":3\}\?/);
    terminal.type(`${answer}\n`);
    assert.equal(await terminal.exit_code(), 0, terminal.seen);
    assert.ok(terminal.seen.includes(`(${result}`), terminal.seen);
  }
});

test('two calls are asked for one after the other', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const model = await calling_model(t, ['count', { to: 1 }], ['count', { to: 2 }]);
  const terminal = agent(t, model, server);
  const first = await terminal.until(asks, 'it asks for the first');
  assert.ok(!first.includes('{"to":2}?'), first);
  const from = terminal.seen.length;
  terminal.type('n\n');
  await terminal.until((seen) => seen.includes('{"to":2}?') && asks(seen), 'the second', { from });
  terminal.type('y\n');
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
  assert.match(terminal.seen, /\(The user rejected this call\) \(\{"sum":3\}/);
});

test('an interrupt where it asks for a call ends the run', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  for (let round = 0; round < 3; ++round) {
    const model = await calling_model(t, ['count', { to: 3 }]);
    const terminal = agent(t, model, server);
    await terminal.until(asks, 'it asks');
    terminal.interrupt();
    assert.equal(await terminal.exit_code(), 130, terminal.seen);
    assert.equal(model.asked.length, 1);
  }
});

test('an interrupt at the second of three calls asks for no third', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const model = await calling_model(t, ...[1, 2, 3].map((to) => ['count', { to }]));
  const terminal = agent(t, model, server);
  await terminal.until(asks, 'it asks for the first');
  const from = terminal.seen.length;
  terminal.type('y\n');
  await terminal.until((seen) => seen.includes('{"to":2}?') && asks(seen), 'the second', { from });
  terminal.interrupt();
  assert.equal(await terminal.exit_code(), 130, terminal.seen);
  assert.ok(!terminal.seen.includes('{"to":3}?'), terminal.seen);
});

test('a run whose time is over while it asks withdraws the question and ends', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const model = await calling_model(t, ['count', { to: 3 }]);
  const terminal = agent(t, model, server, '--max-time', '3s');
  assert.equal(await terminal.exit_code(), 1, terminal.seen);
  assert.match(terminal.seen, /The question was withdrawn/);
  assert.match(terminal.seen, /\(The run's time is over\b/);
});

test('what tools write is shown while it asks for a call', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const relay = await start_example(t, 'relay');
  const model = await calling_model(t, ['stream_numbers', { count: 4 }], ['count', { to: 3 }]);
  const terminal = agent(t, model, server, '--server', relay.mcp_url);
  await terminal.until(asks, 'it asks');
  await terminal.until((seen) => seen.includes('| completed'), 'the other call has ended');
  const asked = terminal.seen.match(/Call count/g).length;
  await terminal.until((seen) => seen.match(/Call count/g).length > asked, 'it asks once more');
  terminal.type('y\n');
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
  assert.ok(terminal.seen.includes('({"sum":6})'), terminal.seen);
});

test('a question that is asked once more begins a line, and names the server', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const relay = await start_example(t, 'relay');
  let go_on;
  const is_asked = new Promise((resolve) => (go_on = resolve));
  let turn = 0;
  const model = await start_api(t, async (_, reply) => {
    if (++turn === 1) {
      const both = calls(['s', 'stream_numbers', { count: 2 }], ['c', 'count', { to: 3 }]);
      return reply.done(both, delta({}, 'tool_calls'));
    }
    if (turn > 2) return reply.done(...words('Well.'), ...kStop);
    reply.send(...words('Let me '));
    await is_asked;
    reply.done(...words('think.'), ...kStop);
  });
  const terminal = agent(t, model, server, '--server', relay.mcp_url, '--policy', 'chunk');
  await terminal.until((seen) => seen.includes('Let me '), 'it begins to speak');
  const from = terminal.seen.indexOf('Let me ');
  const seen = await terminal.until((text) => text.includes('[y/N]'), 'it asks once more', { from });
  const { host } = new URL(server.mcp_url);
  assert.ok(seen.slice(seen.indexOf('Let me ')).includes(`\nCall count of ${host} with`), seen);
  assert.ok(!seen.includes('Let me Call'), seen);
  go_on();
  await terminal.until((text) => text.includes('think.'), 'it goes on', { from });
  terminal.type('n\n');
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
});

test('a question for a call that the model cancels is withdrawn', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const relay = await start_example(t, 'relay');
  let go_on;
  const is_shown = new Promise((resolve) => (go_on = resolve));
  const model = await start_api(t, async ({ messages }, reply) => {
    const has = (text) => JSON.stringify(messages).includes(text);
    if (has('c is cancelled')) return reply.done(...words('Never mind.'), ...kStop);
    const end = delta({}, 'tool_calls');
    if (!has('so_far')) {
      return reply.done(calls(['s', 'stream_numbers', { count: 3 }], ['c', 'count', { to: 3 }]), end);
    }
    await is_shown;
    return reply.done(calls(['x', 'tool_cancel', { call_id: 'c' }]), end);
  });
  const terminal = agent(t, model, server, '--server', relay.mcp_url, '--policy', 'chunk');
  await terminal.until(asks, 'it asks');
  go_on();
  await terminal.until((seen) => seen.includes('The question was withdrawn'), 'it is withdrawn');
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
  assert.ok(terminal.seen.includes('Never mind.'), terminal.seen);
  assert.ok(!terminal.seen.includes('too late'), terminal.seen);
});

test('a question of a tool is asked in place', async (t) => {
  const server = await start_example(t, 'elicitation');
  const model = await calling_model(t, ['book_table', { guests: 2 }]);
  const terminal = agent(t, model, server, '--yes');
  await terminal.until((seen) => seen.includes('One more thing about your table'), 'it asks');
  await terminal.until((seen) => seen.includes('On which name?'), 'it asks for the name');
  terminal.type('Mira\n');
  await terminal.until((seen) => seen.includes('Outside?'), 'it asks for the place');
  terminal.type('n\n');
  await terminal.until((seen) => seen.includes('Send {"name":"Mira"'), 'it asks whether to send it');
  terminal.type('y\n');
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
  assert.match(terminal.seen, /A table for 2 is booked for Mira\./);
});

test('tools have a lane in colour beside that of the model', async (t) => {
  const server = await start_example(t, 'streaming-tool');
  const run = async ({ NO_COLOR, TERM = 'xterm' }, is_piped = false) => {
    const model = await calling_model(t, ['count', { to: 3 }]);
    const words = [
      ...['agent', '--yes', '--policy', 'pass', '--model', model.url, '--server', server.mcp_url],
      'Count',
    ];
    const env = { NO_COLOR, TERM };
    if (is_piped) {
      const { code, stdout, stderr } = await run_program(words, { env });
      assert.equal(code, 0, stderr);
      return stdout + stderr;
    }
    const terminal = new Terminal(t, [program, ...words], { env });
    assert.equal(await terminal.exit_code(), 0, terminal.seen);
    return terminal.seen.replaceAll('\r\n', '\n');
  };
  const kPlain =
    '  count | called with {"to":3}\n' +
    '  count | 1\n  count | 2\n  count | 3\n' +
    '  count | completed: {"sum":6}\n' +
    '({"sum":6}) \n';
  const coloured = await run({ NO_COLOR: '' });
  const kCode = /\x1b\[\d+m/g;
  assert.equal(coloured.replaceAll(kCode, ''), kPlain);
  const lines = coloured.trimEnd().split('\n');
  for (const line of lines.slice(0, -1)) {
    assert.ok(line.startsWith('\x1b[36m  count | \x1b[0m'), JSON.stringify(line));
  }
  assert.equal(lines.at(-1), '({"sum":6})', 'what the model says is as it is');
  assert.equal(await run({ NO_COLOR: '1' }), kPlain);
  assert.equal(await run({ NO_COLOR: '', TERM: 'dumb' }), kPlain);
  assert.equal(await run({ NO_COLOR: '' }, true), kPlain);
});

test('a recorded run is shown event by event, forward and back', async (t) => {
  const file = join(temporary_folder(t), 'run.jsonl');
  const model = await calling_model(t);
  const run = await run_program(['agent', '--model', model.url, '--trace', file, 'Hello']);
  assert.equal(run.code, 0, run.stderr);
  const terminal = new Terminal(t, [program, 'agent', '--replay', file, '--step']);
  const at = async (number, type, from) => {
    const shown = new RegExp(`${number} of \\d+  ${type}`);
    await terminal.until((seen) => shown.test(seen), `event ${number}`, { from });
  };
  await at(1, 'sluice:run.started', 0);
  let from = terminal.seen.length;
  terminal.type('nn');
  await at(3, 'sluice:input.delivered|response', from);
  from = terminal.seen.length;
  terminal.type('\x1b[D');
  await at(2, '', from);
  from = terminal.seen.length;
  terminal.type('G');
  await at('\\d+', 'sluice:run.done', from);
  terminal.type('q');
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
  const piped = await run_program(['agent', '--replay', file, '--step']);
  assert.equal(piped.code, 2, piped.stderr);
});

test('stepping goes on after a stop, and leaves the terminal as it was', async (t) => {
  const file = join(temporary_folder(t), 'run.jsonl');
  const event = (at_us) => JSON.stringify({ at_us, event: { type: 'sluice:input.delivered' } });
  writeFileSync(file, [0, 1, 2, 3].map((at) => `${event(at)}\n`).join(''));
  // A shell that has the terminal again while its program is stopped, and says its mode at the end.
  const script = 'ulimit -c 0; "$@"; stty sane; fg; stty -a | tr " ;" "\\n\\n" | grep -x -- "-*echo"';
  const terminal = new Terminal(t, [
    ...['bash', '-mc', script, 'bash'],
    ...[program, 'agent', '--replay', file, '--step'],
  ]);
  const at = (number, from) =>
    terminal.until((seen) => seen.includes(`${number} of 4`), `event ${number}`, { from });
  await at(1, 0);
  let from = terminal.seen.length;
  terminal.type('\x1a');
  await at(1, from);
  from = terminal.seen.length;
  terminal.type('n');
  await at(2, from);
  terminal.type('\x1c');
  await terminal.exit_code();
  assert.match(terminal.seen, /^echo\r?$/m);
});
