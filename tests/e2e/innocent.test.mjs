// One client may not stop another: while each attack runs, a reader of a stream that has a chunk each
// 20 ms never waits long for one.

import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Innocent } from './lib/innocent.mjs';
import { RawConnection } from './lib/raw.mjs';
import { start_server } from './lib/server.mjs';

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

// How often `text` stands in what has come.
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

test('long arguments that are parsed and checked', async (t) => {
  const server = await start_server(t);
  const innocent = await Innocent.beside(server);
  const values = Array(500_000).fill(1.5);
  const body = Buffer.from(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'generate', arguments: { prompt: 'x', values } },
    }),
  );
  const attackers = await connections(t, server, 10);
  for (const attacker of attackers) attacker.write(Buffer.concat(Array(5).fill(post(body))));
  for (const attacker of attackers) {
    await attacker.until(() => count_of(attacker, 'HTTP/1.1 ') === 5, 'all were answered');
  }
  t.diagnostic(JSON.stringify(await innocent.was_not_disturbed()));
});
