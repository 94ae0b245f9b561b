// The HTTP server itself: compression, TLS, pages of other origins, health, shutdown.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { make_certificate } from '../lib/certificate.mjs';
import { connect, generate } from '../lib/mcp.mjs';
import { RawConnection, close_code, frame, parse_frames, upgrade } from '../lib/raw.mjs';
import { curl_stream, poll_stream, push_stream } from '../lib/readers.mjs';
import { HttpClient, WsClient, unwrap } from '../lib/rpc.mjs';
import { parse_metrics, run_program, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const message = (method, params, id = 1) => JSON.stringify({ jsonrpc: '2.0', id, method, params });

test('replies above the threshold are gzipped for those who accept it, others never', async (t) => {
  const server = await start_server(t, [wire.flag.compression_threshold, '1024']);
  const client = new HttpClient(server);
  const long = message(...wire.whole({ count: 200 }));
  const short = message(...wire.whole({ count: 1 }));
  const accept = { 'Accept-Encoding': 'gzip' };

  const packed = await client.exchange(long, accept);
  assert.equal(packed.headers['content-encoding'], 'gzip');
  assert.match(packed.headers.vary ?? '', /accept-encoding/i);
  const text = zlib.gunzipSync(packed.body).toString();
  assert.ok(packed.body.length < text.length / 2, `${packed.body.length} of ${text.length} bytes`);
  assert.equal(wire.count_numbers(wire.whole_text(unwrap(JSON.parse(text)))), 200);

  for (const [what, body, headers] of [
    ['not asked for', long, {}],
    ['declined', long, { 'Accept-Encoding': 'gzip;q=0, br' }],
    ['short', short, accept],
  ]) {
    const plain = await client.exchange(body, headers);
    assert.equal(plain.headers['content-encoding'], undefined, what);
    unwrap(JSON.parse(plain.body.toString()));
  }
});

test('gzipped and deflated request bodies are read, bombs are refused with 413', async (t) => {
  const server = await start_server(t, [wire.flag.max_body, '1MiB']);
  const client = new HttpClient(server);
  const text = message('tools/call', { name: 'echo', arguments: { text: 'x'.repeat(10_000) } });
  for (const [coding, pack] of [
    ['gzip', zlib.gzipSync],
    ['deflate', zlib.deflateSync],
  ]) {
    const { body } = await client.exchange(pack(text), { 'Content-Encoding': coding });
    assert.equal(unwrap(JSON.parse(body.toString())).content[0].text.length, 10_000, coding);
  }
  const bomb = zlib.gzipSync(Buffer.alloc(256 << 20));
  assert.ok(bomb.length < 1 << 20, 'the bomb is small enough to get in');
  const before = performance.now();
  const { status } = await client.exchange(bomb, { 'Content-Encoding': 'gzip' });
  assert.equal(status, 413);
  assert.ok(performance.now() - before < 2000, 'without unpacking all of it');
  const cut = zlib.gzipSync(text).subarray(0, 40);
  assert.equal((await client.exchange(cut, { 'Content-Encoding': 'gzip' })).status, 400);
});

test('permessage-deflate: large messages are compressed both ways, small chunks are not', async (t) => {
  const server = await start_server(t, [wire.flag.max_body, '1MiB']);
  const socket = await WsClient.connect(server, {
    options: { perMessageDeflate: { threshold: 0 } },
  });
  t.after(() => socket.close());
  assert.match(socket.socket.extensions, /permessage-deflate/);
  const raw = [];
  socket.socket._socket.on('data', (data) => raw.push(data));
  const text = 'abc'.repeat(20_000);
  const { content } = await socket.call('tools/call', { name: 'echo', arguments: { text } });
  assert.equal(content[0].text, text);
  const large = parse_frames(Buffer.concat(raw)).frames;
  assert.equal(large[0].rsv1, true, 'the large reply is compressed');
  assert.ok(large[0].payload.length < text.length / 10);

  raw.length = 0;
  const { stream_id } = await socket.call(...wire.start({ count: 50 }));
  assert.equal(wire.count_numbers(wire.checked_text(await socket.whole(stream_id))), 50);
  const frames = parse_frames(Buffer.concat(raw)).frames;
  assert.ok(frames.length > 50 && frames.every(({ rsv1 }) => !rsv1), 'chunks are sent as they are');
});

test('a WebSocket bomb is closed with 1009, broken compression with 1007', async (t) => {
  const server = await start_server(t, [wire.flag.max_body, '1MiB']);
  const offer = { headers: 'Sec-WebSocket-Extensions: permessage-deflate\r\n' };
  const bomb = await upgrade(server, offer);
  const packed = zlib.deflateRawSync(Buffer.alloc(64 << 20, ' '), {
    finishFlush: zlib.constants.Z_SYNC_FLUSH,
  });
  bomb.write(frame(1, packed.subarray(0, packed.length - 4), { rsv: 4 }));
  assert.equal(await close_code(bomb), 1009);
  const broken = await upgrade(server, offer);
  broken.write(frame(1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]), { rsv: 4 }));
  assert.equal(await close_code(broken), 1007);
  for (const connection of [bomb, broken]) connection.destroy();
});

