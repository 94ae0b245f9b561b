// A thousand clients are killed with SIGKILL in the middle of their streams. Nothing may be left of
// them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { Innocent } from '../lib/innocent.mjs';
import { frame } from '../lib/raw.mjs';
import { poll_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { clean_environment, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kVictims = 1000;
const kAtOnce = 16;

// A small client in its own process. It sends the bytes given and reads until it is killed.
const kVictim = 'exec 3<>"/dev/tcp/127.0.0.1/$1"; printf %b "$2" >&3; exec cat <&3';

const escaped = (bytes) =>
  [...Buffer.from(bytes)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

// Resolves when the victim is dead. The victim is killed after reading `appetite` bytes or after
// `patience` ms, whichever is given. With an appetite of 0 it is killed while it connects.
function sacrifice(server, bytes, { appetite = Infinity, patience }) {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', kVictim, 'victim', String(server.port), escaped(bytes)], {
      env: clean_environment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let eaten = 0;
    const kill = () => child.kill('SIGKILL');
    child.once('error', reject);
    child.once('close', () => resolve(eaten));
    child.once('spawn', () => {
      if (appetite === 0) kill();
      if (patience !== undefined) setTimeout(kill, patience);
    });
    child.stdout.on('data', (data) => {
      eaten += data.length;
      if (eaten >= appetite) kill();
    });
  });
}

// A small random number generator with a seed, so that a failure can be repeated.
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const http_post = (method, params, headers = '') => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
};

const ws_send = (method, params) =>
  Buffer.concat([
    Buffer.from(
      'GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    ),
    frame(1, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })),
  ]);

const kEndless = { prompt: 'Hello', count: 100_000_000, interval_us: 500 };

// What a victim is reading when it is killed.
const kWays = {
  'WebSocket push of its own stream': () => ws_send('run', { ...kEndless, stream: true }),
  'WebSocket push of a common stream': (common) => ws_send(...wire.subscribe(common)),
  'WebSocket tool call': () =>
    ws_send('tools/call', { name: 'generate', arguments: kEndless, _meta: { progressToken: 1 } }),
  'events of a common stream': (common) =>
    `GET ${wire.path.stream(common)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  'tool call with progress': () =>
    http_post(
      'tools/call',
      { name: 'generate', arguments: kEndless, _meta: { progressToken: 1 } },
      'Accept: application/json, text/event-stream\r\n',
    ),
  'whole answer': () => http_post('run', kEndless),
  'stream of its own and long polls': (common) =>
    http_post('run', { ...kEndless, stream: true }) +
    http_post('run', { stream_id: common, from_seq: 0, wait_ms: 20_000 }).repeat(20),
};

const kSilent = Object.keys(kWays).indexOf('whole answer');

test(`kill -9 of ${kVictims} clients leaves no connection, stream, slot, byte or descriptor`, async (t) => {
  const server = await start_server(t, [
    wire.flag.per_client,
    '100000',
    wire.flag.expiry,
    '2s',
    wire.flag.tombstone,
    '1s',
    wire.flag.max_chunks,
    '2000',
    wire.flag.stall_limit,
    '1s',
  ]);
  const seed = Number(process.env.SLUICE_E2E_SEED ?? Date.now() % 1_000_000);
  t.diagnostic(`SLUICE_E2E_SEED=${seed}`);
  const roll = dice(seed);
  const here = new HttpClient(server);

  // A client that is not killed reads a stream all the time.
  const survivor = await Innocent.beside(server);
  const descriptors = server.descriptors();

  const ways = Object.values(kWays);
  const eaten = new Array(ways.length).fill(0);
  let left = kVictims;
  let common = (await here.call(...wire.start(kEndless))).stream_id;
  const killer = async () => {
    while (left > 0) {
      const number = left--;
      if (number % 100 === 0) {
        await here.reply(...wire.abort(common));
        common = (await here.call(...wire.start(kEndless))).stream_id;
      }
      const way = number % ways.length;
      const appetite = roll(5) === 0 ? 0 : 1 + roll(4000);
      // A request for a whole answer gets no bytes if the answer never ends.
      const end = way === kSilent ? { patience: roll(40) } : { appetite };
      eaten[way] += await sacrifice(server, ways[way](common), end);
    }
  };
  await Promise.all(Array.from({ length: kAtOnce }, killer));
  for (const [index, name] of Object.keys(kWays).entries()) {
    if (index !== kSilent) assert.ok(eaten[index] > 0, `victims were in mid-stream: ${name}`);
  }

  t.diagnostic(JSON.stringify(await survivor.was_not_disturbed()));
  server.agent.destroy();

  // Streams that were started with an id live until they expire. All others are removed at once.
  const left_over = async () => ({
    connections: (await server.metric(wire.metric.connections)) - 1, // without the connection that asks
    streams: await server.metric(wire.metric.streams),
    active: await server.metric(wire.metric.streams_active),
    bytes: await server.metric(wire.metric.stream_bytes),
    output: await server.metric(wire.metric.output_bytes),
    slots: await server.metric(wire.metric.slots_busy),
    queued: await server.metric(wire.metric.requests_queued),
  });
  const nothing = {
    connections: 0,
    streams: 0,
    active: 0,
    bytes: 0,
    output: 0,
    slots: 0,
    queued: 0,
  };
  let last;
  await until(async () => {
    last = await left_over();
    return JSON.stringify(last) === JSON.stringify(nothing);
  }, 'nothing is left').catch(() => assert.deepEqual(last, nothing));
  await until(() => server.descriptors() <= descriptors, 'no descriptor is left').catch(() =>
    assert.ok(
      server.descriptors() <= descriptors,
      `${server.descriptors()} descriptors, ${descriptors} before`,
    ),
  );
  const { stream_id } = await here.call(...wire.start({ count: 10 }));
  assert.equal(wire.count_numbers(wire.checked_text(await poll_stream(here, stream_id))), 10);
});
