// The stream methods: starting, reading over every delivery, acknowledging, stopping.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open_page } from '../lib/browser.mjs';
import * as mcp from '../lib/mcp.mjs';
import {
  curl_stream,
  event_stream,
  parse_events,
  poll_stream,
  push_stream,
} from '../lib/readers.mjs';
import { HttpClient, RpcError, WsClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const fails_with = (code) => (error) => error instanceof RpcError && error.code === code;

test('one stream reaches a poller, two kinds of push, curl, Chromium and an MCP client whole', async (t) => {
  const server = await start_server(t);
  const page = await open_page(t, server);
  const connection = await mcp.connect(t, server, 'v1 (2025-11-25)');
  const client = new HttpClient(server);
  const count = 1500;
  const { stream_id } = await client.call(...wire.start({ count, interval_us: 2000 }));

  // The readers that keep unread chunks alive are attached first. The poller frees the chunks it
  // has read, so it must find the others already there.
  const attached = [];
  const reader = (read) => {
    let seen;
    attached.push(new Promise((resolve) => (seen = resolve)));
    return read(seen);
  };
  const readers = [
    reader((seen) => push_stream(server, stream_id, { on_chunk: seen })),
    reader((seen) => event_stream(server, stream_id, { on_chunk: seen })),
    reader((seen) => event_stream(server, stream_id, { on_chunk: seen, drop_after: 100 })),
    reader((seen) => curl_stream(server, stream_id, { on_chunk: seen })),
  ];
  const in_mcp = reader((seen) =>
    mcp.generate(connection, wire.attach_arguments(stream_id), { on_delta: seen }),
  );
  let page_sees;
  attached.push(new Promise((resolve) => (page_sees = resolve)));
  await page.exposeFunction('page_sees', () => page_sees());
  const in_page = page.evaluate(
    ([url, method, params]) =>
      new Promise((resolve, reject) => {
        const chunks = [];
        const socket = new WebSocket(url);
        socket.onerror = reject;
        socket.onopen = () =>
          socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
        socket.onmessage = (event) => {
          const message = JSON.parse(event.data);
          if (message.error) reject(new Error(message.error.message));
          if (message.id !== undefined) return;
          if (chunks.length === 0) globalThis.page_sees();
          chunks.push(message.params);
          if (message.params.end) resolve(chunks);
        };
      }),
    [server.ws_url, ...wire.subscribe(stream_id, 0)],
  );
  await Promise.race([Promise.all(attached), Promise.all([...readers, in_mcp, in_page])]);

  const leisurely = () => new Promise((resolve) => setTimeout(resolve, 50));
  readers.push(poll_stream(client, stream_id, { pace: leisurely }));
  readers.push(in_page);
  const texts = (await Promise.all(readers)).map((chunks) => wire.checked_text(chunks));
  assert.equal(wire.count_numbers(texts[0]), count);
  for (const text of texts) assert.equal(text, texts[0]);

  const { deltas, text } = await in_mcp;
  assert.equal(text, texts[0], 'the tool result is the whole text');
  assert.equal(deltas.map((delta) => delta.message).join(''), texts[0]);
});

test('run starts with an id, and its whole result equals the streamed one', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const started = await client.call(...wire.start({ count: 40 }));
  assert.match(started.stream_id, /^[a-z0-9]{16}$/);
  assert.equal(started.status, 'streaming_started');
  const streamed = wire.checked_text(await poll_stream(client, started.stream_id));
  assert.equal(wire.count_numbers(streamed), 40);
  const whole = wire.whole_text(await client.call(...wire.whole({ count: 40 })));
  assert.equal(wire.without_clock(whole), wire.without_clock(streamed));
});

test('from_seq acknowledges: what is above it may be asked for again, what is below is gone', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 30 }));
  const all = await poll_stream(client, stream_id, { wait_ms: 5000, acknowledge: false });
  assert.equal(wire.count_numbers(wire.checked_text(all)), 30);

  const again = await client.call(...wire.poll(stream_id, 0));
  assert.deepEqual(again.chunks, all, 'a lost reply loses nothing');
  assert.equal(again.stream_id, stream_id);
  assert.equal(again.has_more, false);

  const rest = await client.call(...wire.poll(stream_id, 20));
  assert.deepEqual(rest.chunks, all.slice(20));
  const reply = await client.reply(...wire.poll(stream_id, 10));
  assert.equal(reply.error?.code, wire.codes.invalid_state);
  assert.equal(reply.error.data.oldest_seq, 20, 'the gap error names the oldest kept chunk');
});

