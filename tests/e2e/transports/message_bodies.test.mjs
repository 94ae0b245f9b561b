// A POST with many messages, one per line, that are answered while the body arrives.

import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const line = (message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
const kLines = 'application/x-ndjson';

// Begins a POST whose body is written later: {request, messages, response, ended}.
function begin(t, server, headers = {}) {
  const request = http.request(server.mcp_url, {
    method: 'POST',
    agent: false,
    headers: { 'Content-Type': kLines, Accept: kLines, ...headers },
  });
  t.after(() => request.destroy());
  const post = { request, messages: [] };
  request.on('error', () => {});
  post.response = new Promise((resolve) => request.once('response', resolve));
  post.ended = post.response.then(
    (response) =>
      new Promise((resolve) => {
        let rest = '';
        response.setEncoding('utf8');
        response.on('data', (text) => {
          const lines = (rest + text).split('\n');
          rest = lines.pop();
          for (const one of lines) post.messages.push(JSON.parse(one));
        });
        response.on('end', () => resolve(response));
        response.on('error', () => resolve(response));
      }),
  );
  return post;
}

test('a conversation in one request: each message is answered while the body goes on', async (t) => {
  const server = await start_server(t);
  const { request, messages, ended } = begin(t, server);
  for (let id = 1; id <= 20; ++id) {
    request.write(line({ id, method: 'ping' }));
    await until(() => messages.some((message) => message.id === id), `${id} is answered`);
  }
  request.write('this is no message\n');
  await until(() => messages.some(({ error }) => error?.code === wire.codes.parse), 'it is told');
  const call = (id, count) =>
    line({
      id,
      method: 'tools/call',
      params: {
        name: 'stream_numbers',
        arguments: { count, interval_ms: 1 },
        _meta: { progressToken: id },
      },
    });
  request.end(call('slow', 200) + call('quick', 2));
  const { statusCode, headers } = await ended;
  assert.equal(statusCode, 200);
  assert.equal(headers['content-type'], kLines);
  const place = (id) => messages.findIndex((message) => message.id === id);
  assert.ok(place('quick') < place('slow'), 'what is quicker does not wait');
  assert.equal(messages.filter(({ params }) => params?.progressToken === 'slow').length, 200);
});

test('ten thousand messages go through one body, in bounded memory, also compressed', async (t) => {
  const server = await start_server(t);
  const count = 10_000;
  const { request, messages, ended } = begin(t, server);
  for (let id = 0; id < count; ++id) {
    if (!request.write(line({ id, method: 'ping' }))) {
      await new Promise((resolve) => request.once('drain', resolve));
    }
  }
  request.end();
  await ended;
  assert.deepEqual(
    messages.map(({ id }) => id),
    Array.from({ length: count }, (_, id) => id),
  );
  const body = gzipSync(line({ id: 1, method: 'ping' }) + line({ id: 2, method: 'ping' }));
  const zipped = await server.request({
    method: 'POST',
    path: '/mcp',
    headers: { 'Content-Type': kLines, 'Content-Encoding': 'gzip' },
    body,
  });
  assert.deepEqual(
    wire.event_messages(zipped.body.toString()).map(({ id }) => id),
    [1, 2],
  );
});

test('a client that goes in the middle of its body frees what it had asked for', async (t) => {
  const server = await start_server(t);
  const { request } = begin(t, server);
  request.write(
    line({
      id: 1,
      method: 'tools/call',
      params: { name: 'generate', arguments: { prompt: 'x', count: 1e6, interval_us: 1000 } },
    }),
  );
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 1, 'it is at work');
  request.destroy();
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'the slot is free');
});

test('a message that is too long is refused by itself', async (t) => {
  const server = await start_server(t, ['--max-body', '64KiB']);
  const { request, messages, ended } = begin(t, server);
  request.write(line({ id: 1, method: 'ping', params: { x: 'x'.repeat(100_000) } }));
  request.end(line({ id: 2, method: 'ping' }));
  await ended;
  assert.match(messages[0].error.message, /longer than 65536 bytes/);
  assert.equal(messages[1].id, 2);
});
