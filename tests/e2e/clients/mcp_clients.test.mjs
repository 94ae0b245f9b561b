// The official TypeScript clients, both generations and every mode, connect, list, call and cancel.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, generate, generations } from '../lib/mcp.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

for (const [name, { era }] of Object.entries(generations)) {
  test(`${name}: connects, lists the tools, and knows the streaming extension`, async (t) => {
    const server = await start_server(t);
    const { client } = await connect(t, server, name);
    const version = client.getServerVersion();
    assert.equal(version?.name, 'sluice');
    const capabilities = client.getServerCapabilities();
    assert.ok(capabilities.tools, 'tools are offered');
    const { tools } = await client.listTools();
    const tool = tools.find(({ name: tool_name }) => tool_name === 'generate');
    assert.ok(tool, `no generate among ${tools.map((one) => one.name)}`);
    assert.equal(tool.inputSchema.type, 'object');
    assert.ok(tool.inputSchema.properties.prompt, 'its schema names the prompt');
    if (era === 'modern') assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  });

  test(`${name}: generate's deltas come as progress before the full result`, async (t) => {
    const server = await start_server(t);
    const connection = await connect(t, server, name);
    const { text, deltas } = await generate(connection, {
      prompt: 'Hello',
      count: 60,
      interval_us: 500,
    });
    assert.equal(wire.count_numbers(text), 60);
    assert.equal(deltas.map((delta) => delta.message).join(''), text);
    assert.ok(deltas.length > 1, `${deltas.length} progress messages`);
    deltas.reduce((last, { progress }) => {
      assert.ok(progress > last, 'progress increases');
      return progress;
    }, 0);
  });

  test(`${name}: the first delta comes long before the result`, async (t) => {
    const server = await start_server(t);
    const connection = await connect(t, server, name);
    const client = new HttpClient(server);
    let running;
    const { text } = await generate(
      connection,
      { prompt: 'Hello', count: 400, interval_us: 2000 },
      {
        on_delta: () => {
          running ??= server.metric(wire.metric.slots_busy);
        },
      },
    );
    assert.equal(wire.count_numbers(text), 400);
    assert.ok((await running) >= 1, 'the model was still at work when the first delta was here');
    assert.equal(typeof (await client.call(...wire.streams())), 'object');
  });

  test(`${name}: aborting a call frees the model's slot`, async (t) => {
    const server = await start_server(t);
    const connection = await connect(t, server, name);
    const breaker = new AbortController();
    let seen = 0;
    const call = generate(
      connection,
      { prompt: 'Hello', count: 1_000_000, interval_us: 1000 },
      {
        signal: breaker.signal,
        on_delta: () => {
          if (++seen === 5) breaker.abort(new Error('enough'));
        },
      },
    );
    await assert.rejects(call);
    assert.ok(seen >= 5);
    await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');
    // The connection can still be used for another call.
    const { text } = await generate(connection, { prompt: 'Hello', count: 3 });
    assert.equal(wire.count_numbers(text), 3);
  });

  test(`${name}: closing the client in the middle of an answer frees the slot`, async (t) => {
    // In a session, a client that has disconnected may come back for a while.
    const server = await start_server(t, ['--resume-window', '200ms']);
    const connection = await connect(t, server, name);
    const first = new Promise((resolve) => {
      generate(
        connection,
        { prompt: 'Hello', count: 1_000_000, interval_us: 1000 },
        { on_delta: resolve },
      ).catch(() => {});
    });
    await first;
    await connection.client.close();
    await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');
  });

  test(`${name}: an unknown tool and wrong arguments are errors, not the end`, async (t) => {
    const server = await start_server(t);
    const connection = await connect(t, server, name);
    await assert.rejects(connection.call_tool({ name: 'no_such_tool', arguments: {} }), (error) => {
      assert.equal(error.code, wire.codes.invalid_params);
      return true;
    });
    const outcome = await connection
      .call_tool({ name: 'generate', arguments: { prompt: 42 } })
      .then(
        (result) => (result.isError ? 'tool error' : 'accepted'),
        (error) => error.code,
      );
    assert.ok(outcome === 'tool error' || outcome === wire.codes.invalid_params, `${outcome}`);
    const { text } = await generate(connection, { prompt: 'Hello', count: 3 });
    assert.equal(wire.count_numbers(text), 3);
  });
}

test('several clients of different generations at once, none sees the others', async (t) => {
  const server = await start_server(t);
  const names = Object.keys(generations);
  const answers = await Promise.all(
    [...names, ...names].map(async (name, index) => {
      const connection = await connect(t, server, name);
      const { text, deltas } = await generate(connection, {
        prompt: 'Hello',
        count: 100 + index,
        interval_us: 300,
      });
      assert.equal(deltas.map((delta) => delta.message).join(''), text);
      return wire.count_numbers(text);
    }),
  );
  assert.deepEqual(
    answers,
    answers.map((_, index) => 100 + index),
  );
});

test('the synthetic tools echo and stream_numbers answer', async (t) => {
  const server = await start_server(t);
  const { call_tool } = await connect(t, server, 'v2, 2026-07-28');
  const echo = await call_tool({ name: 'echo', arguments: { text: 'h\u00e9llo \u{1F30A}' } });
  assert.equal(wire.tool_text(echo), 'h\u00e9llo \u{1F30A}');
  const progress = [];
  await call_tool(
    { name: 'stream_numbers', arguments: { count: 12, interval_ms: 1 } },
    { onprogress: (event) => progress.push(event.message) },
  );
  assert.equal(progress.length, 12);
});
