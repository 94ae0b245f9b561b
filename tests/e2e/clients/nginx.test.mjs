// Clients behind nginx. `plain` sets nothing but a path: with nginx's defaults - buffers, HTTP/1.0, a
// limit for silent servers - every revision works over every transport but WebSocket. `whole` is the
// configuration that docs/behind-a-proxy.md shows. Only the time limit is shorter than 60 seconds.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { after, describe, test } from 'node:test';
import WebSocket from 'ws';
import { LineClient } from '../lib/lines.mjs';
import { connect_over, generate, generations } from '../lib/mcp.mjs';
import { behind, start_nginx } from '../lib/nginx.mjs';
import { event_stream, parse_events, poll_stream, push_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { root, start_server, until } from '../lib/server.mjs';
import { StreamableClient, events, initialize, modern } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

const kLimit = 'proxy_read_timeout 7s;';
const kSilence = 9000; // ms
const kLegacy = ['2025-03-26', '2025-06-18', '2025-11-25'];
const kModern = '2026-07-28';
const kLines = 'application/x-ndjson';

const from_docs = /```nginx\n([\s\S]*?)```/.exec(
  readFileSync(path.join(root, 'docs/behind-a-proxy.md'), 'utf8'),
)[1];

const server = await start_server({ after }, [
  ...['--event-keep-alive', '2s', '--trusted-proxy', '127.0.0.1'],
]);
const at = `http://127.0.0.1:${server.port}`;
const plain = behind(
  { after },
  server,
  await start_nginx({ after }, `${kLimit} location /ai/ { proxy_pass ${at}/; }`),
  '/ai',
);
const whole = behind(
  { after },
  server,
  await start_nginx({ after }, kLimit + from_docs.replaceAll('http://127.0.0.1:8080', at)),
  '/ai',
);
const fronts = { plain, whole };

const counting = (count, interval_ms) => ({
  name: 'stream_numbers',
  arguments: { count, interval_ms },
});
const with_progress = (params) => ({ ...params, _meta: { progressToken: 'p' } });
const silent = counting(2, kSilence);
// Nothing follows the stream's first message, which a buffer would therefore hold back.
const kMinute = 60_000;

// A client over Streamable HTTP. `progress` begins a call and waits for its first progress message.
async function streamable(front, revision) {
  const client = new StreamableClient(front, revision);
  if (!client.modern) {
    await client.ask(initialize(revision));
    await client.ask({ method: 'notifications/initialized' });
  }
  let call;
  return {
    client,
    progress: async (params) => {
      call = client.post({ method: 'tools/call', params });
      return (await call.next()).value;
    },
    answer: (params) => client.ask({ method: 'tools/call', params }),
    leave: () => call.return(),
  };
}

// A client whose messages all arrive on one connection. What arrives is written to `output`.
async function on_one_connection(send, output, leave, revision) {
  const client = new LineClient({ on: () => {}, write: send }, output);
  const is_modern = revision === kModern;
  const complete = (params) => (is_modern ? modern(params) : params);
  if (!is_modern) {
    await client.call('initialize', initialize(revision).params);
    client.send({ method: 'notifications/initialized' });
  }
  const is_progress = ({ method }) => method === 'notifications/progress';
  return {
    progress: (params) => {
      client.send({ id: 'long', method: 'tools/call', params: complete(params) });
      return client.when(() => client.messages.find(is_progress), 'progress comes');
    },
    answer: (params) => client.reply('tools/call', complete(params)),
    leave,
  };
}

async function http_with_sse(front, revision) {
  const closing = new AbortController();
  const begin = `${front.base}/sse`;
  const stream = events(await fetch(begin, { signal: closing.signal }));
  const endpoint = new URL((await stream.next()).value.endpoint, begin);
  const send = (body) =>
    fetch(endpoint, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  const output = new PassThrough();
  const pump = async () => {
    for await (const message of stream) output.write(`${JSON.stringify(message)}\n`);
  };
  pump().then(
    () => output.end(),
    () => output.end(),
  );
  return on_one_connection(send, output, () => closing.abort(), revision);
}

async function websocket(front, revision) {
  const socket = new WebSocket(front.ws_url);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const output = new PassThrough();
  socket.on('message', (text) => output.write(`${text}\n`));
  socket.on('close', () => output.end());
  socket.on('error', () => {});
  const send = (text) => socket.send(text);
  return on_one_connection(send, output, () => socket.terminate(), revision);
}

const kWays = [
  ...[...kLegacy, kModern].flatMap((revision) => [
    { over: 'Streamable HTTP', revision, through: 'plain', open: streamable },
    { over: 'Streamable HTTP', revision, through: 'whole', open: streamable },
  ]),
  ...['2024-11-05', ...kLegacy].flatMap((revision) => [
    { over: 'HTTP with SSE', revision, through: 'plain', open: http_with_sse },
    { over: 'HTTP with SSE', revision, through: 'whole', open: http_with_sse },
  ]),
  ...['2024-11-05', ...kLegacy, kModern].map((revision) => ({
    ...{ over: 'WebSocket', revision, through: 'whole', open: websocket },
  })),
].map((way) => ({
  ...way,
  name: `${way.revision} over ${way.over}, ${way.through}`,
  start: () => way.open(fronts[way.through], way.revision),
}));

const is_free = () =>
  until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');

describe('progress comes while the call runs, and a call ends with who asked', () => {
  for (const { name, over, revision, start } of kWays) {
    test(name, async () => {
      const { client, progress, leave } = await start();
      assert.equal((await progress(with_progress(counting(2, kMinute)))).method, 'notifications/progress');
      assert.equal(await server.metric(wire.metric.slots_busy), 1);
      await leave();
      if (over === 'Streamable HTTP' && kLegacy.includes(revision)) {
        // Such a call waits for its client until the client cancels it.
        const params = { requestId: client.last_id };
        await client.ask({ method: 'notifications/cancelled', params });
      }
      await is_free();
    });
  }
});

describe('a call is resumed, each message comes once, and the session ends', () => {
  for (const revision of kLegacy) {
    for (const [through, front] of Object.entries(fronts)) {
      test(`${revision}, ${through}`, async () => {
        const { client } = await streamable(front, revision);
        const kCount = 60;
        const seen = [];
        let answer;
        let stream = client.post({
          method: 'tools/call',
          params: with_progress(counting(kCount, 10)),
        });
        while (!answer) {
          const { value, done } = await stream.next();
          assert.ok(!done, 'it is whole');
          if (value.result) answer = value.result;
          else seen.push(value.params.progress);
          if (seen.length % 10 === 0) {
            await stream.return();
            stream = client.get({ last_event_id: client.last_event_id });
          }
        }
        assert.deepEqual(
          seen,
          Array.from({ length: kCount }, (_, index) => index + 1),
        );
        assert.equal(await client.end(), 204);
        await client.ask({ method: 'ping' });
        assert.ok(client.arrows.includes('<- 404 application/json'), client.arrows.at(-2));
      });
    }
  }
});

// Each is silent for longer than nginx waits. The test checks that it is still open after that.
const kSilences = {
  'the standalone stream of a session': async () => {
    const { client } = await streamable(plain, '2025-11-25');
    let ended = false;
    const stream = client.get();
    stream.next().then(() => {
      ended = true;
    });
    await new Promise((resolve) => setTimeout(resolve, kSilence));
    assert.ok(!ended);
    await client.end();
    await until(() => ended, 'it ends with its session');
  },
  'a subscription': async () => {
    const client = new StreamableClient(plain, kModern);
    const notifications = { toolsListChanged: true };
    const stream = client.post({ method: 'subscriptions/listen', params: { notifications } });
    await stream.next();
    let ended = false;
    stream.next().then(() => {
      ended = true;
    });
    await new Promise((resolve) => setTimeout(resolve, kSilence));
    assert.ok(!ended);
  },
  'a batch': async () => {
    const call = (id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: silent });
    const { status, body } = await plain.request({
      method: 'POST',
      path: '/mcp',
      headers: { Accept: 'application/json, text/event-stream' },
      body: JSON.stringify([call(1), call(2)]),
    });
    assert.equal(status, 200);
    const replies = wire.event_messages(body.toString()).flat();
    assert.deepEqual(replies.map(({ id }) => id).toSorted(), [1, 2]);
  },
  'a body of many messages': async () => {
    const { status, body } = await plain.request({
      method: 'POST',
      path: '/mcp',
      headers: { 'Content-Type': kLines, Accept: 'text/event-stream' },
      body: `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: silent })}\n`,
    });
    assert.equal(status, 200);
    assert.equal(wire.event_messages(body.toString()).at(-1).id, 1);
  },
  'a stream as events': async () => {
    const client = new HttpClient(plain);
    const { stream_id } = await client.call(
      ...wire.start({ count: 2, interval_us: kSilence * 1000 }),
    );
    const { body } = await plain.request({ path: wire.path.stream(stream_id) });
    const chunks = parse_events(body.toString()).map(wire.chunk_of_event);
    assert.equal(wire.count_numbers(wire.checked_text(chunks)), 2);
  },
  'but not an answer that must be JSON': async () => {
    const { status } = await plain.request({
      method: 'POST',
      path: '/mcp',
      headers: { Accept: 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: silent }),
    });
    assert.equal(status, 504);
  },
};

