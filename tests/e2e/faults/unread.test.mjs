// Peers that send requests and do not read, and messages longer than the data that may wait to be
// sent. Nothing crashes, memory stays bounded, another client's stream continues, and a peer that
// reads gets everything.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { MiB, beside_an_innocent, deaf, stays_below } from '../lib/deaf.mjs';
import { RawConnection, frame, parse_frames, post, upgrade } from '../lib/raw.mjs';
import { HttpClient, WsClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import { StreamableClient, initialize } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

// More than the 4 MiB that may wait to be sent.
const kCount = 150_000;

const generate = (id, count = kCount) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: {
    name: 'generate',
    arguments: { prompt: 'x', count },
    _meta: { progressToken: 'p' },
  },
});

test('pipelined requests whose answers are not read wait, and a stream behind them too', async (t) => {
  const server = await start_server(t);
  await beside_an_innocent(server, async () => {
    const client = new HttpClient(server);
    const { stream_id } = await client.call(...wire.start({ count: 50 }));
    const connection = await deaf(t, server);
    const kRequests = 3000;
    const get = (path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    connection.write(get('/metrics').repeat(kRequests) + get(wire.path.stream(stream_id)));
    await stays_below(server, 2 * MiB);
    connection.read();
    const end = '"end":true';
    await connection.until(
      () => connection.received.includes(end, connection.received.length - 10_000),
      'the stream behind them came',
    );
    const text = connection.received.toString();
    assert.equal(text.split('HTTP/1.1 200 OK').length - 1, kRequests + 1);
  });
});

test('large answers to small compressed requests wait too', async (t) => {
  const server = await start_server(t);
  await beside_an_innocent(server, async () => {
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 'i'.repeat(3 * MiB), method: 'ping' });
    const body = gzipSync(ping);
    const head =
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const request = Buffer.concat([Buffer.from(head), body]);
    const before = server.memory();
    const connection = await deaf(t, server);
    connection.write(Buffer.concat(Array(100).fill(request)));
    await stays_below(server, 16 * MiB);
    assert.ok(server.memory() - before < 96 * MiB, `${server.memory() - before} bytes more`);
    connection.destroy();
    await until(
      async () => (await server.metric('sluice_buffer_memory_bytes')) === 0,
      'the buffers are given back',
    );
  });
});

test('a message longer than what may wait reaches a reader, whatever the transport', async (t) => {
  const server = await start_server(t, ['--max-stream-bytes', '64MiB']);
  const checked = (message) => {
    assert.equal(message.error, undefined);
    const text = message.result.content[0].text;
    assert.ok(text.length > 4 * MiB, `${text.length} bytes`);
    assert.equal(wire.count_numbers(text), kCount);
  };
  await t.test('lines', async () => {
    const { body } = await server.request({
      method: 'POST',
      path: '/mcp',
      headers: { 'Content-Type': 'application/x-ndjson', Accept: 'application/x-ndjson' },
      body: `${JSON.stringify(generate(1))}\n`,
    });
    checked(JSON.parse(body.toString().trim().split('\n').at(-1)));
  });
  await t.test('events', async () => {
    const { body } = await server.request({
      method: 'POST',
      path: '/mcp',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify(generate(1)),
    });
    const last = body.toString().trim().split('\n').at(-1);
    checked(JSON.parse(last.slice('data: '.length)));
  });
  await t.test('a batch, behind its progress', async () => {
    const { body } = await server.request({
      method: 'POST',
      path: '/mcp',
      headers: { Accept: 'text/event-stream', 'MCP-Protocol-Version': '2025-03-26' },
      body: JSON.stringify([generate(1), { ...generate(2), method: 'ping' }]),
    });
    const messages = wire.event_messages(body.toString()).flat();
    checked(messages.find(({ id }) => id === 1));
    assert.deepEqual(messages.find(({ id }) => id === 2).result, {});
  });
  await t.test('a session, however often its client is cut off within the message', async (t) => {
    const client = new StreamableClient(server, '2025-11-25');
    await client.ask(initialize('2025-11-25'));
    const { params } = generate(1);
    // The first event says where to resume.
    const begin = await RawConnection.open(server);
    const session = `Mcp-Session-Id: ${client.session}\r\nAccept: application/json, text/event-stream\r\n`;
    begin.write(
      post(JSON.stringify({ ...generate(1), params: { ...params, _meta: {} } }), {
        headers: `Content-Type: application/json\r\n${session}`,
      }),
    );
    const event_id = () => /^id: (.+)$/m.exec(begin.received.toString('latin1'))?.[1];
    const id = await begin.until(event_id, 'the first event came');
    begin.destroy();
    for (let cut = 1; cut <= 3; ++cut) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.write(
        `GET /mcp HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: ${id}\r\n${session}\r\n`,
      );
      await connection.until(() => connection.received.length > cut * MiB, 'a part of it came');
      connection.destroy();
    }
    const answers = [];
    for await (const message of client.get({ last_event_id: id })) answers.push(message);
    assert.equal(answers.length, 1);
    checked(answers[0]);
  });
  await t.test('WebSocket, beside other replies', async () => {
    const socket = await WsClient.connect(server, { options: { maxPayload: 64 * MiB } });
    t.after(() => socket.close());
    const { method, params } = generate(1);
    const long = socket.reply(method, params);
    const pings = [];
    for (let n = 0; n < 20; ++n) pings.push(socket.call('ping', {}));
    checked(await long);
    await Promise.all(pings);
    await socket.call('ping', {});
  });
});

