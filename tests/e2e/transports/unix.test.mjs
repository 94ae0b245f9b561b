// `sluice serve --unix PATH`: who may connect, how clients are identified, and what happens to the
// path.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { socket_path, unix_client } from '../lib/lines.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import {
  clean_environment,
  program,
  root,
  run_program,
  start_server,
  until,
} from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

// Starts a server that listens only on the socket: {child, exited}. The test `t` ends it.
async function serve(t, place, flags = []) {
  const child = spawn(
    program,
    ['serve', '--engine', 'synthetic', '--threads', '2', '--unix', place, ...flags],
    { cwd: root, env: clean_environment(), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  child.output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      child.output += text;
    });
  }
  child.exited = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  t.after(() => child.kill('SIGKILL'));
  await until(() => / ready /.test(child.output), 'the server is ready');
  return child;
}

test('serves lines, beside a port or alone', async (t) => {
  const place = socket_path(t);
  const server = await start_server(t, ['--unix', place]);
  const client = await unix_client(t, place);
  const { text } = await client.call(...wire.whole({ count: 5 }));
  assert.equal(wire.count_numbers(text), 5);
  assert.deepEqual(await new HttpClient(server).call('ping'), {});
  assert.equal(await server.metric('sluice_line_connections'), 1);

  const alone = await serve(t, socket_path(t));
  assert.doesNotMatch(alone.output, /http:/);
  assert.match(alone.output, /Unix socket {2}\//);
});

test('a connection that is lost is taken up by another, on whichever loop', async (t) => {
  const place = socket_path(t);
  await serve(t, place);
  const first = await unix_client(t, place);
  const { stream_id } = await first.call(...wire.start({ count: 200, interval_us: 1000 }));
  await until(() => first.pushed(stream_id).length > 20, 'it streams');
  first.socket.destroy();
  const seen = first.pushed(stream_id);
  const second = await unix_client(t, place);
  await second.call(...wire.subscribe(stream_id, seen.length));
  await until(() => second.pushed(stream_id).at(-1)?.end, 'the stream has ended');
  const text = wire.checked_text([...seen, ...second.pushed(stream_id)]);
  assert.equal(wire.count_numbers(text), 200);
});

test('a client that says its last is answered and then left', async (t) => {
  const place = socket_path(t);
  await serve(t, place);
  const client = await unix_client(t, place);
  client.send({ id: 1, method: 'run', params: { prompt: 'x', count: 20, interval_us: 2000 } });
  client.socket.end();
  await until(() => client.ended, 'the server closes');
  assert.equal(wire.count_numbers(client.messages[0].result.text), 20);
});

test('the path has the mode given, and is removed at the end', async (t) => {
  const place = socket_path(t);
  const server = await serve(t, place);
  assert.equal(statSync(place).mode & 0o7777, 0o600);
  server.kill('SIGTERM');
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.ok(!existsSync(place));
  await serve(t, place, ['--unix-mode', '0666']);
  assert.equal(statSync(place).mode & 0o7777, 0o666);
});

test('a socket left behind by a kill is replaced, a live one and a file are not', async (t) => {
  const place = socket_path(t);
  const killed = await serve(t, place);
  killed.kill('SIGKILL');
  await killed.exited;
  assert.ok(existsSync(place));
  await serve(t, place);
  const flags = ['serve', '--engine', 'synthetic', '--unix'];
  const second = await run_program([...flags, place]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /another program listens there/);
  assert.deepEqual(await (await unix_client(t, place)).call('ping'), {});
  const file = `${place}.txt`;
  writeFileSync(file, 'mine');
  const third = await run_program([...flags, file]);
  assert.equal(third.code, 1);
  assert.match(third.stderr, /no socket/);
});

test('connections are limited as those of a port are', async (t) => {
  const place = socket_path(t);
  await serve(t, place, ['--max-connections', '2']);
  const clients = [await unix_client(t, place), await unix_client(t, place)];
  for (const client of clients) await client.call('ping');
  const third = await unix_client(t, place);
  await until(() => third.ended, 'the third is turned away');
  assert.equal(third.messages[0].error.code, wire.codes.busy);
  clients[0].socket.destroy();
  await until(async () => {
    const next = await unix_client(t, place);
    next.send({ id: 1, method: 'ping' });
    await until(() => next.ended || next.messages.length > 0, 'it is answered');
    return next.messages[0]?.result !== undefined;
  }, 'there is room again');
});

test(
  'users are told apart by the kernel',
  { skip: process.getuid() !== 0 && 'only root can become others' },
  async (t) => {
    const place = socket_path(t);
    await serve(t, place, ['--unix-mode', '0666']);
    const client = await unix_client(t, place);
    const { stream_id } = await client.call(...wire.start({ count: 3 }));
    const poll = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'run',
      params: { stream_id, from_seq: 0 },
    });
    const ask_as = (user) =>
      run_program(
        [
          '--reuid',
          String(user),
          '--regid',
          String(user),
          '--clear-groups',
          process.execPath,
          '--eval',
          `const socket = require('node:net').connect(process.argv[1]);
           socket.on('data', (data) => { process.stdout.write(data); socket.destroy(); });
           socket.on('error', (error) => { console.log(error.code); });
           socket.write(process.argv[2] + '\\n');`,
          place,
          poll,
        ],
        { command: 'setpriv', cwd: '/' },
      );
    const own = JSON.parse((await ask_as(0)).stdout);
    assert.equal(own.result.stream_id, stream_id);
    const other = JSON.parse((await ask_as(65534)).stdout);
    assert.equal(other.error.code, wire.codes.not_found);
    // The path's permissions keep out users who may not connect.
    chmodSync(place, 0o600);
    assert.match((await ask_as(65534)).stdout, /EACCES/);
  },
);
