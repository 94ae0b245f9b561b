// `sluice doctor TARGET`, which examines anybody's server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import {
  start_bad_login,
  start_bad_server,
  start_buffering_proxy,
  start_endless_server,
  start_recording_proxy,
} from '../lib/bad_server.mjs';
import { make_certificate } from '../lib/certificate.mjs';
import { examine } from '../lib/doctor.mjs';
import { block_at } from '../lib/documentation.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import {
  clean_environment,
  everything,
  program,
  run_program,
  start_everything,
  start_proxy,
  start_server,
} from '../lib/server.mjs';

test('our own server is as it should be, over each transport', async (t) => {
  const server = await start_everything(t);
  for (const words of [
    [server.mcp_url],
    ['--', everything, '--stdio'],
    [`ws://127.0.0.1:${server.port}/ws`],
  ]) {
    const { code, ok, bad, checks, found } = await examine(words);
    assert.deepEqual([code, ok, bad], [0, true, []], words.join(' '));
    assert.ok(!checks.some(({ status }) => status === 'warn'), JSON.stringify(checks, null, 1));
    assert.match(found('revisions').finding, /2026-07-28/);
    assert.match(found('tools').finding, /^\d+ listed/);
  }
});

test('the older transport is known, and that it is the only one noted', async (t) => {
  const server = await start_everything(t);
  const { code, bad, found } = await examine([`${server.base}/sse`]);
  assert.deepEqual([code, bad], [0, []]);
  assert.equal(found('revisions').status, 'note');
  assert.match(found('HTTP+SSE').finding, /^the endpoint arrives after \d+ ms$/);
  assert.match(found('tools').finding, /^\d+ listed/);
});

test('a server with keys is examined with one', async (t) => {
  const key = 'key-for-the-doctor-0123456789';
  const server = await start_server(t, ['--api-key', `doctor=${key}`]);
  const without = await examine([server.mcp_url]);
  assert.equal(without.code, 3);
  assert.equal(without.found('challenge').status, 'ok');
  assert.equal(without.found('resource metadata').status, 'warn');
  const { code, bad, found } = await examine([
    server.mcp_url,
    '--header',
    `Authorization: Bearer ${key}`,
  ]);
  assert.deepEqual([code, bad], [0, []]);
  assert.equal(found('invalid token').status, 'ok');
  assert.match(found('tools').finding, /listed/);
});