test('one who does not read a long message is given up, and the server goes on', async (t) => {
  const server = await start_server(t, ['--max-stream-bytes', '64MiB', '--write-stall', '1s']);
  await beside_an_innocent(server, async () => {
    const body = JSON.stringify(generate(1));
    for (const headers of [
      'Content-Type: application/x-ndjson\r\nAccept: application/x-ndjson\r\n',
      'Content-Type: application/json\r\nAccept: text/event-stream\r\n',
    ]) {
      const connection = await deaf(t, server);
      connection.write(post(`${body}\n`, { headers }));
    }
    const socket = await upgrade(server);
    socket.socket.pause();
    t.after(() => socket.destroy());
    socket.write(frame(1, body));
    await until(
      async () => (await server.metric('sluice_connections_stalled_total')) >= 3,
      'all of them are given up',
    );
    await until(
      async () => (await server.metric('sluice_streaming_replies')) === 1,
      'no reply is left but that of the innocent',
    );
  });
});

test('a flood of WebSocket messages that nobody reads the answers of waits', async (t) => {
  const server = await start_server(t);
  await beside_an_innocent(server, async () => {
    const socket = await upgrade(server);
    t.after(() => socket.destroy());
    socket.socket.pause();
    const kMessages = 20_000;
    const messages = [];
    for (let id = 1; id <= kMessages; ++id) {
      messages.push(frame(1, JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })));
    }
    socket.write(Buffer.concat(messages));
    await stays_below(server, 4 * MiB);
    let answered = 0;
    socket.socket.on('data', () => {
      const { frames, rest } = parse_frames(socket.received);
      answered += frames.filter(({ opcode }) => opcode === 1).length;
      socket.received = rest;
    });
    socket.socket.resume();
    await until(() => answered === kMessages, 'each is answered once it reads');
  });
});

