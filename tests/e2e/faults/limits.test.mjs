// Tests every limit at its value.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { event_stream, poll_stream, push_stream } from '../lib/readers.mjs';
import { RawConnection } from '../lib/raw.mjs';
import { HttpClient, WsClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

// Waits until the server has counted `times` pauses of producers.
async function paused(server, times = 1) {
  await until(
    async () => (await server.metric(wire.metric.pauses)) >= times,
    'the producer paused',
  );
}

test('chunks per stream: the producer pauses at the limit and goes on when there is room', async (t) => {
  const limit = 50;
  const server = await start_server(t, [wire.flag.max_chunks, String(limit)]);
  const client = new HttpClient(server);
  const count = 400;
  const { stream_id } = await client.call(...wire.start({ count }));
  await paused(server);
  const first = await client.call(...wire.poll(stream_id, 0));
  assert.equal(first.chunks.length, limit, 'as many chunks as allowed and not one more');
  assert.equal(first.has_more, true);
  const again = await client.call(...wire.poll(stream_id, 0));
  assert.deepEqual(again.chunks, first.chunks, 'asking again makes no room');
  const rest = await poll_stream(client, stream_id, { from: limit, wait_ms: 5000 });
  const text = first.chunks.map((chunk) => chunk.delta).join('') + wire.checked_text(rest, limit);
  assert.equal(wire.count_numbers(text), count, 'nothing is lost by pausing');
});

test('bytes per stream: the producer pauses at the limit and goes on when there is room', async (t) => {
  const limit = 4096;
  const server = await start_server(t, [wire.flag.max_bytes, String(limit)]);
  const client = new HttpClient(server);
  const count = 2000;
  const { stream_id } = await client.call(...wire.start({ count }));
  await paused(server);
  const first = await client.call(...wire.poll(stream_id, 0));
  const bytes = first.chunks.reduce(
    (sum, chunk) => sum + JSON.stringify(chunk.delta).length - 2,
    0,
  );
  const largest = Math.max(...first.chunks.map((chunk) => JSON.stringify(chunk.delta).length));
  assert.ok(bytes <= limit + largest, `${bytes} bytes kept`);
  assert.ok(bytes > limit - 2 * largest, `only ${bytes} bytes kept`);
  const rest = await poll_stream(client, stream_id, { from: first.chunks.length, wait_ms: 5000 });
  const text =
    first.chunks.map((chunk) => chunk.delta).join('') +
    wire.checked_text(rest, first.chunks.length);
  assert.equal(wire.count_numbers(text), count);
});

test('bytes over all streams: producers pause, and all of them finish once read', async (t) => {
  const total = 256 * 1024;
  const server = await start_server(t, [
    wire.flag.max_bytes,
    String(total / 2),
    wire.flag.max_total_bytes,
    String(total),
  ]);
  const client = new HttpClient(server);
  const count = 4000;
  const started = await Promise.all(
    Array.from({ length: 6 }, () => client.call(...wire.start({ count }))),
  );
  await paused(server);
  assert.ok((await server.metric(wire.metric.stream_bytes)) <= total, 'the budget holds');
  const texts = await Promise.all(
    started.map(async ({ stream_id }) =>
      wire.checked_text(await poll_stream(client, stream_id, { wait_ms: 5000 })),
    ),
  );
  for (const text of texts) assert.equal(wire.count_numbers(text), count);
});

test('the text that a result repeats is part of them: its call fails when there is none', async (t) => {
  const total = String(256 * 1024);
  const server = await start_server(t, [
    wire.flag.max_bytes,
    total,
    wire.flag.max_total_bytes,
    total,
  ]);
  const client = new HttpClient(server);
  const generate = (count) => [
    'tools/call',
    { name: 'generate', arguments: { prompt: 'x', count, interval_us: 0 } },
  ];
  assert.equal(await client.code_of(...generate(20_000)), -31010);
  const { content } = await client.call(...generate(100));
  assert.equal(wire.count_numbers(content[0].text), 100);
  await until(
    async () => (await server.metric(wire.metric.stream_bytes)) === 0,
    'what failed has given its memory back',
  );
});

test('streams per client: one too many is refused, others are not concerned', async (t) => {
  const server = await start_server(t, [wire.flag.per_client, '3']);
  const client = new HttpClient(server);
  const long = wire.start({ count: 1_000_000, interval_us: 1000 });
  const started = [];
  for (let n = 0; n < 3; ++n) started.push(await client.call(...long));
  assert.equal(await client.code_of(...long), wire.codes.limit);
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  assert.equal((await socket.reply(...long)).error?.code, wire.codes.limit, 'over /ws too');

  const other = new HttpClient(server, { local_address: '127.0.0.2' });
  const theirs = await other.call(...wire.start({ count: 10 }));
  assert.equal(
    wire.count_numbers(wire.checked_text(await poll_stream(other, theirs.stream_id))),
    10,
  );

  await client.call(...wire.abort(started[0].stream_id));
  await poll_stream(client, started[0].stream_id, { wait_ms: 5000 });
  await until(async () => !(await client.reply(...long)).error, 'the ended stream made room');
});

test('expiry: unread streams expire, their tombstone says so, then nobody knows them', async (t) => {
  const server = await start_server(t, [wire.flag.expiry, '500ms', wire.flag.tombstone, '1500ms']);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 1_000_000, interval_us: 1000 }));
  // Reading the metrics does not count as access to the stream. Polling it would.
  await until(async () => (await server.metric(wire.metric.streams)) === 0, 'the stream expired');
  assert.equal(await client.code_of(...wire.poll(stream_id, 0)), wire.codes.expired);
  const foreign = new HttpClient(server, { local_address: '127.0.0.2' });
  assert.equal(
    await foreign.code_of(...wire.poll(stream_id, 0)),
    wire.codes.not_found,
    'only its owner is told',
  );
  await until(
    async () => (await client.code_of(...wire.poll(stream_id, 0))) === wire.codes.not_found,
    'the tombstone is gone',
  );
  assert.equal(await server.metric(wire.metric.slots_busy), 0, 'the expired stream freed its slot');
  assert.equal(await server.metric(wire.metric.stream_bytes), 0);
});

