// SIGTERM while thousands of calls are open in each of their phases, over each transport. Each call
// is answered once or its connection ends, the program ends without an error, and whoever reads
// meanwhile is not disturbed.

import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import WebSocket from 'ws';
import { Innocent } from '../lib/innocent.mjs';
import { LineClient, start_stdio } from '../lib/lines.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { is_sanitized, start_server, until } from '../lib/server.mjs';
import { StreamableClient, initialize } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

const kPerConnection = 250; // so that at most 4 MiB of answers wait when the test is slow

// One event loop, and no limit on the number of calls.
const start = (t, deadline) =>
  start_server(t, [
    ...['--threads', '1', '--calls-per-client', '10000'],
    ...['--shutdown-deadline', deadline],
  ]);

// Calls under way. Counts how often each call was answered, and with what.
class Calls {
  answers = new Map();
  closed = [];

  take({ id, result, error }) {
    if (id === undefined) return;
    this.answers.set(id, [...(this.answers.get(id) ?? []), error?.code ?? result]);
  }

  // Checks that no call was answered twice. Returns how many were answered.
  async ended() {
    await Promise.all(this.closed);
    for (const [id, answers] of this.answers) assert.equal(answers.length, 1, `call ${id}`);
    return this.answers.size;
  }
}

const call = (id, { interval_ms, numbers }, progress) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: {
    name: 'stream_numbers',
    arguments: { count: numbers(id), interval_ms },
    ...(progress ? { _meta: { progressToken: id } } : {}),
  },
});

// Calls on as many WebSockets as they need.
async function call_over_websockets(server, count, what) {
  const calls = new Calls();
  for (let from = 0; from < count; from += kPerConnection) {
    const socket = new WebSocket(server.ws_url);
    socket.on('message', (text) => calls.take(JSON.parse(text)));
    socket.on('error', () => {});
    calls.closed.push(new Promise((resolve) => socket.once('close', resolve)));
    await new Promise((resolve) => socket.once('open', resolve));
    for (let id = from; id < Math.min(from + kPerConnection, count); ++id) {
      socket.send(JSON.stringify(call(id, what, id % 8 === 0)));
    }
  }
  return calls;
}

// Calls in a request each. Those with progress are answered with an event stream.
async function call_over_http(server, count, what) {
  const calls = new Calls();
  const post = (id) =>
    new Promise((resolve) => {
      const request = http.request(server.mcp_url, { method: 'POST', agent: false });
      request.setHeader('Content-Type', 'application/json');
      request.setHeader('Accept', 'application/json, text/event-stream');
      request.on('error', resolve);
      request.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part) => {
          text += part;
        });
        // A connection may end without an answer, but not within an event.
        response.on('error', () => {});
        response.on('close', () => {
          const events = response.headers['content-type'] === 'text/event-stream';
          if (events) assert.match(text, /^$|\n\n$/, 'only whole events');
          for (const message of events ? wire.event_messages(text) : [JSON.parse(text)]) {
            calls.take(message);
          }
          resolve();
        });
      });
      request.end(JSON.stringify(call(id, what, id % 2 === 0)));
    });
  for (let id = 0; id < count; ++id) calls.closed.push(post(id));
  return calls;
}

const transports = [
  ['WebSockets', call_over_websockets, [1, 100, 2000, 8000]],
  ['HTTP', call_over_http, [1, 100, 1000]],
];

const is_open = (server, count) =>
  until(
    async () => (await server.metric(wire.metric.slots_busy)) === count,
    `${count} calls are open`,
  );

const ends_well = async (server) =>
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);

for (const [over, begin, count] of transports.flatMap(([over, begin, counts]) =>
  counts.map((count) => [over, begin, count]),
)) {
  test(`${over}: ${count} calls that go on are cut off by the deadline`, async (t) => {
    const server = await start(t, '1ms');
    const calls = await begin(server, count, { interval_ms: 1000, numbers: () => 1000 });
    await is_open(server, count);
    await ends_well(server);
    assert.equal(await calls.ended(), count, 'all are answered');
    for (const [answer] of calls.answers.values()) assert.equal(answer, wire.codes.busy);
  });

  test(`${over}: ${count} calls end while the server waits for them`, async (t) => {
    const server = await start(t, '20s');
    const numbers = (id) => 50 + (id % 100);
    const calls = await begin(server, count, { interval_ms: 10, numbers });
    await until(
      async () => (await server.metric('sluice_engine_requests_total')) === count,
      'all have begun',
    );
    await ends_well(server);
    assert.equal(await calls.ended(), count, 'all are answered');
    for (const [answer] of calls.answers.values()) assert.ok(answer.content, `${answer}`);
  });

  test(`${over}: ${count} calls end when the deadline comes`, async (t) => {
    const server = await start(t, '500ms');
    const numbers = (id) => 40 + (id % 20);
    const calls = await begin(server, count, { interval_ms: 10, numbers });
    await until(
      async () => (await server.metric('sluice_engine_requests_total')) >= count / 2,
      'many have begun',
    );
    await ends_well(server);
    await calls.ended();
  });

  test(`${over}: ${count} calls are still arriving`, async (t) => {
    const server = await start(t, '100ms');
    const calls = await begin(server, count, { interval_ms: 10, numbers: () => 50 });
    server.signal('SIGTERM');
    server.signal('SIGTERM');
    await ends_well(server);
    await calls.ended();
  });
}

