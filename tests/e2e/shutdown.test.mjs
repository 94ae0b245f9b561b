// SIGTERM while thousands of calls are open in each of their phases. Each call is answered once or
// its connection ends, and the program ends without an error.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import WebSocket from 'ws';
import { start_server, until } from './lib/server.mjs';
import { StreamableClient, initialize } from './lib/streamable.mjs';
import * as wire from './lib/wire.mjs';

const kPerConnection = 250; // so that at most 4 MiB of answers wait when the test is slow

// One event loop, and no limit on the number of calls.
const start = (t, deadline) =>
  start_server(t, [
    ...['--threads', '1', '--calls-per-client', '10000'],
    ...['--shutdown-deadline', deadline],
  ]);

// Calls on as many WebSockets as they need. Counts how often each call was answered, and with what.
class Calls {
  answers = new Map();
  closed = [];

  static async begin(server, count, { interval_ms, numbers }) {
    const calls = new Calls();
    for (let from = 0; from < count; from += kPerConnection) {
      const socket = new WebSocket(server.ws_url);
      socket.on('message', (text) => {
        const { id, result, error } = JSON.parse(text);
        if (id === undefined) return;
        calls.answers.set(id, [...(calls.answers.get(id) ?? []), error?.code ?? result]);
      });
      socket.on('error', () => {});
      calls.closed.push(new Promise((resolve) => socket.once('close', resolve)));
      await new Promise((resolve) => socket.once('open', resolve));
      for (let id = from; id < Math.min(from + kPerConnection, count); ++id) {
        const params = {
          name: 'stream_numbers',
          arguments: { count: numbers(id), interval_ms },
          ...(id % 8 ? {} : { _meta: { progressToken: id } }),
        };
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }));
      }
    }
    return calls;
  }

  // Checks that no call was answered twice. Returns how many were answered.
  async ended() {
    await Promise.all(this.closed);
    for (const [id, answers] of this.answers) assert.equal(answers.length, 1, `call ${id}`);
    return this.answers.size;
  }
}

const is_open = (server, count) =>
  until(
    async () => (await server.metric(wire.metric.slots_busy)) === count,
    `${count} calls are open`,
  );

const ends_well = async (server) =>
  assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);

for (const count of [1, 100, 2000, 8000]) {
  test(`${count} calls that go on are cut off by the deadline`, async (t) => {
    const server = await start(t, '1ms');
    const calls = await Calls.begin(server, count, { interval_ms: 1000, numbers: () => 1000 });
    await is_open(server, count);
    await ends_well(server);
    assert.equal(await calls.ended(), count, 'all are answered');
    for (const [answer] of calls.answers.values()) assert.equal(answer, wire.codes.busy);
  });

  test(`${count} calls end while the server waits for them`, async (t) => {
    const server = await start(t, '20s');
    const numbers = (id) => 50 + (id % 100);
    const calls = await Calls.begin(server, count, { interval_ms: 10, numbers });
    await until(
      async () => (await server.metric('sluice_engine_requests_total')) === count,
      'all have begun',
    );
    await ends_well(server);
    assert.equal(await calls.ended(), count, 'all are answered');
    for (const [answer] of calls.answers.values()) assert.ok(answer.content, `${answer}`);
  });

  test(`${count} calls end when the deadline comes`, async (t) => {
    const server = await start(t, '500ms');
    const numbers = (id) => 40 + (id % 20);
    const calls = await Calls.begin(server, count, { interval_ms: 10, numbers });
    await ends_well(server);
    await calls.ended();
  });

  test(`${count} calls are still arriving`, async (t) => {
    const server = await start(t, '100ms');
    const calls = await Calls.begin(server, count, { interval_ms: 10, numbers: () => 50 });
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