test('a reader slower than its streams gets of each, and answers to what it asks meanwhile', async (t) => {
  const server = await start_server(t);
  const socket = await upgrade(server);
  t.after(() => socket.destroy());
  const say = (id, method, params) =>
    socket.write(frame(1, JSON.stringify({ jsonrpc: '2.0', id, method, params })));
  const chunks = new Map();
  const answers = new Set();
  let pongs = 0;
  let read = 0;
  socket.socket.on('data', (data) => {
    read += data.length;
    const { frames, rest } = parse_frames(socket.received);
    socket.received = rest;
    for (const { opcode, payload } of frames) {
      if (opcode === 10) ++pongs;
      if (opcode !== 1) continue;
      const { id, params } = JSON.parse(payload);
      if (id !== undefined) answers.add(id);
      else chunks.set(params.stream_id, (chunks.get(params.stream_id) ?? 0) + 1);
    }
    // It reads on and on, but slowly.
    socket.socket.pause();
    setTimeout(() => socket.socket.resume(), 5);
  });
  for (let id = 1; id <= 3; ++id) say(id, ...wire.start({ count: 10_000_000, interval_us: 0 }));
  await until(() => read > 8 * MiB, 'the streams run');
  // Not counted: what the first of them sent before the others began.
  for (const stream_id of chunks.keys()) chunks.set(stream_id, 0);
  const asked_at = read;
  say(4, 'ping');
  say(5, 'tools/call', { name: 'echo', arguments: { text: 'x' } });
  socket.write(frame(9, 'ping'));
  await until(() => answers.has(4) && answers.has(5) && pongs === 1, 'what it asked is answered');
  assert.ok(read - asked_at < 32 * MiB, `${read - asked_at} bytes came before the answers`);
  await until(() => read - asked_at > 8 * MiB, 'the streams continue');
  const counts = [...chunks.values()];
  assert.equal(counts.length, 3);
  assert.ok(Math.min(...counts) > Math.max(...counts) / 2, `chunks of each: ${counts}`);
  for (const stream_id of chunks.keys()) say(`abort ${stream_id}`, ...wire.abort(stream_id));
  await until(() => answers.size === 8, 'the streams are aborted');
});

test('a head, a frame header or a body without its end holds next to nothing', async (t) => {
  const server = await start_server(t, ['--max-total-buffers', '16MiB']);
  await beside_an_innocent(server, async () => {
    const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n';
    for (let n = 0; n < 50; ++n) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.write(`${head}{`);
      const socket = await upgrade(server);
      t.after(() => socket.destroy());
      socket.write(frame(1, '{', { length: 4_000_000n }));
    }
    await stays_below(server, 0);

    let refused = 0;
    for (let n = 0; n < 30; ++n) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.write(head + ' '.repeat(2_000_000));
      connection.until(() => connection.received.includes('503')).then(
        () => ++refused,
        () => {},
      );
    }
    await until(() => refused > 0, 'what exceeds the memory is refused');
    await stays_below(server, 16 * MiB);
    const client = new HttpClient(server);
    assert.deepEqual(await client.call('ping', {}), {});
  });
});

const kLines = 'Content-Type: application/x-ndjson\r\nAccept: application/x-ndjson\r\n';
const chunk = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

test('a body of many messages is not read on while its answers are unread', async (t) => {
  const server = await start_server(t);
  await beside_an_innocent(server, async () => {
    const connection = await deaf(t, server);
    connection.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${kLines}Transfer-Encoding: chunked\r\n\r\n` +
        chunk(`${JSON.stringify(generate(1, 1_000_000))}\n`),
    );
    await until(
      async () => (await server.metric(wire.metric.output_bytes)) > 0,
      'its answers wait',
    );
    connection.write(chunk(' \n'.repeat(5000)).repeat(4000));
    await stays_below(server, 2 * MiB);
    const read = await server.metric('sluice_received_bytes_total');
    assert.ok(read < 20 * MiB, `${read} bytes read`);
    assert.ok(!connection.ended);
  });
});

test('lines without an end are bounded too', async (t) => {
  const server = await start_server(t, ['--max-total-buffers', '16MiB']);
  await beside_an_innocent(server, async () => {
    let ended = 0;
    for (let n = 0; n < 30; ++n) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.write(
        `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${kLines}Content-Length: 4000000\r\n\r\n` +
          '{'.repeat(2_000_000),
      );
      connection.closed().then(
        () => ++ended,
        () => {},
      );
    }
    await until(() => ended > 0, 'what exceeds the memory is broken off');
    await stays_below(server, 16 * MiB);
    assert.ok(server.memory() < 64 * MiB, `${server.memory()} bytes`);
  });
});