test('a silent server is given up in time', async (t) => {
  const sockets = [];
  const server = net.createServer((socket) => sockets.push(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const before = performance.now();
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  const { code, found } = await examine([url, '--timeout', '1']);
  assert.equal(code, 4);
  assert.match(found('reply').finding, /^no reply within/);
  assert.ok(performance.now() - before < 10_000);
});

test('sessions that were opened are ended', async (t) => {
  const server = await start_server(t);
  const { code, found } = await examine([server.mcp_url]);
  assert.equal(code, 0);
  assert.equal(found('deleted session').status, 'ok');
  assert.equal(await server.metric('sluice_sessions'), 0);
});

// What the bad server does wrong, and the clause that it breaks.
const kViolations = [
  ['origin', 'fail', '2026-07-28, Streamable HTTP, Security & Endpoint'],
  ['version refused', 'fail', '2026-07-28, Streamable HTTP, Protocol Version Header'],
  ['version header', 'fail', '2026-07-28, Streamable HTTP, Protocol Version Header'],
  ['Mcp-Method', 'fail', '2026-07-28, Streamable HTTP, Server Validation'],
  ['no Mcp-Method', 'fail', '2026-07-28, Streamable HTTP, Server Validation'],
  ['Mcp-Name', 'fail', '2026-07-28, Streamable HTTP, Server Validation'],
  ['_meta', 'fail', '2026-07-28, Overview, _meta'],
  ['unknown method', 'fail', '2026-07-28, Streamable HTTP, Protocol Version Header'],
  ['unknown resource', 'fail', '2026-07-28, Resources, Error Handling'],
  ['no sessions', 'warn', '2026-07-28, Streamable HTTP, Earlier Streamable HTTP Revisions'],
  ['unknown revision', 'fail', '2025-11-25, Lifecycle, Version Negotiation'],
  ['notifications', 'fail', '2025-11-25, Transports, Sending Messages to the Server, item 4'],
  ['legacy answer', 'fail', '2025-11-25, Overview, Responses'],
  ['legacy origin', 'fail', '2025-11-25, Transports, Security Warning, item 1'],
  ['legacy version', 'fail', '2025-11-25, Transports, Protocol Version Header'],
  ['legacy method', 'fail', 'JSON-RPC 2.0, section 5.1'],
  ['broken JSON', 'fail', 'JSON-RPC 2.0, section 5.1'],
  ['GET stream', 'fail', '2025-11-25, Transports, Listening for Messages from the Server, item 3'],
  ['listen', 'fail', '2026-07-28, Subscriptions, Acknowledgment'],
  ['session id', 'fail', '2025-11-25, Transports, Session Management, item 1'],
  ['session secrecy', 'fail', '2025-11-25, Transports, Session Management, item 1'],
  ['unknown session', 'fail', '2025-11-25, Transports, Session Management, item 3'],
  ['deleted session', 'fail', '2025-11-25, Transports, Session Management, items 3 and 5'],
  ['tool names', 'warn', '2026-07-28, Tools, Tool Names'],
  ['same tools', 'warn', '2026-07-28, Tools, Tool Names'],
  ['input schemas', 'fail', '2026-07-28, Tools, Tool'],
  ['output schemas', 'fail', '2026-07-28, Tools, Output Schema'],
  ['x-mcp-header', 'fail', '2026-07-28, Tools, x-mcp-header'],
  ['order', 'warn', '2026-07-28, Tools, Capabilities'],
  ['prompts', 'fail', '2026-07-28, Prompts, Capabilities'],
  ['URIs', 'fail', '2026-07-28, Resources, Resource'],
  ['resultType', 'fail', '2026-07-28, Overview, ResultType'],
  ['cache hints', 'fail', '2026-07-28, Caching, Cacheable Results'],
];

test('each violation of a bad server is found, with its clause and what to do', async (t) => {
  const { code, ok, found } = await examine([await start_bad_server(t)]);
  assert.deepEqual([code, ok], [1, false]);
  for (const [subject, status, clause] of kViolations) {
    const check = found(subject);
    assert.equal(check.status, status, JSON.stringify(check));
    assert.ok(check.clause.startsWith(clause), JSON.stringify(check));
    assert.notEqual(check.fix, '', subject);
  }
});

test('what stands between people and a login is found, and all else is left', async (t) => {
  const url = await start_bad_login(t);
  const { code, found, checks } = await examine([url]);
  assert.equal(code, 3);
  for (const [subject, clause] of [
    ['challenge', 'RFC 9110, section 15.5.2'],
    ['resource', 'RFC 9728, section 3.3'],
    ['issuer', 'RFC 8414, section 3.3'],
    ['PKCE', '2026-07-28, Authorization Security Considerations, Authorization Code Protection'],
    ['invalid token', '2026-07-28, Authorization, Token Handling'],
  ]) {
    assert.equal(found(subject).status, 'fail', JSON.stringify(found(subject)));
    assert.equal(found(subject).clause, clause);
  }
  assert.equal(found('resource metadata').status, 'ok');
  assert.match(found('login').fix, new RegExp(`sluice login ${url}`));
  assert.ok(!checks.some(({ subject }) => subject === 'tools'));
  const with_key = await examine([`${url}?api_key=hunter2`]);
  assert.match(with_key.found('login').fix, /api_key=\*\*\*/);
  assert.ok(!JSON.stringify(with_key.checks).includes('hunter2'));
});

test('a proxy that holds streams back is found', async (t) => {
  const server = await start_everything(t);
  const { code, found } = await examine([await start_buffering_proxy(t, server.mcp_url)]);
  assert.equal(code, 1);
  for (const subject of ['listen', 'GET stream']) {
    assert.equal(found(subject).status, 'fail', JSON.stringify(found(subject)));
    assert.match(found(subject).fix, /a proxy holds the stream back/);
  }
});

// A server that refuses everything, and says what it was sent.
const kTellingServer = `
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const serverInfo = { name: 'telling', version: '1' };
  const about = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  const error = { code: -32000, message: 'key s3cretkey-123 may not do ' + method + ' (hunter2/hunter3)' };
  if (id === undefined) return;
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(method === 'initialize' ? { result: about } : { error }) }));
});
`;

test('what a server repeats of its key and its fields is not in the report', async (t) => {
  const { port } = await start_proxy(t, ['--', process.execPath, '-e', kTellingServer]);
  for (const place of [`ws://127.0.0.1:${port}/ws`, `http://127.0.0.1:${port}/sse`]) {
    const words = ['-H', 'X-Api-Key: hunter2/hunter3', `${place}?key=s3cretkey-123`];
    const { checks, found } = await examine(words);
    assert.match(found('tools').finding, /key \*\*\* may not do tools\/list \(\*\*\*\)/);
    assert.doesNotMatch(JSON.stringify(checks), /s3cret|hunter/);
  }
});

// What reads, and what every client says of itself.
const kHarmless = [
  ...['server/discover', 'initialize', 'notifications/initialized', 'ping'],
  ...['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read'],
  ...['subscriptions/listen', 'sluice-doctor/unknown'],
];
const kBrokenJson = '{"jsonrpc":"2.0","id":1,"method":';
const kMaxRequests = 100;

test('no tool is called, nothing is changed, and no more is asked than the documentation says', async (t) => {
  const { mcp_url } = await start_everything(t);
  const endless = await start_endless_server(t);
  for (const target of [mcp_url, await start_bad_server(t), endless]) {
    const { url, asked } = await start_recording_proxy(t, target);
    await examine([url]);
    const count = asked.length;
    assert.ok(target === endless ? count === kMaxRequests : count < kMaxRequests, `${count} requests`);
    // The last one is kept for the end of the session.
    if (target === endless) assert.equal(asked.at(-1).method, 'DELETE');
    for (const { method, body } of asked) {
      assert.ok(['GET', 'POST', 'DELETE'].includes(method), method);
      if (method !== 'POST' || body === kBrokenJson) continue;
      assert.ok(kHarmless.includes(JSON.parse(body).method), body);
    }
  }
});

test('an interrupt leaves no program and no session behind', async (t) => {
  const script = 'trap "" TERM; echo "pid $$" >&2; sleep 1000 & while :; do wait; done';
  const child = spawn(program, ['doctor', '--', 'bash', '-c', script], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: clean_environment({}),
  });
  t.after(() => child.kill('SIGKILL'));
  const [line] = await once(child.stderr.setEncoding('utf8'), 'data');
  child.kill('SIGINT');
  const [code] = await once(child, 'close');
  assert.equal(code, 130);
  assert.ok(!existsSync(`/proc/${line.match(/pid (\d+)/)[1]}`));

  const open = new Set();
  const server = http.createServer((request, response) => {
    if (request.method === 'DELETE') open.delete(request.headers['mcp-session-id']);
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      let message;
      try {
        message = JSON.parse(body);
      } catch {
        return response.writeHead(400).end(); // of what is sent to see whether it is refused
      }
      const { id, method, params } = message;
      if (method === 'tools/list') return doctor.kill('SIGINT');
      if (method !== 'initialize') return response.writeHead(id === undefined ? 202 : 400).end();
      const session = `session-${open.size}-${'x'.repeat(20)}-${params.protocolVersion}`;
      open.add(session);
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session });
      const { protocolVersion } = params;
      const capabilities = { tools: {} };
      const serverInfo = { name: 'open', version: '1' };
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion, capabilities, serverInfo } }),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const doctor = spawn(program, ['doctor', `http://127.0.0.1:${server.address().port}/mcp`], {
    stdio: 'ignore',
    env: clean_environment({}),
  });
  t.after(() => doctor.kill('SIGKILL'));
  const [ended] = await once(doctor, 'close');
  assert.deepEqual([ended, [...open]], [130, []]);
});

