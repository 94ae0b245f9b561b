// Everything that a peer can get wrong. Each mistake gets its documented error, and the stream of
// another client, which runs all the time, arrives complete.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Innocent } from '../lib/innocent.mjs';
import {
  RawConnection,
  close_code,
  close_frame,
  frame,
  parse_frames,
  post,
  text_message,
  upgrade,
} from '../lib/raw.mjs';
import { poll_stream, push_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

// Runs `misbehave` while another client has a stream over each delivery. The streams are ended
// afterwards and must be complete. A third reader also checks the delays.
async function with_bystanders(server, misbehave) {
  const innocent = await Innocent.beside(server);
  const client = new HttpClient(server, { local_address: '127.0.0.9' });
  const started = [];
  for (let n = 0; n < 2; ++n) {
    started.push(await client.call(...wire.start({ count: 1_000_000, interval_us: 2000 })));
  }
  const [polled, pushed] = started.map(({ stream_id }) => stream_id);
  const readers = [
    poll_stream(client, polled, { wait_ms: 1000 }),
    push_stream(server, pushed, { options: { local_address: '127.0.0.9' } }),
  ];
  await misbehave();
  await innocent.was_not_disturbed();
  for (const { stream_id } of started) await client.call(...wire.abort(stream_id));
  for (const chunks of await Promise.all(readers)) {
    assert.ok(wire.count_numbers(wire.checked_text(chunks)) > 0, 'the bystander has its stream');
  }
}

const request = (method, params, id = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) });