test('a stream that is asked for does not expire', async (t) => {
  const server = await start_server(t, [wire.flag.expiry, '400ms']);
  const client = new HttpClient(server);
  // The stream runs for about five times the expiry and is polled all the time.
  const { stream_id } = await client.call(...wire.start({ count: 400, interval_us: 5000 }));
  const chunks = await poll_stream(client, stream_id, { wait_ms: 100 });
  assert.equal(wire.count_numbers(wire.checked_text(chunks)), 400);
});

test('stall limit: a reader that holds a full stream up loses it with an error, others do not', async (t) => {
  const server = await start_server(t, [
    wire.flag.max_chunks,
    '100',
    wire.flag.stall_limit,
    '500ms',
  ]);
  const client = new HttpClient(server);
  const count = 1000;
  const { stream_id } = await client.call(...wire.start({ count, interval_us: 200 }));
  const stalled = await WsClient.connect(server);
  t.after(() => stalled.close());
  await stalled.call(...wire.subscribe(stream_id, 0, 10));
  const chunks = await push_stream(server, stream_id);
  assert.equal(wire.count_numbers(wire.checked_text(chunks)), count, 'the other reader has it all');
  assert.equal(await server.metric(wire.metric.stalled), 1);
  const last = await stalled.when(() => stalled.chunks(stream_id).at(-1)?.error, 'the clear error');
  assert.equal(last.code, wire.codes.invalid_state);
  assert.ok(last.message.length > 0);
  assert.equal((await stalled.reply(...wire.streams())).error, undefined, 'the connection stays');
});

test('connections: one too many is turned away, and there is room again after', async (t) => {
  const server = await start_server(t, [wire.flag.max_connections, '4']);
  const ask = () =>
    server.request({ path: '/healthz', agent: false }).then(
      ({ status }) => status,
      (error) => error.code,
    );
  const sockets = [];
  t.after(() => Promise.all(sockets.map((socket) => socket.close())));
  // Connections that were just closed may be counted for a moment longer.
  while (sockets.length < 4) {
    sockets.push(await until(() => WsClient.connect(server).catch(() => null), 'there is room'));
  }
  const refused = await ask();
  assert.ok(refused === 503 || refused === 'ECONNRESET', `${refused}`);
  await sockets.pop().close();
  await until(async () => (await ask()) === 200, 'there is room again');
});