test('has_more stays true while nothing is buffered yet, and wait_ms waits for a chunk', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 3, interval_us: 700_000 }));
  const first = await client.call(...wire.poll(stream_id, 0, 5000));
  const seq = first.chunks.length;
  const empty = await client.call(...wire.poll(stream_id, seq));
  assert.deepEqual(empty, { stream_id, chunks: [], has_more: true });
  const before = performance.now();
  const waited = await client.call(...wire.poll(stream_id, seq, 20_000));
  assert.ok(waited.chunks.length > 0, 'the long poll answers with the chunk it waited for');
  assert.ok(performance.now() - before < 15_000, 'and as soon as it is there');
  const short = await client.call(...wire.poll(stream_id, seq + waited.chunks.length, 1));
  assert.equal(typeof short.has_more, 'boolean');
  await client.call(...wire.abort(stream_id));
});

test('over WebSocket the reply with the id comes first, and streams share the connection', async (t) => {
  const server = await start_server(t);
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  const order = [];
  socket.socket.on('message', (data) => {
    const message = JSON.parse(data.toString());
    order.push(message.result?.stream_id ?? message.params.stream_id);
  });
  const counts = [25, 50, 75, 100, 125];
  const started = await Promise.all(
    counts.map((count) => socket.call(...wire.start({ count, interval_us: 500 }))),
  );
  const firsts = [...new Set(order)];
  for (const [index, { stream_id }] of started.entries()) {
    const chunks = await socket.whole(stream_id);
    assert.equal(wire.count_numbers(wire.checked_text(chunks)), counts[index]);
    assert.ok(
      chunks.every((chunk) => chunk.method === 'run'),
      "the caller's method comes back",
    );
    const replied = order.indexOf(stream_id);
    assert.ok(replied >= 0 && firsts.includes(stream_id));
    assert.equal(
      order.filter((id) => id === stream_id).length,
      chunks.length + 1,
      'one reply and one message a chunk',
    );
  }
});

test('the first message about a stream on a WebSocket is the reply', async (t) => {
  const server = await start_server(t);
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  for (let round = 0; round < 50; ++round) {
    const first = new Promise((resolve) => socket.socket.once('message', resolve));
    const started = socket.call(...wire.start({ count: 1 }));
    assert.ok(JSON.parse((await first).toString()).result?.stream_id, 'a reply, not a chunk');
    await socket.whole((await started).stream_id);
  }
});

test('a WebSocket client resumes after a reconnect from any kept seq', async (t) => {
  const server = await start_server(t);
  const first = await WsClient.connect(server);
  const { stream_id } = await first.call(...wire.start({ count: 600, interval_us: 1000 }));
  await first.when(() => first.chunks(stream_id).length >= 40, 'forty chunks');
  first.socket.terminate();
  await first.closed;
  const had = first.chunks(stream_id).slice(0, 40);

  const chunks = await push_stream(server, stream_id, { from: 40 });
  assert.equal(
    wire.count_numbers(had.map((chunk) => chunk.delta).join('') + wire.checked_text(chunks, 40)),
    600,
  );
});

test('a WebSocket client bounds its window and acknowledges', async (t) => {
  const server = await start_server(t);
  const http = new HttpClient(server);
  const { stream_id } = await http.call(...wire.start({ count: 100 }));
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  await socket.call(...wire.subscribe(stream_id, 0, 10));
  await socket.when(() => socket.chunks(stream_id).length >= 10, 'a full window');
  let acknowledged = 0;
  while (!socket.chunks(stream_id).at(-1).end) {
    // One round trip later, no chunks beyond the window have arrived.
    await socket.call(...wire.is_running(stream_id));
    const sent = socket.chunks(stream_id).length;
    assert.ok(sent <= acknowledged + 10, `${sent} chunks sent, ${acknowledged} acknowledged`);
    acknowledged = Math.min(sent, acknowledged + 7);
    await socket.call(...wire.ack(stream_id, acknowledged));
    await socket.when(
      () => socket.chunks(stream_id).length > sent || socket.chunks(stream_id).at(-1).end,
      'the window moved on',
    );
  }
  assert.equal(wire.count_numbers(wire.checked_text(socket.chunks(stream_id))), 100);
});