test('TLS: every delivery works over it, plain HTTP on that port does not', async (t) => {
  const { certificate, key } = make_certificate(t);
  const server = await start_server(t, ['--tls-cert', certificate, '--tls-key', key]);
  assert.equal(server.tls, true, 'it prints https URLs');
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 300, interval_us: 1000 }));
  const [pushed, evented] = await Promise.all([
    push_stream(server, stream_id),
    curl_stream(server, stream_id),
  ]);
  const text = wire.checked_text(pushed);
  assert.equal(wire.count_numbers(text), 300);
  assert.equal(wire.checked_text(evented), text);

  // The certificate is valid, and no TLS version older than 1.2 is accepted.
  const ask = (options) =>
    new Promise((resolve, reject) => {
      https
        .get(
          { host: '127.0.0.1', port: server.port, path: '/healthz', agent: false, ...options },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        )
        .on('error', reject);
    });
  assert.equal(await ask({ ca: readFileSync(certificate) }), 200);
  await assert.rejects(
    ask({ rejectUnauthorized: false, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }),
  );

  const plain = await RawConnection.open(server);
  plain.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await plain.closed();
  assert.ok(!plain.received.toString('latin1').includes('200 OK'));
});

test('certificate files that are missing or do not fit are named', async (t) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const missing = path.join(directory, 'missing.pem');
  const outcome = await run_program([
    'serve',
    '--engine',
    'synthetic',
    '--port',
    '0',
    '--tls-cert',
    missing,
    '--tls-key',
    missing,
  ]);
  assert.ok(outcome.code === 1 || outcome.code === 2, `${outcome.code}`);
  assert.ok(outcome.stderr.includes(missing), outcome.stderr);
});

test('pages of this machine may call, others are refused, allowed ones get CORS headers', async (t) => {
  const server = await start_server(t, ['--allow-origin', 'https://app.example']);
  const body = message('streams', {});
  const ask = (headers) => server.request({ method: 'POST', path: '/mcp', headers, body });
  for (const origin of ['http://localhost:3000', 'http://127.0.0.1:5173', 'https://app.example']) {
    const { status, headers } = await ask({ Origin: origin });
    assert.equal(status, 200, origin);
    assert.equal(headers['access-control-allow-origin'], origin);
    assert.match(headers.vary ?? '', /origin/i);
  }
  for (const origin of [
    'https://evil.example',
    'null',
    'https://app.example.evil.example',
    'http://localhost.evil.example',
    'file://',
  ]) {
    const { status, headers } = await ask({ Origin: origin });
    assert.equal(status, 403, origin);
    assert.equal(headers['access-control-allow-origin'], undefined);
  }
  const socket = await RawConnection.open(server);
  socket.write(
    'GET /ws HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  assert.equal((await socket.response()).status, 403, 'a WebSocket of a foreign page');
  socket.destroy();
});

test('preflight requests are answered for pages that may call', async (t) => {
  const server = await start_server(t, ['--allow-origin', 'https://app.example']);
  const preflight = (origin) =>
    server.request({
      method: 'OPTIONS',
      path: '/mcp',
      headers: {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'content-type,mcp-protocol-version,authorization',
      },
    });
  const allowed = await preflight('https://app.example');
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers['access-control-allow-origin'], 'https://app.example');
  assert.match(allowed.headers['access-control-allow-methods'], /POST/);
  const names = allowed.headers['access-control-allow-headers'].toLowerCase();
  for (const name of ['content-type', 'mcp-protocol-version', 'authorization'])
    assert.ok(names.includes(name));
  assert.equal((await preflight('https://evil.example')).status, 403);
});

test('names that this server does not have are refused: DNS rebinding', async (t) => {
  const server = await start_server(t, ['--allow-host', 'sluice.example']);
  const ask = (host) => server.request({ path: '/healthz', headers: { Host: host } });
  for (const host of [
    'localhost',
    `localhost:${server.port}`,
    `127.0.0.1:${server.port}`,
    '[::1]',
    'sluice.example',
  ]) {
    assert.equal((await ask(host)).status, 200, host);
  }
  for (const host of ['evil.example', 'localhost.evil.example', 'sluice.example.evil.example']) {
    assert.equal((await ask(host)).status, 403, host);
  }
});

