// The same protocol with a real model: llama.cpp with a small model that the tests generate.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { connect, generate } from '../lib/mcp.mjs';
import { model_file } from '../lib/model.mjs';
import {
  between_its_lines,
  http_client,
  run_in_node,
  with_address,
  ws_client,
  ws_client_is_done,
} from '../lib/original_clients.mjs';
import { RawConnection, post } from '../lib/raw.mjs';
import { curl_stream, event_stream, poll_stream, push_stream } from '../lib/readers.mjs';
import { HttpClient, WsClient } from '../lib/rpc.mjs';
import { clean_environment, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const serve_model = (t, ...flags) =>
  start_server(t, [
    '--engine',
    'llama',
    '--model',
    model_file(t),
    '--model-threads',
    '1',
    '--context',
    '512',
    ...flags,
  ]);

const idle = (server) =>
  until(
    async () =>
      (await server.metric(wire.metric.slots_busy)) === 0 &&
      (await server.metric(wire.metric.requests_queued)) === 0,
    'no slot is busy and nothing waits',
  );

test('the original clients print the whole answer of a model', async (t) => {
  const server = await serve_model(t);
  const whole = await new HttpClient(server).call('run', { prompt: 'Hello' });
  const text = wire.whole_text(whole);
  assert.ok(whole.usage.completion_tokens > 100, `${whole.usage.completion_tokens} tokens`);
  assert.match(text, /water|stream|stone|sea/);
  assert.equal(await run_in_node(with_address(http_client, server)), text);
  const pushed = between_its_lines(
    await run_in_node(with_address(ws_client, server), ws_client_is_done),
  );
  assert.equal(pushed.text, text);
});

test('every delivery of the same answer, at once: poll, WebSocket, SSE, curl and MCP', async (t) => {
  const server = await serve_model(t);
  const client = new HttpClient(server);
  const params = { prompt: 'Tell me about water', temperature: 0, seed: 1, max_tokens: 200 };
  const expected = wire.whole_text(await client.call('run', params));
  const [{ stream_id }, connection, modern] = await Promise.all([
    client.call('run', { ...params, stream: true }),
    connect(t, server, 'v1 (2025-11-25)'),
    connect(t, server, 'v2, 2026-07-28'),
  ]);
  const [pushed, evented, curled, legacy, current] = await Promise.all([
    push_stream(server, stream_id),
    event_stream(server, stream_id),
    curl_stream(server, stream_id),
    generate(connection, params),
    generate(modern, params),
  ]);
  const polled = await poll_stream(client, stream_id, { wait_ms: 1000 });
  for (const chunks of [pushed, evented, curled, polled])
    assert.equal(wire.checked_text(chunks), expected);
  for (const { text, deltas } of [legacy, current]) {
    assert.equal(text, expected);
    assert.equal(deltas.map((delta) => delta.message).join(''), expected);
  }
});

test('usage, timings and finish reasons: length, stop strings, cached prompts', async (t) => {
  const server = await serve_model(t, '--slots', '1');
  const client = new HttpClient(server);
  const first = await client.call('run', {
    prompt: 'A long prompt about water and stones',
    max_tokens: 30,
  });
  assert.equal(first.finish_reason, 'length');
  assert.equal(first.usage.completion_tokens, 30);
  assert.ok(first.usage.prompt_tokens > 10);
  for (const name of ['queue_ms', 'prefill_ms', 'decode_ms'])
    assert.equal(typeof first.timings[name], 'number');
  const second = await client.call('run', {
    prompt: 'A long prompt about water and stones',
    max_tokens: 30,
  });
  assert.equal(second.text, first.text);
  assert.ok(second.usage.cached_tokens > 10, `${second.usage.cached_tokens} cached tokens`);

  const stop = first.text.slice(12, 16);
  const stopped = await client.call('run', {
    prompt: 'A long prompt about water and stones',
    max_tokens: 30,
    stop: [stop],
  });
  assert.equal(stopped.finish_reason, 'stop');
  assert.equal(stopped.text, first.text.slice(0, first.text.indexOf(stop)));
});

test('a JSON Schema binds the answer', async (t) => {
  const server = await serve_model(t);
  const client = new HttpClient(server);
  const json_schema = {
    type: 'object',
    properties: { wet: { type: 'boolean' }, name: { enum: ['river', 'brook'] } },
    required: ['wet', 'name'],
    additionalProperties: false,
  };
  const { text, finish_reason } = await client.call('run', {
    prompt: 'Hello',
    json_schema,
    max_tokens: 200,
  });
  const value = JSON.parse(text);
  assert.equal(typeof value.wet, 'boolean');
  assert.ok(['river', 'brook'].includes(value.name));
  assert.equal(finish_reason, 'stop');
});

test('the text that a schema binds is JSON whatever its pattern takes', async (t) => {
  const server = await serve_model(t);
  const client = new HttpClient(server);
  for (const [pattern, regex] of [
    ['^.{20}$', /^.{20}$/u],
    ['^"[^a]{10}"$', /^"[^a]{10}"$/u],
    ['^[ -~]{20}$', /^[ -~]{20}$/u],
  ]) {
    for (let seed = 1; seed <= 5; ++seed) {
      const json_schema = { type: 'string', pattern };
      const { text } = await client.call('run', {
        prompt: 'Quote',
        json_schema,
        seed,
        temperature: 5,
        max_tokens: 200,
      });
      assert.match(JSON.parse(text), regex);
    }
  }
  const { text } = await client.call('run', {
    prompt: 'x',
    json_schema: { type: 'integer', minimum: 105 },
    max_tokens: 20,
    messages: null,
  });
  assert.ok(JSON.parse(text) >= 105);
});

test('requests that can never be served are -32602 and leave other streams whole', async (t) => {
  const server = await serve_model(t);
  const client = new HttpClient(server);
  const other = new HttpClient(server, { local_address: '127.0.0.9' });
  const bystander = await other.call(...wire.start({ max_tokens: 300 }));
  const reading = poll_stream(other, bystander.stream_id, { wait_ms: 1000 });
  for (const [what, params] of [
    ['no prompt', {}],
    ['no messages', { messages: [] }],
    ['a prompt longer than the context', { prompt: 'water '.repeat(5000) }],
    ['a schema and a grammar', { prompt: 'x', json_schema: {}, grammar: 'root ::= "a"' }],
  ]) {
    for (const stream of [true, false]) {
      const reply = await client.reply('run', { ...params, stream });
      assert.equal(
        reply.error?.code,
        wire.codes.invalid_params,
        `${what}: ${JSON.stringify(reply)}`,
      );
    }
  }
  // Errors that take long to find fail the stream, or the call if there is no stream.
  const doubled = Array.from({ length: 40 }, (_, i) => `r${i} ::= r${i + 1} | r${i + 1}`);
  const optional = Array.from({ length: 1500 }, (_, i) => [`p${i}`, {}]);
  for (const [what, params, reason] of [
    ['a grammar that is none', { grammar: 'root ::= (' }, /a "\)" is missing/],
    ['a left-recursive grammar', { grammar: 'root ::= root "x"' }, /left-recursive/],
    [
      'a grammar whose rules double',
      { grammar: `root ::= r0 "!"\n${doubled.join('\n')}\nr40 ::= root` },
      /left-recursive/,
    ],
    ['a schema that is none', { json_schema: { type: 'no such type' } }, /json_schema/],
    [
      'a schema of many optional properties',
      { json_schema: { properties: Object.fromEntries(optional) } },
      /fewer optional properties/,
    ],
    [
      'a pattern that no grammar has',
      { json_schema: { properties: { a: { type: 'string', pattern: '^(a|b)\\1$' } } } },
      /json_schema cannot be followed: at #\/properties\/a: a pattern is not supported/,
    ],
    [
      'bounds without an integer between them',
      { json_schema: { type: 'integer', minimum: 2, maximum: 1 } },
      /json_schema cannot be followed: at #: the bounds of an integer/,
    ],
  ]) {
    const reply = await client.reply('run', { prompt: 'x', ...params });
    assert.equal(reply.error?.code, wire.codes.invalid_params, what);
    assert.match(reply.error.message, reason);
    const { stream_id } = await client.call('run', { prompt: 'x', ...params, stream: true });
    const { error } = (await poll_stream(client, stream_id, { wait_ms: 1000 })).at(-1);
    assert.equal(error?.code, wire.codes.invalid_params, what);
    assert.match(error.message, reason);
    const called = await client.call('tools/call', {
      name: 'generate',
      arguments: { prompt: 'x', ...params },
    });
    assert.equal(called.isError, true, what);
    assert.match(called.content[0].text, reason);
  }
  const chunks = await reading;
  assert.ok(wire.checked_text(chunks).length > 100);
  assert.equal(chunks.at(-1).finish_reason, 'length');
  await idle(server);
});

test('priorities: the higher one is admitted to the model first', async (t) => {
  const server = await serve_model(t, '--slots', '1', '--context', '65536');
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  const order = [];
  const first = await socket.call('run', { prompt: 'x', stream: true });
  await socket.when(() => socket.chunks(first.stream_id).length > 0, 'the slot is taken');
  const waiting = [];
  for (const priority of [0, -5, 5, 10, 5]) {
    const { stream_id } = await socket.call('run', {
      prompt: 'x',
      stream: true,
      max_tokens: 5,
      priority,
    });
    waiting.push(socket.whole(stream_id).then(() => order.push(priority)));
  }
  await until(
    async () => (await server.metric(wire.metric.requests_queued)) === 5,
    'all of them wait',
  );
  await socket.call(...wire.abort(first.stream_id));
  await Promise.all(waiting);
  assert.deepEqual(order, [10, 5, 5, 0, -5]);
});

test('prompts that wait for the model count as memory of their client', async (t) => {
  const server = await serve_model(
    t,
    '--slots',
    '1',
    '--context',
    '65536',
    wire.flag.max_total_bytes,
    '1MiB',
  );
  const client = new HttpClient(server);
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  const busy = await socket.call('run', { prompt: 'x', stream: true });
  await socket.when(() => socket.chunks(busy.stream_id).length > 0, 'the slot is taken');
  const text = 'water '.repeat(30_000);
  const waiting = { prompt: text, stream: true, max_tokens: 1 };
  const first = await client.call('run', waiting);
  const call = { name: 'find', arguments: { text } };
  const second = await client.call('run', {
    messages: [{ role: 'assistant', tool_calls: [call] }],
    stream: true,
    max_tokens: 1,
  });
  assert.ok((await server.metric(wire.metric.stream_bytes)) > 360_000);
  for (const stream of [true, false]) {
    const { error } = await client.reply('run', { ...waiting, stream });
    assert.equal(error?.code, wire.codes.limit);
    assert.match(error.message, /none for this prompt/);
  }
  const other = new HttpClient(server, { local_address: '127.0.0.9' });
  await other.call('run', waiting);
  await client.call(...wire.abort(first.stream_id));
  await until(
    () => client.call('run', waiting).then(() => true, () => false),
    'what was aborted makes room',
  );
  await client.call(...wire.abort(second.stream_id));
  await client.call(...wire.abort(busy.stream_id));
  await idle(server);
  await until(
    async () => (await server.metric(wire.metric.stream_bytes)) < 180_000,
    'answers hold no prompts',
  );
});

test('a full stream pauses, and its slot serves others meanwhile', async (t) => {
  const server = await serve_model(t, '--slots', '1', wire.flag.max_chunks, '20');
  const client = new HttpClient(server);
  const paused = await client.call('run', { prompt: 'Hello', stream: true, max_tokens: 100 });
  await until(async () => (await server.metric(wire.metric.pauses)) > 0, 'it paused');
  const other = await client.call('run', { prompt: 'Another', max_tokens: 40, stream: true });
  const theirs = await poll_stream(client, other.stream_id, { wait_ms: 5000 });
  assert.equal(theirs.at(-1).usage.completion_tokens, 40);
  const mine = await poll_stream(client, paused.stream_id, { wait_ms: 5000 });
  const whole = await client.call('run', { prompt: 'Hello', max_tokens: 100 });
  assert.equal(wire.checked_text(mine), whole.text, 'pausing changes nothing in the answer');
});

test('a queued request whose client goes never runs; abort works while queued', async (t) => {
  const server = await serve_model(t, '--slots', '1', '--context', '65536');
  const socket = await WsClient.connect(server);
  t.after(() => socket.close());
  const first = await socket.call('run', { prompt: 'x', stream: true });
  await socket.when(() => socket.chunks(first.stream_id).length > 0, 'the slot is taken');

  const gone = await RawConnection.open(server);
  gone.write(
    post(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'run',
        params: { prompt: 'y', max_tokens: 5 },
      }),
    ),
  );
  await until(async () => (await server.metric(wire.metric.requests_queued)) === 1, 'it is queued');
  gone.destroy();
  await until(async () => (await server.metric(wire.metric.requests_queued)) === 0, 'it is gone');

  const queued = await socket.call('run', { prompt: 'z', stream: true, max_tokens: 5 });
  const status = await socket.call(...wire.is_running(queued.stream_id));
  assert.equal(status.phase, 'queued');
  await socket.call(...wire.abort(queued.stream_id));
  const chunks = await socket.whole(queued.stream_id);
  assert.equal(chunks.length, 1, 'not one token of it');
  assert.equal(chunks[0].finish_reason, 'cancelled');

  await socket.call(...wire.abort(first.stream_id));
  const cut = await socket.whole(first.stream_id);
  assert.equal(cut.at(-1).finish_reason, 'cancelled');
  await idle(server);
});

