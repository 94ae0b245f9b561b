// Two servers behind nginx that know nothing of each other: what works without stickiness, and what
// needs it. Both configurations are the one that docs/behind-a-proxy.md shows for several servers; the
// first without `ip_hash`, so that requests go to the servers in turns.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { block_at } from '../lib/documentation.mjs';
import { connect_over, generate } from '../lib/mcp.mjs';
import { behind, start_nginx } from '../lib/nginx.mjs';
import { poll_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { run_program, start_server } from '../lib/server.mjs';
import { initialize } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

const kModern = '2026-07-28';
const kLegacy = '2025-11-25';
// ip_hash looks at the first three numbers of an address only.
const kAddresses = Array.from({ length: 10 }, (_, index) => `127.0.${index + 1}.1`);

async function start_two(...flags) {
  const start = () => start_server({ after }, ['--trusted-proxy', '127.0.0.1', ...flags]);
  return [await start(), await start()];
}

// Two servers as clients see them.
async function front_of([one, two], { is_sticky }) {
  const text = block_at('docs/behind-a-proxy.md', 'nginx', 2)
    .replace('127.0.0.1:8080', `127.0.0.1:${one.port}`)
    .replace('127.0.0.1:8081', `127.0.0.1:${two.port}`);
  const [, upstream, location] = /^(upstream [^}]*\})\nserver \{([\s\S]*)\}\n$/.exec(text);
  const upstreams = is_sticky ? upstream : upstream.replace('ip_hash;', '');
  return behind({ after }, one, await start_nginx({ after }, location, upstreams), '/ai');
}

const servers = await start_two();
const sticky = await front_of(servers, { is_sticky: true });
const in_turns = await front_of(servers, { is_sticky: false });

// Runs `action`, and returns how many requests each of `servers` has had meanwhile.
async function requests_during(action) {
  const counts = () => Promise.all(servers.map((server) => server.metric('sluice_requests_total')));
  const before = await counts();
  await action();
  // The second look itself is a request.
  return (await counts()).map((count, index) => count - before[index] - 1);
}

async function says_same(front, revision) {
  const words = ['call', front.mcp_url, 'echo', 'text=same', '--revision', revision];
  const { code, stdout, stderr } = await run_program(words);
  assert.deepEqual([code, stdout], [0, 'same\n'], stderr);
}

async function both_are_asked(action) {
  const counts = await requests_during(action);
  assert.ok(Math.min(...counts) > 0, `one has had all requests: ${counts}`);
}

// Begins a session: {id, status}, the latter of a later request in it.
async function begin_session(client) {
  const ask = (message, headers) =>
    client.exchange(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }), headers);
  const begun = await ask(initialize(kLegacy));
  assert.equal(begun.status, 200);
  const id = begun.headers['mcp-session-id'];
  return { id, status: async () => (await ask({ method: 'ping' }, { 'Mcp-Session-Id': id })).status };
}

test('2026-07-28 needs no stickiness: the official client, and ours', async (t) => {
  await both_are_asked(async () => {
    const connection = await connect_over(t, 'v2, 2026-07-28', 'http', { server: in_turns });
    for (let call = 0; call < 6; ++call) {
      const { tools } = await connection.client.listTools();
      assert.ok(tools.some(({ name }) => name === 'generate'));
      const { text, deltas } = await generate(connection, { prompt: 'Hello', count: 5 });
      assert.equal(wire.count_numbers(text), 5);
      assert.equal(deltas.length, 5);
    }
  });
  await both_are_asked(async () => {
    for (let call = 0; call < 2; ++call) await says_same(in_turns, kModern);
  });
});

test('older revisions need none where there are no sessions', async () => {
  const front = await front_of(await start_two('--max-sessions', '0'), { is_sticky: false });
  for (let call = 0; call < 3; ++call) await says_same(front, kLegacy);
});

test('sessions and streams are found at one server only', async () => {
  const client = new HttpClient(in_turns);
  const { status } = await begin_session(client);
  const statuses = [await status(), await status(), await status(), await status()];
  assert.deepEqual(statuses.toSorted(), [200, 200, 404, 404]);
  const { stream_id } = await client.call(...wire.start({ count: 1 }));
  const codes = [];
  for (let poll = 0; poll < 4; ++poll) codes.push(await client.code_of(...wire.is_running(stream_id)));
  assert.deepEqual(new Set(codes), new Set([undefined, wire.codes.not_found]));
});

test('a choice by the address of the client keeps sessions and streams', async () => {
  await both_are_asked(async () => {
    for (const local_address of kAddresses) {
      const client = new HttpClient(sticky, { local_address });
      const { status } = await begin_session(client);
      for (let ping = 0; ping < 3; ++ping) assert.equal(await status(), 200);
      const { stream_id } = await client.call(...wire.start({ count: 3 }));
      const chunks = await poll_stream(client, stream_id, { wait_ms: 5000 });
      assert.equal(wire.count_numbers(wire.checked_text(chunks)), 3);
    }
  });
  await says_same(sticky, kLegacy);
});
