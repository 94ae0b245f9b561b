// `sluice serve --legacy-ports`: lines over TCP, for clients of an earlier server.

import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { open_page } from '../lib/browser.mjs';
import { socket_client } from '../lib/lines.mjs';
import { start_npu } from '../lib/npu.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { run_program, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kFlags = ['--legacy-ports', '--legacy-listen', '127.0.0.1:0'];

function place_of(server) {
  const [, host, port] = /^TCP lines {4}(\S+):(\d+)$/m.exec(server.output);
  return { host, port: Number(port) };
}

test('an answer of the NPU is pushed over TCP, with the method that asked for it', async (t) => {
  const server = await start_npu(t, '1.2.1', 'say Water \nsay is \nsay wet.\n', kFlags);
  const client = await socket_client(t, place_of(server));
  for (const method of ['run', 'rkllm_run', 'rkllm.run']) {
    const { stream_id, status } = await client.call(method, { prompt: 'Hello', stream: true });
    assert.equal(status, 'streaming_started');
    const of_stream = () =>
      client.messages.filter((each) => each.params?.stream_id === stream_id);
    await client.when(() => of_stream().at(-1)?.params.end, 'the stream ends');
    assert.ok(of_stream().every((each) => each.method === method));
    assert.equal(wire.checked_text(of_stream().map((each) => each.params)), 'Water is wet.');
  }
  assert.equal((await client.call('rkllm_init')).status, 'initialized');
});

test('a connection has its own session, and HTTP is served beside it', async (t) => {
  const server = await start_server(t, kFlags);
  const [one, other] = [
    await socket_client(t, place_of(server)),
    await socket_client(t, place_of(server)),
  ];
  assert.equal((await one.call('init')).status, 'initialized');
  assert.equal((await one.call('init')).status, 'already_initialized');
  assert.equal((await other.call('init')).status, 'initialized');
  assert.deepEqual(await new HttpClient(server).call('ping'), {});
  assert.equal(await server.metric('sluice_line_connections'), 2);
  assert.equal(await one.code_of('run', { prompt: 1 }), wire.codes.invalid_params);
  one.write('no message\n');
  await one.when(() => one.messages.some((each) => each.error?.code === wire.codes.parse), 'it is refused');
  assert.deepEqual(await one.call('ping'), {});
});

test('a page in a browser starts nothing', async (t) => {
  const server = await start_server(t, kFlags);
  const { host, port } = place_of(server);
  const run = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'run', params: wire.start()[1] });
  const page = await open_page(t, server);
  const outcome = await page.evaluate(
    ([url, body]) =>
      fetch(url, { method: 'POST', mode: 'no-cors', body }).then(
        () => 'an answer',
        () => 'no answer',
      ),
    [`http://${host}:${port}/`, `\n${run}\n${run}\n`],
  );
  assert.equal(outcome, 'no answer');
  await until(async () => (await server.metric('sluice_line_connections_total')) > 0, 'it came');
  await until(async () => (await server.metric('sluice_line_connections')) === 0, 'it is gone');
  assert.equal(await server.metric('sluice_streams_started_total'), 0);
});

test('another protocol is told what the port is for', async (t) => {
  const server = await start_server(t, kFlags);
  const request = http.request({ ...place_of(server), method: 'POST' });
  const error = await new Promise((resolve, reject) => {
    request.once('response', () => reject(new Error('there is an answer')));
    request.once('error', resolve);
    request.end('{}\n');
  });
  assert.match(error.rawPacket?.toString() ?? '', /one message per line, and no HTTP/);
});

test('it needs a server without keys, and a port', async (t) => {
  const serve = (...flags) => run_program(['serve', '--engine', 'synthetic', '--port', '0', ...flags]);
  const keys = await serve(...kFlags, '--api-key', 'ada=0123456789abcdef');
  assert.equal(keys.code, 2);
  assert.match(keys.stderr, /^sluice: --legacy-ports: its clients have no way to give a key/);
  const server = await start_server(t, kFlags);
  const { host, port } = place_of(server);
  const taken = await serve('--legacy-ports', '--legacy-listen', `${host}:${port}`);
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /the port is taken/);
});