test('/healthz, /readyz and /metrics', async (t) => {
  const server = await start_server(t);
  assert.equal((await server.request({ path: '/healthz' })).status, 200);
  assert.equal((await server.request({ path: '/readyz' })).status, 200);
  const { status, headers, body } = await server.request({ path: '/metrics' });
  assert.equal(status, 200);
  assert.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
  const samples = parse_metrics(body.toString());
  assert.ok(samples.length > 20);
  const described = new Set(
    [...body.toString().matchAll(/^# TYPE (\S+) (?:counter|gauge|histogram)$/gm)].map(
      ([, name]) => name,
    ),
  );
  for (const { name } of samples) {
    assert.ok(
      described.has(name.replace(/_(bucket|sum|count)$/, '')) || described.has(name),
      `${name} has a TYPE`,
    );
  }
  const client = new HttpClient(server);
  const before = await server.metric('sluice_streams_started_total');
  const { stream_id } = await client.call(...wire.start({ count: 5 }));
  await poll_stream(client, stream_id);
  assert.equal(await server.metric('sluice_streams_started_total'), before + 1);
});

test('logs are JSON lines when asked for, and a peer cannot forge one', async (t) => {
  const server = await start_server(t, ['--log-format', 'json', '--log-level', 'debug']);
  await server.request({ path: '/%0a{"level":"forged"}' });
  await new HttpClient(server).exchange(
    '{"jsonrpc":"2.0","id":1,"method":"x\\n{\\"level\\":\\"forged\\"}"}',
  );
  const { code } = await server.stop();
  assert.equal(code, 0);
  const lines = server.output.split('\n').filter((line) => line.startsWith('{'));
  assert.ok(lines.length > 0, server.output);
  for (const line of lines) {
    const entry = JSON.parse(line);
    assert.notEqual(entry.level, 'forged');
    assert.ok(entry.time && entry.level && entry.message, line);
  }
});

test('graceful shutdown: a short answer is finished for every reader, then the program ends', async (t) => {
  const server = await start_server(t, [wire.flag.shutdown_deadline, '20s']);
  const client = new HttpClient(server);
  const started = await client.call(...wire.start({ count: 400, interval_us: 2000 }));
  const socket = await WsClient.connect(server);
  await socket.call(...wire.subscribe(started.stream_id));
  const polled = poll_stream(client, started.stream_id, { wait_ms: 500 });
  const connection = await connect(t, server, 'v2, 2026-07-28');
  let first_delta;
  const saw_delta = new Promise((resolve) => (first_delta = resolve));
  const called = generate(
    connection,
    { prompt: 'Hello', count: 400, interval_us: 2000 },
    { on_delta: first_delta },
  );
  await Promise.all([
    saw_delta,
    socket.when(() => socket.chunks(started.stream_id).length > 0, 'a chunk'),
  ]);

  server.signal('SIGTERM');
  assert.equal(wire.count_numbers(wire.checked_text(await socket.whole(started.stream_id))), 400);
  assert.equal(wire.count_numbers(wire.checked_text(await polled)), 400);
  assert.equal(wire.count_numbers((await called).text), 400);
  const { code, signal } = await server.exited;
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
});

test('graceful shutdown: an endless answer ends with an error at the deadline', async (t) => {
  const server = await start_server(t, [wire.flag.shutdown_deadline, '700ms']);
  const socket = await WsClient.connect(server);
  const { stream_id } = await socket.call(...wire.start({ count: 100_000_000, interval_us: 2000 }));
  await socket.when(() => socket.chunks(stream_id).length > 0, 'a chunk');
  const before = performance.now();
  server.signal('SIGTERM');
  const chunks = await socket.whole(stream_id);
  assert.equal(chunks.at(-1).error?.code, wire.codes.busy);
  assert.ok(chunks.at(-1).error.message.length > 0);
  assert.ok(wire.count_numbers(wire.checked_text(chunks)) > 0, 'what came before is whole');
  const { code, signal } = await server.exited;
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
  assert.ok(performance.now() - before < 10_000, 'and not long after it');
});

test('during a shutdown new work is refused', async (t) => {
  const server = await start_server(t, [wire.flag.shutdown_deadline, '20s']);
  const socket = await WsClient.connect(server);
  t.after(() => socket.socket.terminate());
  const { stream_id } = await socket.call(...wire.start({ count: 100_000_000, interval_us: 2000 }));
  server.signal('SIGTERM');
  const refused = await until(async () => {
    const reply = await socket.reply(...wire.start({ count: 1 }));
    return reply.error;
  }, 'new streams are refused');
  assert.equal(refused.code, wire.codes.busy);
  await socket.call(...wire.abort(stream_id));
  await socket.whole(stream_id);
  const { code } = await server.exited;
  assert.equal(code, 0);
});

test('a second signal ends at once', async (t) => {
  const server = await start_server(t, [wire.flag.shutdown_deadline, '60s']);
  const socket = await WsClient.connect(server);
  const { stream_id } = await socket.call(...wire.start({ count: 100_000_000, interval_us: 2000 }));
  server.signal('SIGINT');
  await until(
    async () => (await socket.reply(...wire.start({ count: 1 }))).error,
    'the shutdown began',
  );
  server.signal('SIGINT');
  await server.exited;
  server.may_die = true;
  assert.ok(socket.chunks(stream_id).length > 0);
});