const deep = (depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const unknown_id = 'zzzzzzzzzzzzzzzz';

// [what, text of the message, expected error code, whether the answer has an id]
const kMessages = [
  ['no JSON', 'this is not JSON', wire.codes.parse, false],
  ['nothing', '', wire.codes.parse, false],
  ['cut off', '{"jsonrpc":"2.0","id":1,"method":"ru', wire.codes.parse, false],
  ['two values', `${request('streams', {})}${request('streams', {})}`, wire.codes.parse, false],
  [
    'a trailing comma',
    '{"jsonrpc":"2.0","id":1,"method":"streams","params":{},}',
    wire.codes.parse,
    false,
  ],
  [
    'NaN',
    '{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"x","temperature":NaN}}',
    wire.codes.parse,
    false,
  ],
  [
    'Infinity',
    '{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"x","temperature":-Infinity}}',
    wire.codes.parse,
    false,
  ],
  [
    '10,000 deep',
    `{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":${deep(10_000)}}}`,
    wire.codes.parse,
    false,
  ],
  [
    'a lone surrogate escape',
    '{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"\\ud800"}}',
    wire.codes.parse,
    false,
  ],
  ['a number', '1', wire.codes.invalid_request, false],
  ['null', 'null', wire.codes.invalid_request, false],
  ['an empty batch', '[]', wire.codes.invalid_request, false],
  ['no version', '{"id":1,"method":"streams","params":{}}', wire.codes.invalid_request, true],
  [
    'another version',
    '{"jsonrpc":"1.0","id":1,"method":"streams"}',
    wire.codes.invalid_request,
    true,
  ],
  [
    'a method that is no string',
    '{"jsonrpc":"2.0","id":1,"method":7}',
    wire.codes.invalid_request,
    true,
  ],
  [
    'params that are no object',
    '{"jsonrpc":"2.0","id":1,"method":"run","params":"x"}',
    wire.codes.invalid_request,
    true,
  ],
  [
    'an id that is an object',
    '{"jsonrpc":"2.0","id":{},"method":"streams","params":{}}',
    wire.codes.invalid_request,
    false,
  ],
  [
    'a fractional id',
    '{"jsonrpc":"2.0","id":1.5,"method":"streams","params":{}}',
    wire.codes.invalid_request,
    false,
  ],
  ['an unknown method', request('no_such_method', {}), wire.codes.method_not_found, true],
  [
    'a prompt that is a number',
    request('run', { prompt: 5, stream: true }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'a prompt and messages',
    request('run', { prompt: 'x', messages: [{ role: 'user', content: 'x' }] }),
    wire.codes.invalid_params,
    true,
  ],
  ['messages of numbers', request('run', { messages: [1, 2] }), wire.codes.invalid_params, true],
  [
    'stream that is no boolean',
    request('run', { prompt: 'x', stream: 'yes' }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'a temperature that is a string',
    request('run', { prompt: 'x', temperature: 'hot' }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'a count that is none',
    request('run', { prompt: 'x', count: -1 }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'a priority out of range',
    request('run', { prompt: 'x', stream: true, priority: 1e9 }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'a stream_id that is a number',
    request('run', { stream_id: 12, from_seq: 0 }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'from_seq negative',
    request('run', { stream_id: unknown_id, from_seq: -1 }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'from_seq fractional',
    request('run', { stream_id: unknown_id, from_seq: 0.5 }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'from_seq a string',
    request('run', { stream_id: unknown_id, from_seq: '0' }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'from_seq beyond 64 bits',
    `{"jsonrpc":"2.0","id":1,"method":"run","params":{"stream_id":"${unknown_id}","from_seq":99999999999999999999}}`,
    wire.codes.invalid_params,
    true,
  ],
  [
    'wait_ms negative',
    request('run', { stream_id: unknown_id, from_seq: 0, wait_ms: -5 }),
    wire.codes.invalid_params,
    true,
  ],
  [
    'an unknown stream',
    request('run', { stream_id: unknown_id, from_seq: 0 }),
    wire.codes.not_found,
    true,
  ],
  [
    'an unknown stream, 2^53',
    request('run', { stream_id: unknown_id, from_seq: 2 ** 53 }),
    wire.codes.not_found,
    true,
  ],
  [
    'an id of another form',
    request('run', { stream_id: 'No Such Stream!', from_seq: 0 }),
    wire.codes.not_found,
    true,
  ],
  [
    'a very long id',
    request('run', { stream_id: 'a'.repeat(100_000), from_seq: 0 }),
    wire.codes.not_found,
    true,
  ],
  ['an empty id', request('run', { stream_id: '', from_seq: 0 }), wire.codes.not_found, true],
  [
    'abort of an unknown stream',
    request('abort', { stream_id: unknown_id }),
    wire.codes.not_found,
    true,
  ],
  ['abort of nothing', request('abort', {}), wire.codes.invalid_params, true],
  [
    'is_running of an unknown stream',
    request('is_running', { stream_id: unknown_id }),
    wire.codes.not_found,
    true,
  ],
];

function check_error(text, code, has_id, what) {
  const reply = JSON.parse(text);
  assert.equal(reply.jsonrpc, '2.0', what);
  assert.equal(reply.error?.code, code, `${what}: ${text}`);
  assert.ok(reply.error.message.length > 0, what);
  assert.ok(!/boost|exception|\/src\/|std::/i.test(reply.error.message), `${what}: ${text}`);
  if (has_id) assert.equal(reply.id, 1, what);
  else assert.ok(reply.id === undefined || reply.id === null, `${what}: ${text}`);
}

test('bad messages over HTTP: a JSON-RPC error, with a status of 400 where there is no id', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  await with_bystanders(server, async () => {
    for (const [what, text, code, has_id] of kMessages) {
      const { status, body } = await client.exchange(text);
      check_error(body.toString(), code, has_id, what);
      assert.equal(status, has_id ? 200 : 400, what);
    }
  });
});

test('bad messages over WebSocket: the same errors, and the connection stays', async (t) => {
  const server = await start_server(t);
  await with_bystanders(server, async () => {
    const connection = await upgrade(server);
    t.after(() => connection.destroy());
    for (const [what, text, code, has_id] of kMessages) {
      connection.received = Buffer.alloc(0);
      connection.write(frame(1, text));
      check_error(await text_message(connection), code, has_id, what);
    }
    for (const [what, text] of [
      ['subscribe to an unknown stream', request('subscribe', { stream_id: unknown_id })],
      ['ack of an unknown stream', request('ack', { stream_id: unknown_id, seq: 0 })],
    ]) {
      connection.received = Buffer.alloc(0);
      connection.write(frame(1, text));
      check_error(await text_message(connection), wire.codes.not_found, true, what);
    }
  });
});

test('positions: ahead of the stream and below the kept range are gap errors', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  await with_bystanders(server, async () => {
    const { stream_id } = await client.call(...wire.start({ count: 20 }));
    const chunks = await poll_stream(client, stream_id, { acknowledge: false, wait_ms: 5000 });
    assert.equal(
      await client.code_of(...wire.poll(stream_id, chunks.length + 1)),
      wire.codes.invalid_state,
    );
    assert.equal(await client.code_of(...wire.poll(stream_id, 2 ** 53)), wire.codes.invalid_state);
    await client.call(...wire.poll(stream_id, 15));
    const gap = await client.reply(...wire.poll(stream_id, 3));
    assert.equal(gap.error?.code, wire.codes.invalid_state);
    assert.equal(gap.error.data.oldest_seq, 15);
    const sse = await server.request({ path: `${wire.path.stream(stream_id)}?from_seq=3` });
    assert.equal(sse.status, 409);
    // Chunks that are kept are still there.
    assert.equal(
      (await client.call(...wire.poll(stream_id, 15))).chunks.length,
      chunks.length - 15,
    );
  });
});

test('invalid UTF-8 in: an error over HTTP, 1007 over WebSocket', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const bad = [
    [0xff],
    [0xc0, 0xaf],
    [0xe0, 0x80, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
    [0xe2, 0x82],
    [0x80],
  ];
  await with_bystanders(server, async () => {
    for (const bytes of bad) {
      const text = Buffer.concat([
        Buffer.from('{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"'),
        Buffer.from(bytes),
        Buffer.from('","stream":true}}'),
      ]);
      const { status, body } = await client.exchange(text);
      assert.equal(status, 400, `${bytes}`);
      check_error(body.toString(), wire.codes.parse, false, `${bytes}`);
      const connection = await upgrade(server);
      connection.write(frame(1, text));
      assert.equal(await close_code(connection), 1007, `${bytes}`);
      connection.destroy();
    }
  });
});

test('text of many scripts comes back as it was sent', async (t) => {
  const server = await start_server(t);
  const client = new HttpClient(server);
  const text =
    'Grüße, 世界 \u{1F30A}\u{1F468}\u200D\u{1F469}\u200D\u{1F467} \u0000\u001f\u007f\u2028 "\\/ e\u0301';
  const { content } = await client.call('tools/call', { name: 'echo', arguments: { text } });
  assert.equal(content[0].text, text);
});

// [what, bytes to send, accepted statuses]. The status null means that the connection ends without
// a reply.
const kHttp = [
  ['no HTTP at all', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', [400]],
  ['a method that is no token', 'G{T / HTTP/1.1\r\nHost: localhost\r\n\r\n', [400]],
  ['no version', 'GET /healthz\r\n\r\n', [400]],
  ['version 3', 'GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n', [400, 505]],
  ['no host', 'GET /healthz HTTP/1.1\r\n\r\n', [400]],
  ['two hosts', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n', [400]],
  [
    'a header without a colon',
    'GET /healthz HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n',
    [400],
  ],
  [
    'a space before the colon',
    'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A : b\r\n\r\n',
    [400],
  ],
  ['a folded header', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n', [400]],
  ['a NUL in a header', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\0c\r\n\r\n', [400]],
  ['two lengths', post('{}', { headers: 'Content-Length: 3\r\n' }), [400]],
  ['a length and chunks', post('0\r\n\r\n', { headers: 'Transfer-Encoding: chunked\r\n' }), [400]],
  ['a negative length', post('', { length: -1 }), [400]],
  ['a length that is no number', post('', { length: 'ten' }), [400]],
  ['a length beyond 64 bits', post('', { length: '99999999999999999999' }), [400, 413]],
  [
    'a chunk size that is none',
    'POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    [400],
  ],
  [
    'an unknown transfer coding',
    'POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: br\r\n\r\n',
    [400, 501],
  ],
  ['an unknown content coding', post('{}', { headers: 'Content-Encoding: br\r\n' }), [415]],
  ['gzip that is none', post('{}', { headers: 'Content-Encoding: gzip\r\n' }), [400]],
  ['an unknown path', 'GET /no/such/path HTTP/1.1\r\nHost: localhost\r\n\r\n', [404]],
  ['a path that climbs', 'GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n', [400, 404]],
  [
    'a method /mcp does not have',
    'PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
    [405],
  ],
  [
    'a method /healthz does not have',
    'POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
    [405],
  ],
  ['/ws without an upgrade', 'GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n', [400, 426]],
  [
    'a WebSocket of version 8',
    'GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 8\r\n\r\n',
    [426],
  ],
  [
    'a WebSocket without a key',
    'GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n',
    [400],
  ],
  [
    'an unknown stream to read',
    `GET /streams/${unknown_id} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    [404],
  ],
  [
    'a Last-Event-ID that is none',
    `GET /streams/${unknown_id} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: x\r\n\r\n`,
    [400, 404],
  ],
  [
    'one long header',
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`,
    [431],
  ],
  [
    'a thousand headers',
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${'X-A: b\r\n'.repeat(1000)}\r\n`,
    [431],
  ],
  ['a long target', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, [414, 431]],
];

test('bad HTTP: the documented status, each on a connection of its own', async (t) => {
  const server = await start_server(t);
  await with_bystanders(server, async () => {
    for (const [what, bytes, statuses] of kHttp) {
      const connection = await RawConnection.open(server);
      connection.write(bytes);
      const answer = await connection.response();
      assert.ok(statuses.includes(answer?.status ?? null), `${what}: ${answer?.status}`);
      connection.destroy();
    }
  });
});

test('pipelined requests are answered in order, a bad one among them ends the connection', async (t) => {
  const server = await start_server(t);
  const connection = await RawConnection.open(server);
  t.after(() => connection.destroy());
  const ids = Array.from({ length: 20 }, (_, index) => index + 1);
  // Slow and fast requests mixed.
  connection.write(
    ids.map((id) => post(request('run', { prompt: 'x', count: 1 + (id % 3) * 50 }, id))).join(''),
  );
  for (const id of ids) {
    const answer = await connection.response();
    assert.equal(answer.status, 200);
    assert.equal(JSON.parse(answer.body).id, id);
  }
  connection.write(
    post(request('streams', {}, 99)) + 'nonsense\r\n\r\n' + post(request('streams', {}, 100)),
  );
  assert.equal(JSON.parse((await connection.response()).body).id, 99);
  assert.equal((await connection.response()).status, 400);
  await connection.closed();
  assert.equal(connection.received.length, 0, 'nothing after the bad request is answered');
});

test('a fault in a body takes no replies from the requests before it', async (t) => {
  const server = await start_server(t);
  const ping = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const lines =
    'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n' +
    'Accept: application/x-ndjson\r\n';
  const faults = [
    ['a chunk without a size', `${lines}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ['a body that is cut off', `${lines}Content-Length: 500\r\n\r\n{`],
  ];
  for (const [what, fault] of faults) {
    const connection = await RawConnection.open(server);
    t.after(() => connection.destroy());
    // The reply that takes longer makes the others wait.
    const slow = post(request('run', { prompt: 'x', count: 100 }, 1));
    connection.write(slow + ping + ping + fault);
    connection.socket.end();
    await connection.closed();
    const replies = connection.received.toString().match(/HTTP\/1\.1 200 OK/g);
    assert.equal(replies?.length, 3, what);
  }
});

test('a body of 64 MiB is refused with 413, whether announced or chunked, without being read', async (t) => {
  const server = await start_server(t);
  const megabyte = Buffer.alloc(1 << 20, 'a');
  await with_bystanders(server, async () => {
    const before = await server.metric('process_resident_memory_bytes').catch(() => 0);
    const announced = await RawConnection.open(server);
    announced.write(post('', { length: 64 << 20 }));
    assert.equal((await announced.response()).status, 413, 'on the announcement alone');
    announced.destroy();

    const chunked = await RawConnection.open(server);
    chunked.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), megabyte, Buffer.from('\r\n')]);
    const flood = chunked.flood(chunk, 64).catch(() => {});
    assert.equal((await chunked.response()).status, 413);
    chunked.destroy();
    await flood;

    const socket = await upgrade(server);
    const sending = socket
      .flood(frame(1, megabyte, { length: BigInt(64 << 20) }), 1)
      .catch(() => {});
    assert.equal(await close_code(socket), 1009, 'a message of 64 MiB over WebSocket');
    socket.destroy();
    await sending;
    assert.ok(before >= 0);
  });
});

test('slow heads and bodies are cut off in time, other connections are not', async (t) => {
  const server = await start_server(t, [wire.flag.request_timeout, '700ms']);
  await with_bystanders(server, async () => {
    const drip = async (first, rest) => {
      const connection = await RawConnection.open(server);
      connection.write(first);
      let at = 0;
      const dripping = setInterval(() => connection.write(rest[at++ % rest.length]), 50);
      const answer = await connection.response();
      clearInterval(dripping);
      connection.destroy();
      return answer;
    };
    const [head, body] = await Promise.all([
      drip('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ', 'abc'),
      drip(post('', { length: 10_000 }), ' '),
    ]);
    for (const answer of [head, body]) {
      assert.ok(answer === null || answer.status === 408, `${answer?.status}`);
    }
  });
});

test('bad WebSocket frames close the connection with the code of RFC 6455', async (t) => {
  const server = await start_server(t);
  const cases = [
    ['an unmasked frame', [frame(1, '{}', { masked: false })], 1002],
    ['reserved bit 2', [frame(1, '{}', { rsv: 2 })], 1002],
    ['reserved bit 3', [frame(1, '{}', { rsv: 1 })], 1002],
    ['compression that was not agreed', [frame(1, '{}', { rsv: 4 })], 1002],
    ['opcode 3', [frame(3, '{}')], 1002],
    ['opcode 15', [frame(15, '')], 1002],
    ['a fragmented ping', [frame(9, 'x', { fin: false })], 1002],
    ['a long ping', [frame(9, 'x'.repeat(126))], 1002],
    ['a continuation of nothing', [frame(0, 'x')], 1002],
    ['a message within a message', [frame(1, '{', { fin: false }), frame(1, '}')], 1002],
    ['a length with its highest bit set', [frame(1, '', { length: (1n << 63n) + 5n })], 1002],
    ['a binary message', [frame(2, 'x')], 1003],
    ['half a character at the end', [frame(1, Buffer.from([0x22, 0xe2, 0x82]))], 1007],
    ['a message too large', [frame(1, '', { length: 1n << 40n })], 1009],
    ['close with one byte', [frame(8, 'x')], 1002],
    ['close with 999', [close_frame(999)], 1002],
    ['close with 1004', [close_frame(1004)], 1002],
    ['close with 1005', [close_frame(1005)], 1002],
    ['close with 1006', [close_frame(1006)], 1002],
    ['close with 1015', [close_frame(1015)], 1002],
    ['close with 2999', [close_frame(2999)], 1002],
    ['close with 5000', [close_frame(5000)], 1002],
    ['close with a reason of bad UTF-8', [frame(8, Buffer.from([0x03, 0xe8, 0xff]))], 1007],
    ['a clean close', [close_frame(1000, 'bye')], 1000],
    ['a close of the application', [close_frame(3456)], 3456],
    ['a close without a code', [frame(8)], 1005],
  ];
  await with_bystanders(server, async () => {
    for (const [what, frames, code] of cases) {
      const connection = await upgrade(server);
      for (const bytes of frames) connection.write(bytes);
      const answered = await close_code(connection);
      // A close frame without a code may be answered without a code or with 1000.
      assert.ok(answered === code || (code === 1005 && answered === 1000), `${what}: ${answered}`);
      // A client that keeps to the protocol answers the close frame, which ends the connection.
      connection.write(close_frame(1000));
      await connection.closed();
    }
  });
});

test('odd but valid WebSocket frames are understood', async (t) => {
  const server = await start_server(t);
  const connection = await upgrade(server);
  t.after(() => connection.destroy());
  const text = Buffer.from(request('no_such_méthod', {}, 'ü'));
  // Every byte in its own frame, with pings in between. Characters are split in the middle.
  for (const [index, byte] of text.entries()) {
    connection.write(
      frame(index === 0 ? 1 : 0, Buffer.from([byte]), { fin: index === text.length - 1 }),
    );
    if (index % 10 === 0) connection.write(frame(9, `ping ${index}`));
  }
  const reply = JSON.parse(await text_message(connection));
  assert.equal(reply.id, 'ü');
  assert.equal(reply.error.code, wire.codes.method_not_found);
  const pongs = parse_frames(connection.received).frames.filter(({ opcode }) => opcode === 10);
  assert.deepEqual(
    pongs.map(({ payload }) => payload.toString()),
    Array.from({ length: Math.ceil(text.length / 10) }, (_, index) => `ping ${index * 10}`),
  );
  // An empty message is not JSON. An unsolicited pong is ignored.
  connection.received = Buffer.alloc(0);
  connection.write(frame(10, 'unasked'));
  connection.write(frame(1, ''));
  assert.equal(JSON.parse(await text_message(connection)).error.code, wire.codes.parse);
});
