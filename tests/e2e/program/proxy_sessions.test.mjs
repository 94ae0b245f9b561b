// What becomes of a program behind `sluice proxy` when the session of its client has trouble.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { unwrap } from '../lib/rpc.mjs';
import {
  children_of,
  everything,
  program,
  run_program,
  start_proxy,
  temporary_folder,
  until,
} from '../lib/server.mjs';
import { StreamableClient, initialize } from '../lib/streamable.mjs';

const kLegacy = '2025-11-25';
const kCommand = ['--', everything, '--stdio'];
const kDeadline = 10_000; // ms; the silence of a server takes longer to notice

// A client with a session at the proxy, whose child has been started.
async function begin_session(proxy) {
  const client = new StreamableClient(proxy, kLegacy);
  const before = children_of(proxy);
  unwrap(await client.ask(initialize(kLegacy)));
  await client.ask({ method: 'notifications/initialized' });
  await call(client, 'test_simple_text');
  const [child] = children_of(proxy).filter((pid) => !before.includes(pid));
  assert.ok(child, 'a child has been started');
  return { client, child };
}

const call = async (client, name) =>
  unwrap(await client.ask({ method: 'tools/call', params: { name, arguments: {} } }));

// Reads the standalone stream of a session: `messages` has what came, `is_over` whether it has ended.
async function read_stream(client) {
  const reader = { messages: [], is_over: false };
  const opened = () => client.arrows.filter((arrow) => arrow === '<- 200 text/event-stream').length;
  const before = opened();
  const stream = client.get();
  const read = async () => {
    for await (const message of stream) reader.messages.push(message.method);
  };
  const ended = () => {
    reader.is_over = true;
  };
  read().then(ended, ended);
  await until(() => opened() > before, 'the stream is open');
  return reader;
}

test('a second reader of the stream of a session replaces the first, and its child lives', async (t) => {
  const proxy = await start_proxy(t, kCommand);
  const { client, child } = await begin_session(proxy);
  let reader = await read_stream(client);
  for (let conflict = 0; conflict < 3; ++conflict) {
    const next = await read_stream(client);
    await until(() => reader.is_over, 'the first has been replaced');
    reader = next;
    await call(client, 'test_trigger_tool_change');
    await until(() => reader.messages.length > 0, 'the change reaches the second');
    assert.deepEqual(children_of(proxy), [child]);
  }
  assert.ok(!reader.is_over);
  assert.equal(await client.end(), 204);
  await until(() => children_of(proxy).length === 0, 'the child ends with its session');
});

test('an open stream keeps a session and its child, until its reader has gone', async (t) => {
  const proxy = await start_proxy(t, ['--session-expiry', '2s', ...kCommand]);
  const reader = await begin_session(proxy);
  const stream = http.get(proxy.mcp_url, {
    agent: false,
    headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': reader.client.session },
  });
  t.after(() => stream.destroy());
  stream.on('error', () => {});
  assert.equal((await once(stream, 'response'))[0].statusCode, 200);
  const other = await begin_session(proxy);
  await until(() => !children_of(proxy).includes(other.child), 'the later session ends');
  assert.deepEqual(children_of(proxy), [reader.child], 'the earlier one is read');
  stream.destroy();
  await until(() => children_of(proxy).length === 0, 'it ends when its reader has gone');
});

test('a reader that vanishes without a word ends its session and its child', async (t) => {
  const may_have_network = await run_program(['-rn', 'ip', 'link', 'set', 'lo', 'up'], { command: 'unshare' });
  if (may_have_network.code !== 0) {
    return t.skip('nobody may make a network of their own here');
  }
  const script = path.join(import.meta.dirname, '../lib/vanishing_reader.mjs');
  const outcome = await run_program(['-rn', process.execPath, script], {
    command: 'unshare',
    env: { SLUICE_BIN: program },
  });
  assert.equal(outcome.code, 0, outcome.stderr);
});