describe('silence beyond the time limit', { concurrency: true }, () => {
  for (const { name, start } of kWays) {
    test(name, async () => {
      const { answer } = await start();
      const { result } = await answer(silent);
      assert.equal(result.isError ?? false, false);
    });
  }
  for (const [name, lasts] of Object.entries(kSilences)) test(name, lasts);
});

describe('the stream methods', () => {
  const kCount = 40;
  const begin = () =>
    new HttpClient(plain).call(...wire.start({ count: kCount, interval_us: 5000 }));
  const check = (chunks) => assert.equal(wire.count_numbers(wire.checked_text(chunks)), kCount);

  test('polls and long polls', async () => {
    const { stream_id } = await begin();
    check(await poll_stream(new HttpClient(plain), stream_id, { wait_ms: 5000 }));
  });
  test('an event arrives though nothing follows it', async () => {
    const client = new HttpClient(plain);
    const { stream_id } = await client.call(
      ...wire.start({ count: 2, interval_us: kMinute * 1000 }),
    );
    let aborted;
    const on_chunk = () => {
      aborted ??= client.call(...wire.abort(stream_id));
    };
    const chunks = await event_stream(plain, stream_id, { on_chunk });
    assert.equal(wire.count_numbers(wire.checked_text(chunks)), 1);
    await aborted;
  });
  test('events are resumed', async () => {
    const { stream_id } = await begin();
    const chunks = await event_stream(plain, stream_id, { drop_after: 5 });
    check(chunks);
    const last = { 'Last-Event-ID': String(chunks.length - 1) };
    const over = await plain.request({ path: wire.path.stream(stream_id), headers: last });
    assert.equal(over.status, 204);
  });
  test('a WebSocket is pushed to', async () => {
    const { stream_id } = await begin();
    check(await push_stream(whole, stream_id));
  });
});

