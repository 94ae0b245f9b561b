// One client must not be able to stop another. While each attack runs, a reader of a stream with a
// chunk every 20 ms never waits long for one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { FullPipe } from '../lib/full_pipe.mjs';
import { Innocent } from '../lib/innocent.mjs';
import { RawConnection } from '../lib/raw.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { is_sanitized, start_server, until } from '../lib/server.mjs';
import { modern } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

const MiB = 1024 * 1024;

async function connections(t, server, count) {
  const all = [];
  for (let n = 0; n < count; ++n) {
    const connection = await RawConnection.open(server);
    t.after(() => connection.destroy());
    all.push(connection);
  }
  return all;
}

function post(body, fields = '') {
  const head =
    `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${fields}` +
    `Content-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

const ping = (id) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }));

// How often `text` occurs in what has arrived.
const count_of = (connection, text) => connection.received.toString('latin1').split(text).length - 1;

test('small compressed bodies that expand to 4 MiB each', async (t) => {
  const server = await start_server(t);
  const innocent = await Innocent.beside(server);
  const blanks = Buffer.concat([ping(1), Buffer.alloc(3.9 * MiB, ' ')]);
  const request = post(gzipSync(blanks), 'Content-Encoding: gzip\r\n');
  const attackers = await connections(t, server, 30);
  for (const attacker of attackers) attacker.write(Buffer.concat(Array(4).fill(request)));
  for (const attacker of attackers) {
    await attacker.until(() => count_of(attacker, 'HTTP/1.1 200') === 4, 'all were answered');
  }
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

test('many pipelined small requests on many connections', async (t) => {
  const server = await start_server(t);
  const innocent = await Innocent.beside(server);
  const attackers = await connections(t, server, 20);
  const many = Buffer.concat(Array(2000).fill(post(ping(1))));
  for (const attacker of attackers) attacker.write(many);
  for (const attacker of attackers) {
    await attacker.until(() => count_of(attacker, 'HTTP/1.1 200') === 2000, 'all were answered');
  }
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

// A message of more than 4 MiB may have a value or name for each 16 of its bytes. These are fewer,
// so the tool gets them. The names are unsorted and begin alike, which makes comparing them dear.
const kMembers = Array.from({ length: 350_000 }, (_, n) => [
  `member ${String((n * 7919) % 350_000).padStart(16, '0')}`,
  n,
]);
const kLongArguments = { count: 0, x: Object.fromEntries(kMembers) };
const kLongCall = { name: 'stream_numbers', arguments: kLongArguments };
const kModernFields =
  'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: stream_numbers\r\n';

// What a client of 2026-07-28 can be asked matters: a call that may ask is compared with its retry.
for (const [whose, params, fields] of [
  ['a client that can be asked', modern(kLongCall), kModernFields],
  ['a client that cannot', modern(kLongCall, {}), kModernFields],
  ['a client of an older revision', kLongCall, ''],
]) {
  test(`long arguments that are parsed and checked, of ${whose}`, async (t) => {
    // On one loop, the reader is always beside the calls. With longer messages than by default,
    // work that they cause on the loop takes clearly longer than the reader may wait.
    const server = await start_server(t, ['--threads', '1', wire.flag.max_body, '16MiB']);
    const innocent = await Innocent.beside(server);
    const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const accept = 'Accept: application/json\r\n';
    const request = post(Buffer.from(call), `${accept}${fields}`);
    const attackers = await connections(t, server, 2);
    for (const attacker of attackers) attacker.write(Buffer.concat(Array(2).fill(request)));
    for (const attacker of attackers) {
      for (let n = 0; n < 2; ++n) {
        const { status, body } = await attacker.response();
        assert.equal(status, 200, body);
        assert.equal(JSON.parse(body).result?.content[0].text, '', body);
      }
    }
    t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
  });
}

const begin = (id, params) =>
  post(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'run', params })));

test('streams that one client begins and never reads', async (t) => {
  const kStreams = 400;
  const server = await start_server(t, ['--streams-per-client', String(kStreams)]);
  const innocent = await Innocent.beside(server);
  const [attacker] = await connections(t, server, 1);
  const endless = { prompt: 'x', count: 1e8, interval_us: 0, stream: true };
  for (let id = 0; id < kStreams; ++id) attacker.write(begin(id, endless));
  await attacker.until(
    () => count_of(attacker, 'streaming_started') === kStreams,
    'all have begun',
  );
  await until(
    async () => (await server.metric(wire.metric.pauses)) >= kStreams / 2,
    'they have filled what they may',
  );
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

test('more short streams than there is room for, which nobody reads', async (t) => {
  const server = await start_server(t);
  const innocent = await Innocent.beside(server);
  const kConnections = 20;
  const kEach = 3000;
  const many = Buffer.concat(
    Array(kEach).fill(begin(1, { prompt: 'x', count: 1, stream: true })),
  );
  const attackers = await connections(t, server, kConnections);
  for (const attacker of attackers) {
    attacker.write(many);
    await attacker.until(() => count_of(attacker, 'HTTP/1.1 200') === kEach, 'all are answered');
    attacker.destroy();
  }
  const other = new HttpClient(server, { local_address: '127.0.0.8' });
  const { stream_id } = await other.call(...wire.start({ count: 1 }));
  assert.ok(stream_id);
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

test('objects with very many members', async (t) => {
  const server = await start_server(t);
  const innocent = await Innocent.beside(server);
  const values = Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`member ${n}`, n]));
  const body = Buffer.from(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'generate', arguments: { prompt: 'x', values } },
    }),
  );
  const attackers = await connections(t, server, 10);
  // The build of a sanitizer takes seconds for each of them.
  const each = is_sanitized ? 1 : 5;
  for (const attacker of attackers) attacker.write(Buffer.concat(Array(each).fill(post(body))));
  for (const attacker of attackers) {
    await attacker.until(() => count_of(attacker, 'HTTP/1.1 ') === each, 'all were answered');
  }
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

test('a log that nobody reads', async (t) => {
  const pipe = new FullPipe(t);
  // One loop: if it waited for the log, nobody would be answered.
  const server = await start_server(
    t,
    ['--threads', '1', wire.flag.per_client, '1', wire.flag.request_timeout, '500ms'],
    { stderr: pipe.end },
  );
  const innocent = await Innocent.beside(server);
  assert.match(pipe.read(), / ready /, 'it logs into the pipe');
  pipe.fill();

  // Of each kind, one line in ten seconds is logged.
  const kEach = 2000;
  const endless = begin(1, { prompt: 'x', count: 1e8, stream: true });
  const strange = 'GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n';
  const [refused, limited, slow] = await connections(t, server, 3);
  refused.write(strange.repeat(kEach));
  await refused.until(() => count_of(refused, 'HTTP/1.1 4') === kEach, 'all hosts are refused');
  limited.write(Buffer.concat(Array(kEach).fill(endless)));
  await limited.until(() => count_of(limited, '-31010') === kEach - 1, 'all streams are refused');
  assert.deepEqual(await new HttpClient(server).call('ping', {}), {});

  // What is logged when there is room again says that these lines were not written.
  assert.equal(pipe.read().trim(), '');
  slow.write('GET /healthz');
  await slow.closed();
  const log = pipe.read();
  assert.match(log, /log lines were left out lines=2\n.* a peer took too long/, log);
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

test('megabytes of replies that are compressed', async (t) => {
  const server = await start_server(t);
  const innocent = await Innocent.beside(server);
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'generate', arguments: { prompt: 'x', count: 100_000 } },
  };
  const fields = 'Accept: application/json\r\nAccept-Encoding: gzip\r\n';
  const request = post(Buffer.from(JSON.stringify(call)), fields);
  const attackers = await connections(t, server, 5);
  for (const attacker of attackers) attacker.write(Buffer.concat([request, post(ping(2))]));
  for (const attacker of attackers) {
    await attacker.until(() => attacker.received.includes('"id":2'), 'both are answered');
    assert.match(attacker.received.toString('latin1'), /Content-Encoding: gzip/);
  }
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});

test('a batch of requests to a model', async (t) => {
  const server = await start_server(t, ['--engine', 'llama', '--threads', '1']);
  const innocent = await Innocent.beside_model(server);
  const [attacker] = await connections(t, server, 1);
  const messages = Array(16).fill({ role: 'user', content: 'a' });
  const params = { messages, max_tokens: 1, stream: true };
  const batch = Array.from({ length: 100 }, (_, id) => ({
    jsonrpc: '2.0',
    id,
    method: 'run',
    params,
  }));
  const fields = 'MCP-Protocol-Version: 2025-03-26\r\nAccept: application/json\r\n';
  attacker.write(post(Buffer.from(JSON.stringify(batch)), fields));
  const { status, body } = await attacker.response();
  assert.equal(status, 200, body);
  assert.ok(body.split('streaming_started').length > 10, body);
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});