// A server that dies when it is to begin a session. It notes what it was asked.
const kDyingServer = `
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  appendFileSync(process.argv[2], method + '\\n');
  if (method === 'initialize') process.exit(3);
  const error = { code: -32601, message: 'Method not found' };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, error }));
});
`;

function dying_server(t) {
  const folder = temporary_folder(t);
  const script = path.join(folder, 'dying.mjs');
  const notes = path.join(folder, 'notes');
  writeFileSync(script, kDyingServer);
  const starts = () => readFileSync(notes, 'utf8').split('initialize\n').length - 1;
  return { command: ['--', process.execPath, script, notes], starts };
}

const kDied = /process is over: it has ended with code 3/;

test('a child that dies in initialize is an error at once for a command and over stdio', async (t) => {
  const { command, starts } = dying_server(t);
  const direct = await run_program(['tools', ...command], { deadline: kDeadline });
  assert.equal(direct.code, 4, direct.stderr);
  assert.match(direct.stderr, kDied);
  assert.equal(starts(), 1);
  const requests = [initialize(kLegacy), { method: 'tools/list' }];
  const input = requests.map((each, id) => `${JSON.stringify({ jsonrpc: '2.0', id, ...each })}\n`);
  const bridged = await run_program(['proxy', ...command], {
    input: input.join(''),
    deadline: kDeadline,
  });
  assert.equal(bridged.code, 0, bridged.stderr);
  const replies = bridged.stdout.trim().split('\n').map(JSON.parse);
  assert.deepEqual(
    replies.map(({ id }) => id),
    [0, 1],
  );
  for (const { error } of replies) assert.match(error.message, kDied);
});

test('a child has time for its end, also when its client has left before', async (t) => {
  const saved = path.join(temporary_folder(t), 'saved');
  const child = ['--', 'sh', '-c', '"$0" --stdio; sleep 0.3; echo > "$1"', everything, saved];
  const input = `${JSON.stringify({ jsonrpc: '2.0', id: 0, ...initialize(kLegacy) })}\n`;
  const bridged = await run_program(['proxy', ...child], { input, deadline: kDeadline });
  assert.equal(bridged.code, 0, bridged.stderr);
  assert.ok(existsSync(saved), 'over stdio');
  rmSync(saved);
  const proxy = await start_proxy(t, child);
  await begin_session(proxy);
  await proxy.stop();
  assert.ok(existsSync(saved), 'over HTTP');
});

test('a proxy that is asked to end a second time kills a child that does not', async (t) => {
  const [command, ...words] = ['sh', '-c', 'trap "" TERM; "$0" --stdio; while :; do sleep 1; done', everything];
  const proxy = spawn(program, ['proxy', '--', command, ...words], { stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => proxy.kill('SIGKILL'));
  proxy.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 0, ...initialize(kLegacy) })}\n`);
  await once(proxy.stdout, 'data');
  const [child] = children_of(proxy);
  assert.ok(child);
  proxy.stdin.end();
  await new Promise((done) => setTimeout(done, 200)); // the input's end and the signal are two requests
  proxy.kill('SIGTERM');
  await once(proxy, 'exit');
  assert.throws(() => process.kill(child, 0), /ESRCH/);
});

test('a child that dies in initialize is an error at once over HTTP, and is started again later', async (t) => {
  const { command, starts } = dying_server(t);
  const proxy = await start_proxy(t, command);
  for (const [revision, request] of [
    [kLegacy, initialize(kLegacy)],
    ['2026-07-28', { method: 'tools/list' }],
  ]) {
    const before = performance.now();
    const { error } = await new StreamableClient(proxy, revision).ask(request);
    assert.match(error.message, kDied);
    assert.ok(performance.now() - before < kDeadline);
  }
  // The proxy does not start it for each request, but after a pause it does.
  const started = starts();
  await until(async () => {
    await new StreamableClient(proxy, kLegacy).ask(initialize(kLegacy));
    return starts() > started;
  }, 'it is started again');
  assert.deepEqual(children_of(proxy), []);
});
