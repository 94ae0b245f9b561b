// HTTP with SSE, the transport of 2024-11-05: with the official client that still supports it, and
// how it keeps out strangers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect_over, generate } from '../lib/mcp.mjs';
import { RawConnection } from '../lib/raw.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const connect = (t, server, headers = {}) =>
  connect_over(t, 'v1 (2025-11-25)', 'sse', {
    server,
    transport_options: { requestInit: { headers } },
  });

test('the official client lists, calls, gets progress, cancels and closes', async (t) => {
  const server = await start_server(t);
  const connection = await connect(t, server);
  const { client } = connection;
  assert.equal(client.getServerVersion()?.name, 'sluice');
  const { tools } = await client.listTools();
  assert.ok(tools.some(({ name }) => name === 'generate'));
  const { text, deltas } = await generate(connection, {
    prompt: 'Hello',
    count: 50,
    interval_us: 1000,
  });
  assert.equal(wire.count_numbers(text), 50);
  assert.ok(text.startsWith(deltas.map(({ message }) => message).join('')), 'in order');

  const breaker = new AbortController();
  await assert.rejects(
    generate(
      connection,
      { prompt: 'Hello', count: 1e6, interval_us: 1000 },
      { signal: breaker.signal, on_delta: () => breaker.abort(new Error('enough')) },
    ),
  );
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');
  const begun = new Promise((resolve) => {
    generate(
      connection,
      { prompt: 'Hello', count: 1e6, interval_us: 1000 },
      { on_delta: resolve },
    ).catch(() => {});
  });
  await begun;
  await client.close();
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'the slot is free');
  await until(async () => (await server.metric('sluice_sessions')) === 0, 'the session is gone');
});

test('many clients at once, their streams and posts on any loop', async (t) => {
  const server = await start_server(t, ['--threads', '3']);
  const counts = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const connection = await connect(t, server);
      const { text } = await generate(connection, { prompt: 'Hello', count: 20 + index });
      return wire.count_numbers(text);
    }),
  );
  assert.deepEqual(
    counts,
    counts.map((_, index) => 20 + index),
  );
});

test('a session is its own client’s, with keys and origins as everywhere', async (t) => {
  const server = await start_server(t, [
    '--api-key',
    'ann=0123456789abcdef',
    '--api-key',
    'bob=fedcba9876543210',
  ]);
  const ann = { Authorization: 'Bearer 0123456789abcdef' };
  const refused = await server.request({ path: '/sse' });
  assert.equal(refused.status, 401);
  const strange = await server.request({
    path: '/sse',
    headers: { ...ann, Origin: 'https://evil.example' },
  });
  assert.equal(strange.status, 403);

  const connection = await RawConnection.open(server);
  t.after(() => connection.destroy());
  connection.write(
    `GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${ann.Authorization}\r\n\r\n`,
  );
  const [, endpoint] = await connection.until(
    () => /event: endpoint\ndata: (\S+)\n\n/.exec(connection.received.toString()),
    'the endpoint is told',
  );
  const target = new URL(endpoint, 'http://localhost/sse');
  assert.match(endpoint, /^messages\?/, 'behind any path');
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'mine', method: 'ping' });
  const send = (headers, to = target.pathname + target.search) =>
    server.request({ method: 'POST', path: to, headers, body }).then(({ status }) => status);
  assert.equal(await send({}), 401);
  assert.equal(await send({ Authorization: 'Bearer fedcba9876543210' }), 404);
  assert.equal(await send(ann, '/messages?sessionId=0123456789abcdef0123456789abcdef'), 404);
  assert.equal(await send(ann), 202);
  await connection.until(() => connection.received.includes('"id":"mine"'), 'the answer came');
  const other = await connect(t, server, { Authorization: 'Bearer fedcba9876543210' });
  await other.client.ping();
});

test('the server ends while clients listen', async (t) => {
  const server = await start_server(t, ['--shutdown-deadline', '20s']);
  const connection = await RawConnection.open(server);
  connection.write('GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await connection.until(() => connection.received.includes('endpoint'), 'the stream is open');
  const begun = performance.now();
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  await connection.closed();
  assert.ok(performance.now() - begun < 5000, 'nobody waited for the listener');
});
