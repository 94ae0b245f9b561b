// Peers that stop reading, over each transport and in each way to get much from the server. The
// server waits for them or gives them up, in bounded memory. Others are answered at once, and
// nothing is left of the peers when they are gone.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { make_certificate } from '../lib/certificate.mjs';
import { MiB, beside_an_innocent, deaf } from '../lib/deaf.mjs';
import { longest_gap } from '../lib/innocent.mjs';
import { socket_path } from '../lib/lines.mjs';
import { patience } from '../lib/patience.mjs';
import { RawConnection, frame, post, upgrade } from '../lib/raw.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import { StreamableClient, initialize } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

// How much may be held for all peers, and by how much the server's memory may grow: its allocator
// keeps some of what was freed.
const kBuffers = 16 * MiB;
const kGrowth = 64 * MiB;
// When as much is queued for each peer, its kernel takes no more.
const kQueued = 64 * 1024;

// More than the innocent and the test do between two looks, and less than a peer does.
const kStill = 5000;

const kOther = '127.0.0.6';
const kDeafs = 5;
// Long enough for a task to fill what the kernel takes.
const kTaskSeconds = Math.max(6, Math.ceil(patience / 7500));

const message = (id, method, params) => JSON.stringify({ jsonrpc: '2.0', id, method, params });
const get = (path, fields = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`;
const json = (fields = '') => ({ headers: `Content-Type: application/json\r\n${fields}` });
const endless = wire.start({ count: 1e8, interval_us: 0 });

// Makes as many deaf peers as a test has. `begin` makes one of them.
async function several(begin, count = kDeafs) {
  const peers = [];
  for (let n = 0; n < count; ++n) peers.push(await begin(n));
  return peers;
}

async function begin_stream(server) {
  return (await new HttpClient(server, { local_address: '127.0.0.1' }).call(...endless)).stream_id;
}

const read_stream = (t, server, options) =>
  several(async () => {
    const stream_id = await begin_stream(server);
    const peer = await deaf(t, server, options);
    peer.write(get(wire.path.stream(stream_id)));
    return peer;
  });

function stops_reading(t, connection) {
  t.after(() => connection.destroy());
  connection.socket.pause();
  return connection;
}

// A listener on /sse that reads where to post, and nothing after that.
async function listens_no_more(t, server) {
  const listener = await RawConnection.open(server);
  listener.write(get('/sse'));
  const [, endpoint] = await listener.until(
    () => /event: endpoint\ndata: (\S+)\n\n/.exec(listener.received.toString()),
    'the endpoint is told',
  );
  return { listener: stops_reading(t, listener), endpoint };
}

// Asks for the same again and again on one connection. `request` is HTTP.
const pipelines = (t, server, request, times, options) =>
  several(async () => {
    const peer = await deaf(t, server, options);
    peer.write(request.repeat(times));
    return peer;
  });

const floods_websocket = (t, server, messages, options) =>
  several(async () => {
    const peer = stops_reading(t, await upgrade(server, options));
    peer.write(Buffer.concat(messages.map((text) => frame(1, text))));
    return peer;
  });

const many = (count, method, params) =>
  Array.from({ length: count }, (_, id) => message(id + 1, method, params));

// Begins a task that ends at once, in a session. Returns what a request about it needs.
async function ended_task(server) {
  const client = new StreamableClient(server, '2025-11-25');
  await client.ask(initialize('2025-11-25'));
  const params = { name: 'stream_numbers', arguments: { count: 1 }, task: {} };
  const { result } = await client.ask({ method: 'tools/call', params });
  const task = { taskId: result.task.taskId };
  const answer = await client.ask({ method: 'tasks/result', params: task });
  assert.ok(answer.result.content, 'the task has a result');
  const fields =
    `Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n` +
    `Mcp-Session-Id: ${client.session}\r\n`;
  return { task, fields };
}

// The ways to be deaf: the flags of the server, and what the peers do. They are returned.
const ways = {
  'requests over HTTPS': {
    tls: true,
    attack: (t, server) => pipelines(t, server, get('/metrics'), 3000, { tls: true }),
  },
  'streams over HTTPS': {
    tls: true,
    attack: (t, server) => read_stream(t, server, { tls: true }),
  },
  'requests over a WebSocket with TLS': {
    tls: true,
    attack: (t, server) => floods_websocket(t, server, many(10_000, 'tools/list'), { tls: true }),
  },
  'streams over a WebSocket with TLS': {
    tls: true,
    attack: (t, server) => floods_websocket(t, server, [message(1, ...endless)], { tls: true }),
  },
  'streams of GET /streams/{id}': {
    attack: (t, server) => read_stream(t, server),
  },
  'answers on /sse': {
    attack: (t, server) =>
      several(async () => {
        const { listener, endpoint } = await listens_no_more(t, server);
        // Whoever posts reads the answers to its posts, which say only that they have come.
        const poster = await RawConnection.open(server);
        t.after(() => poster.destroy());
        const request = post(message(1, 'tools/list'), json()).replace('/mcp', `/${endpoint}`);
        poster.write(request.repeat(10_000));
        listener.helper = poster;
        return listener;
      }),
  },
  'progress on /sse': {
    attack: (t, server) =>
      several(async () => {
        const { listener, endpoint } = await listens_no_more(t, server);
        const params = {
          name: 'generate',
          arguments: { prompt: 'x', count: 1e8, interval_us: 0 },
          _meta: { progressToken: 'p' },
        };
        const body = message(1, 'tools/call', params);
        const { status } = await server.request({
          method: 'POST',
          path: `/${endpoint}`,
          body,
          agent: false,
        });
        assert.equal(status, 202);
        return listener;
      }),
  },
  'progress of tasks on GET /mcp of a session': {
    deafs: 2,
    attack: (t, server) =>
      several(async () => {
        const client = new StreamableClient(server, '2025-11-25');
        await client.ask(initialize('2025-11-25'));
        const peer = await deaf(t, server);
        peer.write(
          get('/mcp', `Accept: text/event-stream\r\nMcp-Session-Id: ${client.session}\r\n`),
        );
        const params = {
          name: 'stream_numbers',
          arguments: { count: 1e8, interval_us: 0 },
          task: {},
          _meta: { progressToken: 'p' },
        };
        const { result } = await client.ask({ method: 'tools/call', params });
        assert.equal(result.task.status, 'working');
        return peer;
      }, 2),
  },
  'requests on a Unix socket': {
    unix: true,
    attack: (t, server, place) =>
      several(async () => {
        const peer = await deaf(t, server, { unix: place });
        peer.write(`${many(10_000, 'tools/list').join('\n')}\n`);
        return peer;
      }),
  },
  'streams on a Unix socket': {
    unix: true,
    attack: (t, server, place) =>
      several(async () => {
        const peer = await deaf(t, server, { unix: place });
        peer.write(`${message(1, ...endless)}\n`);
        return peer;
      }),
  },
  'long polls over HTTP': {
    attack: async (t, server) => {
      const stream_id = await begin_stream(server);
      const poll = post(message(1, ...wire.poll(stream_id, 0, 60_000)), json());
      return pipelines(t, server, poll, 2000);
    },
  },
  'long polls over a WebSocket': {
    attack: async (t, server) => {
      const stream_id = await begin_stream(server);
      return floods_websocket(t, server, many(2000, ...wire.poll(stream_id, 0, 60_000)));
    },
  },
  'tasks/result': {
    attack: async (t, server) => {
      const { task, fields } = await ended_task(server);
      return pipelines(t, server, post(message(1, 'tasks/result', task), json(fields)), 20_000);
    },
  },
  'tasks/get': {
    attack: async (t, server) => {
      const { task, fields } = await ended_task(server);
      return pipelines(t, server, post(message(1, 'tasks/get', task), json(fields)), 20_000);
    },
  },
};

// What returns to its former value when the peers are gone.
const kCounters = [
  wire.metric.connections,
  'sluice_websockets',
  'sluice_line_connections',
  'sluice_streaming_replies',
  wire.metric.streams,
  wire.metric.streams_active,
  wire.metric.slots_busy,
  'sluice_sessions',
  'sluice_tasks',
  'sluice_buffer_memory_bytes',
];

async function counters(server) {
  const samples = await server.metrics();
  return Object.fromEntries(
    kCounters.map((name) => [name, samples.find((sample) => sample.name === name).value]),
  );
}

async function returns_to(server, before) {
  let now;
  const same = () => kCounters.every((name) => now[name] === before[name]);
  await until(async () => {
    now = await counters(server);
    return same();
  }, 'the counters return').catch(() => {});
  assert.deepEqual(now, before);
}

async function queued(server) {
  return (
    (await server.metric('sluice_output_queued_bytes')) +
    (await server.metric('sluice_line_output_queued_bytes'))
  );
}

// What the server reads and makes for its peers.
async function work(server) {
  const samples = await server.metrics();
  const value = (name) => samples.find((sample) => sample.name === name).value;
  return { bytes: value('sluice_received_bytes_total'), chunks: value('sluice_chunks_total') };
}

// Waits until the server reads and makes no more than what the innocent and the test itself need.
async function nothing_is_done_for_them(server) {
  let before = await work(server);
  let still = 0;
  await until(async () => {
    const now = await work(server);
    const moves = now.bytes - before.bytes > kStill || now.chunks - before.chunks > kStill;
    before = now;
    still = moves ? 0 : still + 1;
    return still === 20;
  }, 'nothing more is done for them');
}

async function start(t, { tls, unix }, flags) {
  const place = unix && socket_path(t);
  const { certificate, key } = tls ? make_certificate(t) : {};
  const server = await start_server(t, [
    // What is unread expires soon after its peer has gone.
    ...['--stream-expiry', '1s', '--session-expiry', '1s', '--resume-window', '1s'],
    ...['--max-task-ttl', `${kTaskSeconds}s`, '--max-total-buffers', String(2 * kBuffers)],
    ...(tls ? ['--tls-cert', certificate, '--tls-key', key] : []),
    ...(unix ? ['--unix', place, '--host', '127.0.0.1'] : []),
    ...flags,
  ]);
  return { server, place };
}

// Each test waits more than it works. Several at a time disturb each other, so only a sanitizer's
// build, which may be slow, runs them side by side.
const at_once = Number(process.env.SLUICE_TESTS_AT_ONCE ?? 1);

describe('peers that stop reading', { concurrency: at_once }, () => {
  for (const [name, way] of Object.entries(ways)) {
    const deafs = way.deafs ?? kDeafs;
    test(`${name}: who does not read gets what may wait, and leaves nothing behind`, async (t) => {
      const { server, place } = await start(t, way, []);
      const seen = await beside_an_innocent(server, async () => {
        const before = await counters(server);
        const memory = server.memory();
        const peers = await way.attack(t, server, place);
        const waits = async () => (await queued(server)) >= deafs * kQueued;
        await until(waits, 'something waits for all');
        await nothing_is_done_for_them(server);
        const other = new HttpClient(server, { local_address: kOther });
        // Compiles the schemas that its answers are checked with, which is not the server's time.
        assert.deepEqual(await other.call('ping', {}), {});
        for (let look = 0; look < 10; ++look) {
          const asked = performance.now();
          assert.deepEqual(await other.call('ping', {}), {});
          const took = performance.now() - asked;
          assert.ok(took < longest_gap, `${took} ms for a ping`);
          const held = await server.metric('sluice_buffer_memory_bytes');
          assert.ok(held <= kBuffers, `${held} bytes of buffers`);
          const growth = server.memory() - memory;
          assert.ok(growth < kGrowth, `${growth} bytes of memory more`);
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        t.diagnostic(`${await queued(server)} bytes wait, ${server.memory() - memory} bytes more`);
        for (const peer of peers) {
          peer.helper?.destroy();
          peer.destroy();
        }
        await returns_to(server, before);
      });
      t.diagnostic(JSON.stringify(seen));
    });

    test(`${name}: who reads nothing for long is given up`, async (t) => {
      const { server, place } = await start(t, way, ['--write-stall', '1s']);
      const seen = await beside_an_innocent(server, async () => {
        const before = await counters(server);
        const peers = await way.attack(t, server, place);
        await until(
          async () =>
            (await server.metric('sluice_connections_stalled_total')) +
              (await server.metric('sluice_line_connections_stalled_total')) >=
            deafs,
          'all are given up',
        );
        for (const peer of peers) peer.helper?.destroy();
        await returns_to(server, before);
      });
      t.diagnostic(JSON.stringify(seen));
    });
  }
});
