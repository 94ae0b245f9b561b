// JSON-RPC batches, which only one revision has, on every transport of that revision.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import WebSocket from 'ws';
import { stdio_client, unix_client } from '../lib/lines.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kRevision = '2025-03-26';
const initialize = (revision) => ({
  jsonrpc: '2.0',
  id: 'hello',
  method: 'initialize',
  params: {
    protocolVersion: revision,
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
});
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
const ping = (id) => ({ jsonrpc: '2.0', id, method: 'ping' });
const numbers = (id, count, meta) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'stream_numbers', arguments: { count, interval_ms: 1 }, _meta: meta },
});

function check_array(answers) {
  assert.ok(Array.isArray(answers));
  assert.deepEqual(answers.map(({ id }) => id).sort(), ['a', 'b', 'c', 'd']);
  const by_id = Object.fromEntries(answers.map((answer) => [answer.id, answer]));
  assert.deepEqual(by_id.a.result, {});
  assert.ok(by_id.b.result.content);
  assert.ok(by_id.c.result.tools);
  assert.equal(by_id.d.error.code, wire.codes.method_not_found);
}
const batch = [
  ping('a'),
  initialized,
  numbers('b', 5),
  { jsonrpc: '2.0', id: 'c', method: 'tools/list' },
  { jsonrpc: '2.0', id: 'd', method: 'no/such' },
];

test('over HTTP a batch is answered with one array, or with events', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const hello = await client.exchange(JSON.stringify(initialize(kRevision)));
  const headers = { 'Mcp-Session-Id': hello.headers['mcp-session-id'] };

  const answer = await client.exchange(JSON.stringify(batch), headers);
  assert.equal(answer.status, 200);
  assert.match(answer.headers['content-type'], /^application\/json/);
  check_array(JSON.parse(answer.body.toString()));

  // Progress is sent before the responses, so the reply is an event stream.
  const streamed = await client.exchange(
    JSON.stringify([
      numbers(1, 20, { progressToken: 'one' }),
      numbers(2, 20, { progressToken: 'two' }),
      ping(3),
    ]),
    headers,
  );
  assert.match(streamed.headers['content-type'], /^text\/event-stream/);
  const messages = wire.event_messages(streamed.body.toString());
  assert.deepEqual(
    messages
      .filter(({ id }) => id)
      .map(({ id }) => id)
      .sort(),
    [1, 2, 3],
  );
  for (const [id, token] of [
    [1, 'one'],
    [2, 'two'],
  ]) {
    const end = messages.findIndex((message) => message.id === id);
    const progress = messages.filter(({ params }) => params?.progressToken === token);
    assert.equal(progress.length, 20);
    assert.ok(messages.indexOf(progress.at(-1)) < end, 'progress comes before its result');
  }

  const accepted = await client.exchange(
    JSON.stringify([initialized, { jsonrpc: '2.0', id: 1, result: {} }]),
    headers,
  );
  assert.equal(accepted.status, 202);
  assert.equal(accepted.body.length, 0);

  for (const [body, what] of [
    ['[]', /empty/],
    [JSON.stringify(Array.from({ length: 101 }, (_, id) => ping(id))), /more than 100/],
  ]) {
    const refused = await client.exchange(body, headers);
    assert.equal(refused.status, 400);
    assert.equal(JSON.parse(refused.body.toString()).error.code, wire.codes.invalid_request);
    assert.match(JSON.parse(refused.body.toString()).error.message, what);
  }
  const [, misplaced] = JSON.parse(
    (await client.exchange(JSON.stringify([ping(1), initialize(kRevision)]), headers)).body,
  );
  assert.equal(misplaced.error.code, wire.codes.invalid_request);
  // Everything that was running has ended.
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');
});

test('over HTTP a request of a batch is cancelled by its id', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const hello = await client.exchange(JSON.stringify(initialize(kRevision)));
  const headers = { 'Mcp-Session-Id': hello.headers['mcp-session-id'] };
  const generate = {
    jsonrpc: '2.0',
    id: 'long',
    method: 'tools/call',
    params: { name: 'generate', arguments: { prompt: 'x', count: 1e6, interval_us: 1000 } },
  };
  const answer = client.exchange(JSON.stringify([generate, ping('short')]), headers);
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 1, 'it is at work');
  const cancel = {
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: 'long' },
  };
  assert.equal((await client.exchange(JSON.stringify([cancel]), headers)).status, 202);
  const answers = JSON.parse((await answer).body.toString());
  assert.deepEqual(
    answers.map(({ id }) => id),
    ['short'],
  );
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'the slot is free');
});

// The transports whose connections carry messages in both directions: {send, find}.
const connections = {
  stdio: async (t) => {
    const client = stdio_client(t);
    return {
      send: (text) => client.write(`${text}\n`),
      find: (what, probe) => client.when(() => client.messages.find(probe), what),
    };
  },
  'a Unix socket': async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-batches-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const place = path.join(folder, 'socket');
    await start_server(t, ['--unix', place]);
    const client = await unix_client(t, place);
    return {
      send: (text) => client.write(`${text}\n`),
      find: (what, probe) => client.when(() => client.messages.find(probe), what),
    };
  },
  WebSocket: async (t) => {
    const server = await start_server(t);
    const socket = new WebSocket(server.ws_url);
    t.after(() => socket.close());
    const messages = [];
    socket.on('message', (data) => messages.push(JSON.parse(data.toString())));
    await new Promise((resolve) => socket.once('open', resolve));
    return {
      send: (text) => socket.send(text),
      find: (what, probe) => until(() => messages.find(probe), what),
    };
  },
};

for (const [name, connect] of Object.entries(connections)) {
  test(`over ${name} a batch is answered with one array, in its revision only`, async (t) => {
    const { send, find } = await connect(t);
    send(JSON.stringify(initialize('2025-06-18')));
    await find('the session begins', ({ id }) => id === 'hello');
    send(JSON.stringify(batch));
    const refused = await find('the batch is refused', ({ error }) => error);
    assert.equal(refused.error.code, wire.codes.invalid_request);
    assert.match(refused.error.message, /batches are not part of this protocol revision/);
    // A connection can begin a new session.
    send(JSON.stringify({ ...initialize(kRevision), id: 'again' }));
    await find('it speaks the other revision', ({ id }) => id === 'again');
    send(JSON.stringify(batch));
    check_array(await find('the batch is answered', Array.isArray));
  });
}
