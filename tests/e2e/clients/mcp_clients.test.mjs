// The official TypeScript clients, both generations and every mode, connect, list, call and cancel, at
// each kind of engine.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { engines } from '../lib/engines.mjs';
import { all, clients, test_features } from '../lib/interop.mjs';
import { connect, generate, generations } from '../lib/mcp.mjs';
import { program, start_server, temporary_folder, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const is_http = ({ kind }) => kind === 'http';

const features = [
  ['connects, lists the tools, and knows the streaming extension', all, async ({ open, row }) => {
    const { client } = await open();
    const version = client.getServerVersion();
    assert.equal(version?.name, 'sluice');
    const capabilities = client.getServerCapabilities();
    assert.ok(capabilities.tools, 'tools are offered');
    const { tools } = await client.listTools();
    const tool = tools.find(({ name }) => name === 'generate');
    assert.ok(tool, `no generate among ${tools.map((one) => one.name)}`);
    assert.equal(tool.inputSchema.type, 'object');
    assert.ok(tool.inputSchema.properties.prompt, 'its schema names the prompt');
    if (row.era === 'modern') assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  }],

  ["generate's deltas come as progress before the full result", all, async ({ open, row }) => {
    const connection = await open();
    const { text, deltas } = await generate(connection, row.asking(60, 500));
    assert.equal(row.count(text), 60);
    const sent = connection.seen
      .filter(({ method }) => method === 'notifications/progress')
      .map(({ params }) => params);
    assert.equal(sent.map(({ message }) => message).join(''), text);
    assert.ok(deltas.length > 1, `${deltas.length} progress messages`);
    // These clients drop progress that they read together with the result.
    assert.deepEqual(
      deltas.map(({ message }) => message),
      sent.slice(0, deltas.length).map(({ message }) => message),
    );
    sent.reduce((last, { progress }) => {
      assert.ok(progress > last, 'progress increases');
      return progress;
    }, 0);
  }],

  [
    'deltas come while the model is at work, and aborting the call frees its slot',
    is_http,
    async ({ open, row, place }) => {
      const connection = await open();
      const breaker = new AbortController();
      let busy;
      const call = generate(connection, row.asking(1_000_000, 1000), {
        signal: breaker.signal,
        on_delta: () => {
          busy ??= place.server
            .metric(wire.metric.slots_busy)
            .finally(() => breaker.abort(new Error('enough')));
        },
      });
      await assert.rejects(call);
      assert.equal(await busy, 1);
      await until_free(place);
      // The connection can still be used for another call.
      const { text } = await generate(connection, row.asking(3));
      assert.equal(row.count(text), 3);
    },
  ],

  [
    'closing the client in the middle of an answer frees the slot',
    is_http,
    async ({ open, row, place }) => {
      const connection = await open();
      const first = new Promise((resolve) => {
        generate(connection, row.asking(1_000_000, 1000), { on_delta: resolve }).catch(() => {});
      });
      await first;
      await connection.client.close();
      await until_free(place);
    },
  ],

  ['an unknown tool and wrong arguments are errors, not the end', all, async ({ open, row }) => {
    const connection = await open();
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
    const { text } = await generate(connection, row.asking(3));
    assert.equal(row.count(text), 3);
  }],
];

const until_free = ({ server }) =>
  until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');

// In a session, a client that has disconnected may come back for a while.
const kResumable = ['--resume-window', '200ms'];

async function start(t, kind, { settings }) {
  const { flags, env } = settings(t);
  if (kind === 'stdio') return { command: [program, 'serve', '--stdio', ...flags], env };
  const socket = path.join(temporary_folder(t), 'socket');
  const server = await start_server(t, [...flags, ...kResumable, '--unix', socket], { env });
  return { server: Object.assign(server, { socket }) };
}

// Every transport of the synthetic engine is tested elsewhere.
const rows = Object.entries(engines).flatMap(([name, engine]) =>
  clients
    .filter((client) => name !== 'synthetic engine' || is_http(client))
    .map((client) => ({
      ...client,
      ...engine,
      title: `${client.title} at the ${name}`,
      start: (t) => start(t, client.kind, engine),
    })),
);

test_features(rows, features);

for (const [name, { settings, asking, count }] of Object.entries(engines)) {
  test(`several clients of different generations at once at the ${name}, none sees the others`, async (t) => {
    const { flags, env } = settings(t);
    const server = await start_server(t, flags, { env });
    const names = Object.keys(generations);
    const answers = await Promise.all(
      [...names, ...names].map(async (generation, index) => {
        const connection = await connect(t, server, generation);
        const { text, deltas } = await generate(connection, asking(100 + index, 300));
        assert.equal(deltas.map((delta) => delta.message).join(''), text);
        return count(text);
      }),
    );
    assert.deepEqual(
      answers,
      answers.map((_, index) => 100 + index),
    );
  });
}

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