test('EventSource semantics: event ids are seqs, Last-Event-ID and from_seq resume', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 50 }));
  const read = async (query, headers) => {
    const answer = await server.request({ path: wire.path.stream(stream_id) + query, headers });
    assert.equal(answer.status, 200);
    assert.match(answer.headers['content-type'], /^text\/event-stream/);
    return parse_events(answer.body.toString()).map((event) => {
      const chunk = wire.chunk_of_event(event);
      assert.equal(event.id, String(chunk.seq));
      return chunk;
    });
  };
  const all = await read('', {});
  assert.equal(wire.count_numbers(wire.checked_text(all)), 50);
  assert.deepEqual(await read('', { 'Last-Event-ID': '29' }), all.slice(30));
  assert.deepEqual(await read('?from_seq=10', {}), all.slice(10));
});

test('abort stops the producer, and what came before stays readable', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 1_000_000, interval_us: 1000 }));
  const { chunks } = await client.call(...wire.poll(stream_id, 0, 10_000));
  assert.ok(chunks.length > 0);
  const before = await client.call(...wire.is_running(stream_id));
  assert.equal(before.status, 'running');
  await client.call(...wire.abort(stream_id));
  const all = await poll_stream(client, stream_id, { wait_ms: 10_000 });
  assert.ok(all.at(-1).end);
  const numbers = wire.count_numbers(all.map((chunk) => chunk.delta).join(''));
  assert.ok(numbers > 0 && numbers < 1_000_000);
  const after = await client.call(...wire.is_running(stream_id));
  assert.equal(after.status, 'idle');
  assert.equal(after.state, 'finished');
});

test("streams lists the caller's own and nobody else's; foreign ids are not found", async (t) => {
  const server = await start_server(t, [
    '--api-key',
    'alice=alice-key-0123456789',
    '--api-key',
    'bob=bob-key-0123456789abc',
  ]);
  const alice = new HttpClient(server, { key: 'alice-key-0123456789' });
  const bob = new HttpClient(server, { key: 'bob-key-0123456789abc' });
  const mine = await alice.call(...wire.start({ count: 5 }));
  const other = await alice.call(...wire.start({ count: 5 }));
  const ids = async (client) =>
    (await client.call(...wire.streams())).streams.map((stream) => stream.stream_id).sort();
  assert.deepEqual(await ids(alice), [mine.stream_id, other.stream_id].sort());
  assert.deepEqual(await ids(bob), []);

  const unknown = 'a'.repeat(16);
  for (const ask of [
    wire.poll(mine.stream_id, 0),
    wire.abort(mine.stream_id),
    wire.is_running(mine.stream_id),
  ]) {
    const foreign = await bob.reply(...ask);
    const missing = await bob.reply(ask[0], { ...ask[1], stream_id: unknown });
    assert.equal(foreign.error?.code, wire.codes.not_found);
    assert.deepEqual(
      { ...foreign, id: 0 },
      { ...missing, id: 0 },
      'a foreign stream looks like none',
    );
  }
  const socket = await WsClient.connect(server, { key: 'bob-key-0123456789abc' });
  t.after(() => socket.close());
  await assert.rejects(
    socket.call(...wire.subscribe(mine.stream_id, 0)),
    fails_with(wire.codes.not_found),
  );
  const sse = await server.request({
    path: wire.path.stream(mine.stream_id),
    headers: { Authorization: 'Bearer bob-key-0123456789abc' },
  });
  assert.equal(sse.status, 404);
  assert.equal(wire.count_numbers(wire.checked_text(await poll_stream(alice, mine.stream_id))), 5);
});

test('without keys the principal is the address that calls', async (t) => {
  const server = await start_server(t);
  const here = new HttpClient(server);
  const there = new HttpClient(server, { local_address: '127.0.0.2' });
  const { stream_id } = await here.call(...wire.start({ count: 5 }));
  assert.equal(await there.code_of(...wire.poll(stream_id, 0)), wire.codes.not_found);
  assert.equal(wire.count_numbers(wire.checked_text(await poll_stream(here, stream_id))), 5);
});

