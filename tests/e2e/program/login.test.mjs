// sluice login and sluice logout, and what other commands make of them, with a server that is its own
// authorization server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { clean_environment, program, run_program, temporary_folder, until } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';

// A server at `url` that wants tokens, and keeps what it was asked in `asked`. With `repeats`, a tool
// is named by the token.
async function start_server(t, { scope, repeats } = {}) {
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
      tokens.add(`token-number-${tokens.size}`);
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
    let result = results[method];
    if (repeats && method === 'tools/list') result = { tools: [{ name: `look ${given}` }] };
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

const token_file = (t) => path.join(temporary_folder(t), 'tokens.json');

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

test('a secret in the URL is not said again', async (t) => {
  const { url } = await start_server(t);
  const open = http.createServer((_, response) => response.end());
  await new Promise((listening) => open.listen(0, '127.0.0.1', listening));
  t.after(() => open.close());
  const env = { SLUICE_TOKEN_FILE: token_file(t) };
  const device = ['--grant', 'device-code'];
  const secret = '?token=s3cret';
  for (const words of [
    ['login', `${url}${secret}`, ...device],
    ['login', `${url}${secret}`, '--json', ...device],
    ['login', `http://127.0.0.1:${open.address().port}/${secret}`],
    ['login', 'me:s3cret@127.0.0.1/mcp'],
    ['logout', `${url}${secret}`],
    ['logout', `${url}${secret}`, '--json'],
    ['logout', 'me:s3cret@127.0.0.1/mcp'],
  ]) {
    const { stdout, stderr } = await run_program(words, { env });
    assert.match(stdout + stderr, /\*\*\*/, words.join(' '));
    assert.doesNotMatch(stdout + stderr, /s3cret/, words.join(' '));
  }
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

test('the doctor does not show the access token that a server repeats', async (t) => {
  const { url } = await start_server(t, { repeats: true });
  const env = { SLUICE_TOKEN_FILE: token_file(t) };
  await run_program(['login', url, '--grant', 'device-code'], { env });
  for (const words of [[], ['--json']]) {
    const { stdout } = await run_program(['doctor', ...words, url], { env });
    assert.match(stdout, /look \*\*\*/);
    assert.doesNotMatch(stdout, /token-number/);
  }
});

test('what a server wants is quoted for the shell in what the user is told to run', async (t) => {
  const { url } = await start_server(t, { scope: '$(id) `id`' });
  const env = { SLUICE_TOKEN_FILE: token_file(t) };
  await run_program(['login', url, '--grant', 'device-code'], { env });
  const tools = await run_program(['tools', url], { env });
  assert.equal(tools.code, 3);
  assert.ok(tools.stderr.includes(`\`sluice login ${url} --scope '$(id) \`id\`'\``), tools.stderr);
});

// A desktop whose browser notes what it is asked to open, one argument a line. `opened` has that.
function desktop_of(t) {
  const folder = temporary_folder(t);
  const notes = path.join(folder, 'notes');
  const browser = `#!/bin/sh\nprintf '%s\\n' "$@" >'${notes}.new' && mv '${notes}.new' '${notes}'\n`;
  writeFileSync(path.join(folder, 'xdg-open'), browser, { mode: 0o755 });
  return {
    env: { DISPLAY: ':0', WAYLAND_DISPLAY: '', PATH: `${folder}:${process.env.PATH}` },
    opened: () => existsSync(notes) && readFileSync(notes, 'utf8'),
  };
}

const shown_url = (text) => / open\s+(http\S+)\s/.exec(text)?.[1];

// What a browser does at the end of a login: it brings the code to the command that waits for it.
async function finish_login(url) {
  const asked = new URL(url).searchParams;
  const back = new URL(asked.get('redirect_uri'));
  back.search = new URLSearchParams({ code: 'c', state: asked.get('state') });
  assert.equal((await fetch(back)).status, 200);
}

test('login opens a browser on a desktop', async (t) => {
  const { url } = await start_server(t);
  for (const display of ['DISPLAY', 'WAYLAND_DISPLAY']) {
    const { env, opened } = desktop_of(t);
    Object.assign(env, { DISPLAY: '', [display]: 'yes', SLUICE_TOKEN_FILE: token_file(t) });
    const terminal = new Terminal(t, [program, 'login', url], { env });
    await until(opened, 'the browser is asked');
    await terminal.until(shown_url, 'it shows the URL too');
    assert.match(terminal.seen, /A browser should open/);
    assert.equal(opened(), `${shown_url(terminal.seen)}\n`);
    await finish_login(opened().trim());
    assert.equal(await terminal.exit_code(), 0, terminal.seen);
  }
});

test('login only prints the URL with --no-browser, without a desktop and away from a terminal', async (t) => {
  const { url } = await start_server(t);
  const { env, opened } = desktop_of(t);
  env.SLUICE_TOKEN_FILE = token_file(t);
  const on_terminal = async (words, more) => {
    const terminal = new Terminal(t, [program, 'login', url, ...words], { env: { ...env, ...more } });
    await finish_login(shown_url(await terminal.until(shown_url, 'it shows the URL')));
    assert.equal(await terminal.exit_code(), 0, terminal.seen);
    return terminal.seen;
  };
  const piped = async () => {
    const child = spawn(program, ['login', url], {
      env: clean_environment(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(() => child.kill('SIGKILL'));
    let seen = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      seen += text;
    });
    await finish_login(await until(() => shown_url(seen), 'it shows the URL'));
    await until(() => child.exitCode !== null, 'it ends');
    assert.equal(child.exitCode, 0, seen);
    return seen;
  };
  for (const seen of [
    await on_terminal(['--no-browser']),
    await on_terminal([], { DISPLAY: '' }),
    await piped(),
  ]) {
    assert.match(seen, /To log in, open\s+http/);
    assert.doesNotMatch(seen, /browser should open/);
  }
  assert.equal(opened(), false);
});