test('sessions: whoever has none gets one, however many others have', async (t) => {
  const server = await start_server(t, ['--max-sessions', '50', '--sessions-per-client', '20']);
  const begin = async (address) => {
    const client = new HttpClient(server, { local_address: address });
    const hello = await client.exchange(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'e2e', version: '1' },
        },
      }),
    );
    assert.equal(hello.status, 200, `for ${address}`);
    const headers = { 'Mcp-Session-Id': hello.headers['mcp-session-id'] };
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    return async () => (await client.exchange(ping, headers)).status;
  };
  const innocent = await begin('127.0.0.2');
  const greedy = [];
  for (let n = 10; n < 20; ++n) {
    for (let i = 0; i < 20; ++i) greedy.push(await begin(`127.0.0.${n}`));
  }
  for (let n = 20; n < 30; ++n) assert.equal(await (await begin(`127.0.0.${n}`))(), 200);
  assert.equal(await innocent(), 200, 'who has only one keeps it');
  assert.equal(await greedy[0](), 404, 'the client is to initialize again');
  assert.equal(await server.metric('sluice_sessions'), 50);
  assert.equal(await server.metric('sluice_sessions_displaced_total'), 161);
});

test('a slow reader does not slow the others or the model', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 3000, interval_us: 300 }));
  const slow = await WsClient.connect(server);
  t.after(() => slow.socket.terminate());
  await slow.call(...wire.subscribe(stream_id, 0));
  slow.socket.pause();
  const texts = await Promise.all([
    push_stream(server, stream_id).then((chunks) => wire.checked_text(chunks)),
    event_stream(server, stream_id).then((chunks) => wire.checked_text(chunks)),
  ]);
  for (const text of texts) assert.equal(wire.count_numbers(text), 3000);
  slow.socket.resume();
  assert.equal(
    wire.checked_text(await slow.whole(stream_id)),
    texts[0],
    'and has it all in the end',
  );
});

for (const [how, keys] of [
  ['keys', (name) => ({ Authorization: `Bearer ${name}-secret-0123456789` })],
  ['addresses', (name) => ({ 'X-Forwarded-For': name === 'greedy' ? '192.0.2.1' : '192.0.2.2' })],
]) {
  test(`buffers: a client's unfinished bodies leave room for others, told apart by ${how}`, async (t) => {
    const MiB = 1024 * 1024;
    const server = await start_server(t, [
      '--max-total-buffers',
      '16MiB',
      ...(how === 'keys'
        ? ['--api-key', 'greedy=greedy-secret-0123456789', '--api-key', 'modest=modest-secret-0123456789']
        : ['--trusted-proxy', '127.0.0.1']),
    ]);
    const post = async (name, size, sent = size) => {
      const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      const fields = Object.entries({
        Host: 'localhost',
        'Content-Type': 'application/json',
        'Content-Length': size,
        ...keys(name),
      });
      const head = fields.map(([field, value]) => `${field}: ${value}\r\n`).join('');
      connection.write(`POST /mcp HTTP/1.1\r\n${head}\r\n${ping}`);
      connection.write(' '.repeat(sent - ping.length));
      return connection;
    };
    const greedy = await Promise.all(
      Array.from({ length: 40 }, () => post('greedy', 4 * MiB, 3 * MiB)),
    );
    const is_refused = (connection) => connection.received.toString().includes(' 503 ');
    await until(() => greedy.filter(is_refused).length >= 36, 'the greedy client is refused');
    const metrics = await server.request({ path: '/metrics', headers: keys('modest') });
    const held = /^sluice_buffer_memory_bytes (\d+)/m.exec(metrics.body.toString())[1];
    assert.ok(held <= 9 * MiB, `${held} bytes are held`);
    const modest = await post('modest', 2 * MiB);
    await modest.until(() => modest.received.includes('"result"'), 'the modest one is answered');
  });
}
