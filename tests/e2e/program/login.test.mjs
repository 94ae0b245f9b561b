// sluice login and sluice logout, and what other commands make of them, with a server that is its own
// authorization server.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { run_program } from '../lib/server.mjs';

// A server at `url` that wants tokens, and keeps what it was asked in `asked`.
async function start_server(t, { scope } = {}) {
  const asked = [];
  const tokens = new Set();
  let origin;
  const results = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'guarded', version: '1' },
    },
    'tools/list': { tools: [{ name: 'look', inputSchema: { type: 'object' } }] },
  };
  const documents = {
    '/.well-known/oauth-protected-resource/mcp': () => ({
      resource: `${origin}/mcp`,
      authorization_servers: [origin],
    }),
    '/.well-known/oauth-authorization-server': () => ({
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      device_authorization_endpoint: `${origin}/device`,
      registration_endpoint: `${origin}/register`,
      revocation_endpoint: `${origin}/revoke`,
      code_challenge_methods_supported: ['S256'],
    }),
    '/register': () => ({ client_id: 'registered' }),
    '/device': () => ({
      device_code: 'd',
      user_code: 'AB-CD',
      verification_uri: `${origin}/go`,
      expires_in: 60,
      interval: 1,
    }),
    '/token': () => {
      tokens.add(`t${tokens.size}`);
      return { access_token: [...tokens].at(-1), token_type: 'Bearer', refresh_token: 'r' };
    },
    '/revoke': () => ({}),
  };
  const answer_call = (request, body) => {
    const given = request.headers.authorization?.replace('Bearer ', '');
    if (!tokens.has(given)) return [401, {}, { 'WWW-Authenticate': 'Bearer' }];
    if (request.method !== 'POST') return [405];
    let message;
    try {
      message = JSON.parse(body);
    } catch {
      return [400];
    }
    const { id, method } = message;
    if (id === undefined) return [202];
    if (scope && method === 'tools/list') {
      const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
      return [403, {}, { 'WWW-Authenticate': challenge }];
    }
    const result = results[method];
    const error = { code: -32601, message: 'no such method' };
    return [200, { jsonrpc: '2.0', id, ...(result ? { result } : { error }) }];
  };
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    asked.push({ path: request.url, body });
    const document = documents[request.url];
    let [status, reply, headers] = document ? [200, document()] : [404, {}];
    if (request.url === '/mcp') [status, reply, headers] = answer_call(request, body);
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(reply && JSON.stringify(reply));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  origin = `http://127.0.0.1:${server.address().port}`;
  return { url: `${origin}/mcp`, asked };
}

function token_file(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-login-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, 'tokens.json');
}

test('a login with another device is used by other commands, and ended by a logout', async (t) => {
  const { url, asked } = await start_server(t);
  const file = token_file(t);
  const env = { SLUICE_TOKEN_FILE: file };
  const before = await run_program(['tools', url], { env });
  assert.equal(before.code, 3);
  assert.match(before.stderr, new RegExp(`run \`sluice login ${url}\``));
  const login = await run_program(['login', url, '--grant', 'device-code'], { env });
  assert.equal(login.code, 0, login.stderr);
  assert.match(login.stderr, /AB-CD/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const tools = await run_program(['tools', url], { env });
  assert.deepEqual([tools.code, tools.stdout], [0, 'look()\n'], tools.stderr);
  const logout = await run_program(['logout', url], { env });
  assert.equal(logout.code, 0, logout.stderr);
  assert.match(asked.find((one) => one.path === '/revoke').body, /^token=r&/);
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')).tokens, []);
  assert.equal((await run_program(['tools', url], { env })).code, 3);
});

test('the login of a machine is used by other commands', async (t) => {
  const { url, asked } = await start_server(t);
  const env = { SLUICE_TOKEN_FILE: token_file(t), SLUICE_CLIENT_SECRET: 'secret' };
  const grant = ['--grant', 'client-credentials', '--client-id', 'machine'];
  const login = await run_program(['login', url, ...grant], { env });
  assert.equal(login.code, 0, login.stderr);
  const tools = await run_program(['tools', url], { env });
  assert.deepEqual([tools.code, tools.stdout], [0, 'look()\n'], tools.stderr);
  assert.equal(asked.filter((one) => one.path === '/token').length, 1);
});

test('the doctor examines with a login what it cannot see without one', async (t) => {
  const { url } = await start_server(t);
  const env = { SLUICE_TOKEN_FILE: token_file(t) };
  const examine = async () => {
    const { code, stdout } = await run_program(['doctor', '--json', url], { env });
    return { code, subjects: JSON.parse(stdout).checks.map(({ subject }) => subject) };
  };
  const before = await examine();
  assert.equal(before.code, 3);
  assert.ok(before.subjects.includes('login') && !before.subjects.includes('tools'));
  await run_program(['login', url, '--grant', 'device-code'], { env });
  const after = await examine();
  assert.ok(!after.subjects.includes('login') && after.subjects.includes('tools'));
});

test('what a server wants is quoted for the shell in what the user is told to run', async (t) => {
  const { url } = await start_server(t, { scope: '$(id) `id`' });
  const env = { SLUICE_TOKEN_FILE: token_file(t) };
  await run_program(['login', url, '--grant', 'device-code'], { env });
  const tools = await run_program(['tools', url], { env });
  assert.equal(tools.code, 3);
  assert.ok(tools.stderr.includes(`\`sluice login ${url} --scope '$(id) \`id\`'\``), tools.stderr);
});
