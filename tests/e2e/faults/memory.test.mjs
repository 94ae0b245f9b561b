// What requests leave behind in memory, and what happens when there is none.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { post, RawConnection } from '../lib/raw.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { is_sanitized, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const MiB = 1024 * 1024;

const call = (name, args, meta) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args, ...(meta && { _meta: meta }) },
  });
const run = (count) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'run', params: { prompt: 'x', count } });

function compressed(body, headers = '') {
  const packed = gzipSync(body);
  const head = post('', { headers: `Content-Encoding: gzip\r\n${headers}`, length: packed.length });
  return Buffer.concat([Buffer.from(head), packed]);
}

// Sanitizers take memory of their own, and end the process when there is none.
const options = { skip: is_sanitized && 'sanitizers have an allocator of their own' };

test('a small compressed request leaves little memory behind', options, async (t) => {
  const server = await start_server(t, ['--threads', '1']);
  const numbers = call('echo', { text: 'x', more: Array(200_000).fill(12345) });
  const before = server.memory();
  for (let n = 0; n < 3; ++n) {
    const connection = await RawConnection.open(server);
    connection.write(compressed(numbers));
    assert.ok(await connection.response());
    connection.destroy();
  }
  // The worker frees the parsed message after the answer.
  await until(() => server.memory() - before < 8 * MiB, 'the memory is given back');
});

test('a lack of memory costs requests, not the server', options, async (t) => {
  const server = await start_server(t, ['--threads', '1']);
  const limit = server.memory('VmSize') + 60 * MiB;
  execFileSync('prlimit', ['--pid', String(server.pid), `--as=${limit}`]);
  const long = call('echo', { text: 'y'.repeat(3_000_000) });
  const accepts_gzip = { headers: 'Accept-Encoding: gzip\r\n' };
  const requests = [
    post(run(100_000), accepts_gzip),
    post(long),
    Buffer.concat(Array(3).fill(compressed(long, accepts_gzip.headers))),
    post(run(50_000)).repeat(4),
    'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(500),
    post(call('stream_numbers', { count: 100_000 }, { progressToken: 1 }), {
      headers: 'Accept: application/json, text/event-stream\r\n',
    }),
  ];
  for (let round = 0; round < 1; ++round) {
    const connections = await Promise.all(
      Array.from({ length: 36 }, () => RawConnection.open(server)),
    );
    connections.forEach((connection, n) => connection.write(requests[n % requests.length]));
    // One of each kind is answered or given up. The others are dropped wherever they are.
    await Promise.all(
      connections
        .slice(0, requests.length)
        .map((connection) => connection.until(() => connection.received.length > 0 || connection.ended)),
    );
    for (const connection of connections) connection.destroy();
  }
  assert.match(server.output, /std::bad_alloc|thread cannot be started/, 'there was enough memory');
  const client = new HttpClient(server);
  await until(
    () => client.call(...wire.start({ count: 1 })).then(() => true, () => false),
    'the server has recovered',
  );
  await until(
    async () => (await server.metric('sluice_buffer_memory_bytes')) === 0,
    'the buffers are given back',
  );
});