test('calls that wait for their clients to come back are ended', async (t) => {
  const server = await start(t, '1ms');
  const client = new StreamableClient(server, '2025-11-25');
  await client.ask(initialize('2025-11-25'));
  const kCalls = 200;
  const params = {
    name: 'stream_numbers',
    arguments: { count: 1000, interval_ms: 1000 },
    _meta: { progressToken: 'p' },
  };
  for (let n = 0; n < kCalls; ++n) {
    const call = client.post({ method: 'tools/call', params });
    await call.next();
    if (n % 2 === 0) await call.return();
  }
  assert.equal(await server.metric(wire.metric.slots_busy), kCalls);
  await ends_well(server);
});

// Begins the shutdown, and returns when the server has begun it.
async function shuts_down(server) {
  server.signal('SIGTERM');
  await until(() => server.output.includes('shutting down'), 'the server shuts down');
}

const ended_well = async (server) =>
  assert.deepEqual(await server.exited, { code: 0, signal: null }, server.output);

test('calls end while the server waits for a reader, who is not disturbed', async (t) => {
  const server = await start(t, '4s');
  const innocent = await Innocent.beside(server);
  const what = { interval_ms: 20, numbers: (id) => 50 + (id % 50) };
  const all = [
    await call_over_websockets(server, 1000, what),
    await call_over_http(server, 500, what),
  ];
  await until(
    async () => (await server.metric('sluice_engine_requests_total')) === 1501,
    'all have begun',
  );
  await shuts_down(server);
  assert.deepEqual([await all[0].ended(), await all[1].ended()], [1000, 500], 'all are answered');
  for (const { answers } of all) {
    for (const [answer] of answers.values()) assert.ok(answer.content, `${answer}`);
  }
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
  await ended_well(server);
});

test('health checks do not keep a shutdown waiting for a reader that reads nothing', async (t) => {
  const server = await start(t, '60s');
  await new HttpClient(server).call(...wire.start({ count: 50, interval_us: -1 }));
  await until(async () => (await server.metric('sluice_streams_unread')) === 1, 'it has ended');
  await shuts_down(server);
  let is_over = false;
  server.exited.then(() => (is_over = true));
  const began = performance.now();
  while (!is_over) {
    await server.request({ path: '/readyz' }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.ok(performance.now() - began < 30_000, 'it does not wait for its deadline');
  await ended_well(server);
});

test('calls that are refused during a shutdown do not disturb a reader', async (t) => {
  const server = await start(t, '4s');
  const innocent = await Innocent.beside(server);
  const kSockets = 10;
  const kEach = 2000;
  // One call each, so that the server keeps the connection.
  const long = { interval_ms: 1000, numbers: () => 1000 };
  const sockets = [];
  const refused = new Calls();
  for (let n = 0; n < kSockets; ++n) {
    const socket = new WebSocket(server.ws_url);
    socket.on('message', (text) => refused.take(JSON.parse(text)));
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(JSON.stringify(call(`long ${n}`, long)));
    sockets.push(socket);
  }
  await is_open(server, kSockets + 1);
  await shuts_down(server);
  sockets.forEach((socket, n) => {
    for (let id = 0; id < kEach; ++id) socket.send(JSON.stringify(call(n * kEach + id, long)));
  });
  await until(() => refused.answers.size === kSockets * kEach, 'all are refused');
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
  await refused.ended();
  for (const [answer] of refused.answers.values()) assert.equal(answer, wire.codes.busy);
  await ended_well(server);
  assert.equal(refused.answers.size, kSockets * kEach + kSockets, 'the long calls are answered');
});

// A server with stdio alone takes half a second for the last answers, which is short for a sanitizer.
for (const count of is_sanitized ? [1, 100] : [1, 100, 1000]) {
  test(`stdio: ${count} calls end at once`, async (t) => {
    const child = start_stdio(t, ['--calls-per-client', '10000']);
    const client = new LineClient(child.stdin, child.stdout);
    const calls = new Calls();
    // At most 50,000 messages a second: the test must not be about how fast a busy machine reads.
    const what = { interval_ms: Math.max(1, count / 50), numbers: () => 1e6 };
    for (let id = 0; id < count; ++id) client.send(call(id, what, true));
    await client.when(
      ({ messages }) => new Set(messages.map(({ params }) => params?.progressToken)).size === count,
      'all have begun',
    );
    child.kill('SIGTERM');
    assert.deepEqual(await child.exited, { code: 0, signal: null }, child.errors);
    await until(() => client.ended, 'all is read');
    for (const message of client.messages) calls.take(message);
    assert.equal(await calls.ended(), count, 'all are answered');
    for (const [answer] of calls.answers.values()) assert.equal(answer, wire.codes.busy);
  });
}