test('a key that is missing or wrong is refused with 401', async (t) => {
  const server = await start_server(t, ['--api-key', 'alice=alice-key-0123456789']);
  for (const headers of [{}, { Authorization: 'Bearer wrong-key-0123456789' }]) {
    const answer = await server.request({
      method: 'POST',
      path: '/mcp',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'streams', params: {} }),
    });
    assert.equal(answer.status, 401);
    assert.match(answer.headers['www-authenticate'] ?? '', /^Bearer/);
  }
});

test('request ids come back exactly as they came, over both transports', async (t) => {
  const server = await start_server(t);
  const ids = [
    '0',
    '-1',
    '9007199254740993',
    '18446744073709551615',
    '-9223372036854775808',
    '123456789012345678901234567890',
    '"a"',
    '""',
    '"\\u00e9\\ud83d\\ude00"',
    '"1"',
  ];
  const client = new HttpClient(server);
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  for (const id of ids) {
    const text = `{"jsonrpc":"2.0","id":${id},"method":"streams","params":{}}`;
    const { body } = await client.exchange(text);
    const pushed = new Promise((resolve) => socket.socket.once('message', resolve));
    socket.socket.send(text);
    for (const reply of [body.toString(), (await pushed).toString()]) {
      if (id.startsWith('"')) assert.equal(JSON.parse(reply).id, JSON.parse(id));
      else assert.ok(new RegExp(`"id":${id}[,}]`).test(reply), `${id} in ${reply}`);
    }
  }
});

test('reading without from_seq acknowledges nothing; ack over HTTP frees without reading', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 20 }));
  const all = await poll_stream(client, stream_id, { acknowledge: false, wait_ms: 5000 });
  const { chunks } = await client.call('run', { stream_id });
  assert.deepEqual(chunks, all);
  assert.deepEqual(
    (await client.call('run', { stream_id })).chunks,
    all,
    'nothing was acknowledged',
  );
  await client.call(...wire.ack(stream_id, 12));
  assert.deepEqual((await client.call('run', { stream_id })).chunks, all.slice(12));
  assert.equal(await client.code_of(...wire.poll(stream_id, 11)), wire.codes.invalid_state);
  assert.equal(await client.code_of(...wire.ack(stream_id, 1000)), wire.codes.invalid_state);
});

test('cancel is abort; both say so of a stream that had ended', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const { stream_id } = await client.call(...wire.start({ count: 100_000_000, interval_us: 1000 }));
  assert.equal((await client.call('cancel', { stream_id })).status, 'aborted');
  const chunks = await poll_stream(client, stream_id, { wait_ms: 5000 });
  assert.equal(chunks.at(-1).finish_reason, 'cancelled');
  assert.equal((await client.call('abort', { stream_id })).status, 'finished');
});

test('unsubscribe stops the push and leaves the stream', async (t) => {
  const server = await start_server(t);
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  const { stream_id } = await socket.call(...wire.start({ count: 100_000_000, interval_us: 1000 }));
  await socket.when(() => socket.chunks(stream_id).length > 3, 'some chunks');
  await socket.call('unsubscribe', { stream_id });
  const had = socket.chunks(stream_id).length;
  const { status, next_seq } = await socket.call(...wire.is_running(stream_id));
  assert.equal(status, 'running');
  await until(
    async () => (await socket.call(...wire.is_running(stream_id))).next_seq > next_seq + 20,
    'it goes on',
  );
  assert.equal(socket.chunks(stream_id).length, had, 'nothing more is pushed');
  await socket.call(...wire.abort(stream_id));
});

test('the streaming extension is announced in every era', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const legacy = await client.call('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'e2e', version: '1' },
  });
  assert.equal(legacy.protocolVersion, '2025-11-25');
  assert.equal(legacy.capabilities.streaming, true);
  assert.ok(legacy.capabilities.extensions['dev.sluice/streams']);
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'e2e', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  };
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' };
  const modern = JSON.parse((await client.exchange(JSON.stringify(body), headers)).body.toString());
  assert.ok(modern.result.supportedVersions.includes('2026-07-28'));
  assert.ok(modern.result.capabilities.extensions['dev.sluice/streams']);
  // Headers that contradict the body are refused (2026-07-28, Server Validation).
  const mismatch = await client.exchange(JSON.stringify(body), {
    ...headers,
    'Mcp-Method': 'tools/list',
  });
  assert.equal(mismatch.status, 400);
  assert.equal(JSON.parse(mismatch.body.toString()).error.code, -32020);
});
