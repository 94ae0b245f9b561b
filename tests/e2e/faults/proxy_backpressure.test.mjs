// A fast server behind a proxy, and a client that does not read for a while: over each transport behind,
// the proxy keeps little, and nothing is lost.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { is_sanitized, start_proxy, temporary_folder, until } from '../lib/server.mjs';

const MiB = 1024 * 1024;
const kParts = 6_400;
const kBytes = 10_000; // of each: 61 MiB in all
// What a proxy may keep of one call: its streams (1 MiB, and what is under way), and buffers.
const kMost = 12 * MiB;

// A server whose tool says kParts parts as fast as they are read, and how many it has said in a file.
const kFlood = `
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const [, , parts, bytes, file] = process.argv;
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const serverInfo = { name: 'flood', version: '1' };
    const { protocolVersion } = params;
    say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'tools/call') {
    const { progressToken } = params._meta;
    for (let progress = 1; progress <= Number(parts); ++progress) {
      const part = { progressToken, progress, message: 'x'.repeat(Number(bytes)) };
      if (!say({ method: 'notifications/progress', params: part })) {
        writeFileSync(file, String(progress));
        await once(process.stdout, 'drain');
      }
    }
    say({ id, result: { content: [] } });
  } else if (id !== undefined) {
    say({ id, error: { code: -32601, message: 'Method not found' } });
  }
});
`;

// Calls the tool, and resolves with the reply when its head is there. Its body is not read yet.
function call_unread({ host, port }) {
  const kMeta = 'io.modelcontextprotocol/';
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'flood',
      _meta: {
        progressToken: 1,
        [`${kMeta}protocolVersion`]: '2026-07-28',
        [`${kMeta}clientInfo`]: { name: 'deaf', version: '1' },
        [`${kMeta}clientCapabilities`]: {},
      },
    },
  });
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': 'flood',
  };
  return new Promise((resolve, reject) => {
    http
      .request({ host, port, path: '/mcp', method: 'POST', headers }, resolve)
      .once('error', reject)
      .end(body);
  });
}

const places = {
  stdio: undefined,
  http: ({ mcp_url }) => [mcp_url],
  sse: () => ['over-sse'],
  websocket: ({ ws_url }) => [ws_url],
  unix: ({ socket }) => [`unix:${socket}`],
};

for (const [kind, words_for] of Object.entries(places)) {
  test(`${kind} behind`, async (t) => {
    const cwd = temporary_folder(t);
    const script = path.join(cwd, 'flood.mjs');
    const file = path.join(cwd, 'said');
    writeFileSync(script, kFlood);
    const command = ['--', process.execPath, script, String(kParts), String(kBytes), file];
    const inner = await start_proxy(t, command);
    if (words_for !== undefined) {
      const mcpServers = { 'over-sse': { type: 'sse', url: `${inner.base}/sse` } };
      writeFileSync(path.join(cwd, '.mcp.json'), JSON.stringify({ mcpServers }));
    }
    const proxy = words_for ? await start_proxy(t, words_for(inner), { cwd }) : inner;
    const before = proxy.memory();
    const reply = await call_unread(proxy);
    assert.equal(reply.statusCode, 200);
    // The server is held up: it has said no more for a while.
    let said;
    let unchanged = 0;
    await until(() => {
      const now = existsSync(file) && readFileSync(file, 'utf8');
      unchanged = now && now === said ? unchanged + 1 : 0;
      said = now;
      return unchanged === 50;
    }, 'the server waits');
    t.diagnostic(`${said} of ${kParts} parts are under way; the proxy has grown by ${((proxy.memory() - before) / MiB).toFixed(1)} MiB`);
    assert.ok(Number(said) < kParts / 2, `${said} parts`);
    if (!is_sanitized) assert.ok(proxy.memory() - before < kMost, `${proxy.memory() - before} bytes`);
    let next = 1;
    let result;
    for await (const line of createInterface({ input: reply })) {
      if (!line.startsWith('data: ')) continue;
      const message = JSON.parse(line.slice(6));
      if (message.method !== 'notifications/progress') {
        result = message;
        continue;
      }
      assert.equal(message.params.progress, next);
      ++next;
    }
    assert.equal(next, kParts + 1);
    assert.deepEqual(result?.result?.content, [], JSON.stringify(result));
    assert.ok(is_sanitized || proxy.memory('VmHWM') - before < kMost, 'at no time');
  });
}