test('kill -9 of clients of a model leaves no slot busy', async (t) => {
  const server = await serve_model(
    t,
    '--slots',
    '2',
    wire.flag.expiry,
    '1s',
    wire.flag.per_client,
    '1000',
    '--context',
    '65536',
  );
  const victim = 'exec 3<>"/dev/tcp/127.0.0.1/$1"; printf %b "$2" >&3; exec cat <&3';
  const ways = [
    { method: 'run', params: { prompt: 'x', stream: true } },
    { method: 'run', params: { prompt: 'x' } },
    {
      method: 'tools/call',
      params: { name: 'generate', arguments: { prompt: 'x' }, _meta: { progressToken: 1 } },
    },
  ].map((message) =>
    post(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }), {
      headers: 'Accept: application/json, text/event-stream\r\n',
    }),
  );
  const sacrifice = (bytes, patience) =>
    new Promise((resolve) => {
      const child = spawn(
        'bash',
        [
          '-c',
          victim,
          'victim',
          String(server.port),
          bytes.replaceAll('\\', '\\\\').replaceAll('\r', '\\r').replaceAll('\n', '\\n'),
        ],
        {
          env: clean_environment(),
          stdio: 'ignore',
        },
      );
      child.once('spawn', () => setTimeout(() => child.kill('SIGKILL'), patience));
      child.once('close', resolve);
    });
  for (let round = 0; round < 20; ++round) {
    await Promise.all(ways.map((bytes, index) => sacrifice(bytes, (round * 7 + index * 5) % 60)));
  }
  server.agent.destroy();
  await idle(server);
  await until(async () => (await server.metric(wire.metric.streams)) === 0, 'the streams expired');
  assert.equal(await server.metric(wire.metric.stream_bytes), 0);
  const { text } = await new HttpClient(server).call('run', { prompt: 'Hello', max_tokens: 20 });
  assert.ok(text.length > 0);
});