describe('the official clients', () => {
  for (const [generation, { transports, era }] of Object.entries(generations)) {
    const kinds = { http: plain };
    if (transports.sse && era === 'legacy') kinds.sse = plain;
    if (transports.websocket) kinds.websocket = whole;
    for (const [kind, front] of Object.entries(kinds)) {
      test(`${generation} over ${kind}`, async (t) => {
        const connection = await connect_over(t, generation, kind, { server: front });
        const { tools } = await connection.client.listTools();
        assert.ok(tools.some(({ name }) => name === 'generate'));
        const breaker = new AbortController();
        const call = generate(
          connection,
          { prompt: 'Hello', count: 2, interval_us: kMinute * 1000 },
          { signal: breaker.signal, on_delta: () => breaker.abort(new Error('enough')) },
        );
        await assert.rejects(call, /enough/);
        await is_free();
      });
    }
  }
});

describe('what only the whole configuration has', () => {
  test('an answer to each message of a body that goes on', async (t) => {
    const request = http.request(whole.mcp_url, {
      ...{ method: 'POST', agent: false },
      headers: { 'Content-Type': kLines, Accept: kLines },
    });
    t.after(() => request.destroy());
    request.on('error', () => {});
    const response = new Promise((resolve) => request.once('response', resolve));
    const ping = (id) => request.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`);
    ping('a');
    let text = '';
    (await response).setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    await until(() => text.includes('"a"'), 'the first is answered');
    ping('b');
    await until(() => text.includes('"b"'), 'so is the next');
  });
  test('bodies of more than 1 MiB', async () => {
    const text = 'x'.repeat(3 << 20);
    const body = JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'echo', arguments: { text } },
    });
    const post = (front) => front.request({ method: 'POST', path: '/mcp', body });
    assert.equal((await post(plain)).status, 413);
    const { result } = JSON.parse((await post(whole)).body);
    assert.equal(wire.tool_text(result), text);
  });
  test('clients that are told apart', async () => {
    const found = async (front) => {
      const { stream_id } = await new HttpClient(front, { local_address: '127.0.0.8' }).call(
        ...wire.start({ count: 1 }),
      );
      const other = new HttpClient(front, { local_address: '127.0.0.9' });
      return (await other.code_of(...wire.is_running(stream_id))) === undefined;
    };
    assert.equal(await found(plain), true);
    assert.equal(await found(whole), false);
  });
  test('WebSocket', async () => {
    await assert.rejects(websocket(plain, kModern), /426|400/);
  });
});