test('nobody there is 4, and a page that is no MCP server 1', async (t) => {
  const server = http.createServer((request, response) => response.end('<html></html>'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  const page = await examine([url]);
  assert.equal(page.code, 1);
  assert.match(page.found('revisions').finding, /no MCP server answers here/);
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
  const gone = await examine([url]);
  assert.equal(gone.code, 4);
  assert.equal(gone.found('connection').status, 'fail');
  const unfit = await run_program(['doctor', url, '--port', '80']);
  assert.equal(unfit.code, 2);
  const session = await run_program(['doctor', '@notes']);
  assert.equal(session.code, 2);
  const { stdout: help } = await run_program(['doctor', '--help']);
  assert.ok(!help.includes('@'), 'nor is it offered');
  const headless = await run_program(['doctor', '--timeout', '3']);
  assert.equal(headless.code, 2);
});

// The SDKs leave the check of Origin to their users.
test('a server on the TypeScript SDK v1: it forgets that a session has been', async (t) => {
  const server = await start_foreign(t, foreign_command('typescript_v1.mjs', 'http'));
  const { bad, found } = await examine([`${server.base}/mcp`]);
  assert.deepEqual(
    bad.map(({ subject }) => subject),
    ['legacy origin', 'deleted session'],
  );
  assert.equal(found('revisions').finding, '2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05');
  assert.match(found('deleted session').finding, /^HTTP 400, error -32000/);
});

test('a server on the TypeScript SDK v2', async (t) => {
  const server = await start_foreign(t, foreign_command('typescript_v2.mjs', 'http'));
  const { bad, found } = await examine([`${server.base}/mcp`]);
  assert.deepEqual(
    bad.map(({ subject }) => subject),
    ['origin', 'legacy origin'],
  );
  assert.match(found('revisions').finding, /^2026-07-28, 2025-11-25/);
});

test('the report in the documentation is what it prints', async (t) => {
  const url = await start_bad_server(t);
  const { stdout } = await run_program(['doctor', url]);
  const shown = block_at('docs/cli.md', 'console', 7).split('\n').slice(1, -1);
  const printed = new Set(stdout.split('\n'));
  assert.ok(shown.length > 0);
  for (const line of shown) assert.ok(printed.has(line), line);
});

test('certificates are examined: a chain that nobody trusts, and one that is', async (t) => {
  const { certificate, key } = make_certificate(t);
  const server = await start_server(t, ['--tls-cert', certificate, '--tls-key', key]);
  const strange = await examine([server.mcp_url]);
  assert.equal(strange.code, 1);
  assert.match(strange.found('certificate').finding, /^self-signed certificate; it is valid for/);
  assert.ok(!strange.checks.some(({ subject }) => subject === 'reply'), 'nothing is sent there');
  const outcome = await run_program(['doctor', '--json', server.mcp_url], {
    env: { SSL_CERT_FILE: certificate },
  });
  const { checks } = JSON.parse(outcome.stdout);
  assert.equal(outcome.code, 0, outcome.stdout);
  const found = (subject) => checks.find((each) => each.subject === subject);
  assert.match(found('encryption').finding, /^TLSv1\.3/);
  assert.equal(found('certificate').status, 'warn', 'it ends in two days');
  assert.equal(found('tools').status, 'ok');
});
