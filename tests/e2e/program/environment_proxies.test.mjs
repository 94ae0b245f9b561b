// The commands behind an HTTP proxy that the environment names.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { make_certificate } from '../lib/certificate.mjs';
import {
  clean_environment,
  program,
  run_program,
  start_proxy,
  start_server,
  until,
} from '../lib/server.mjs';
import { squid_options, start_squid } from '../lib/squid.mjs';

const kUser = { name: 'mira', password: 'proxy:secret/of mira' };
const kSecrets = [
  'secret',
  Buffer.from(`${kUser.name}:${kUser.password}`).toString('base64').slice(4, -4),
];
const kEcho = ['echo', 'text=hello'];

// A server that only the proxy reaches by the name mcp.test.
async function start_behind(t, flags = []) {
  const server = await start_server(t, ['--allow-host', 'mcp.test', ...flags]);
  const scheme = server.tls ? 'https' : 'http';
  server.place = `mcp.test:${server.port}`;
  server.named = `${scheme}://${server.place}`;
  server.named_ws = `${server.tls ? 'wss' : 'ws'}://${server.place}/ws`;
  return server;
}

const with_tls = ({ certificate, key }) => ['--tls-cert', certificate, '--tls-key', key];

function proxy_url(squid, { name, password } = {}) {
  const user = name ? `${name}:${encodeURIComponent(password)}@` : '';
  return `http://${user}127.0.0.1:${squid.port}`;
}

function assert_no_secret(outcome) {
  for (const secret of kSecrets) {
    assert.ok(!(outcome.stdout + outcome.stderr).includes(secret), outcome.stderr);
  }
}

test('plain http is asked of the proxy', squid_options, async (t) => {
  const server = await start_behind(t);
  const squid = await start_squid(t);
  const env = { http_proxy: proxy_url(squid) };
  for (const revision of ['2026-07-28', '2025-11-25']) {
    const called = await run_program(
      ['call', `${server.named}/mcp`, '--revision', revision, ...kEcho],
      { env },
    );
    assert.deepEqual([called.code, called.stdout], [0, 'hello\n'], called.stderr);
  }
  const asked = squid.log();
  assert.ok(asked.includes(`POST ${server.named}/mcp`), asked.join('\n'));
  assert.ok(asked.includes(`DELETE ${server.named}/mcp`), 'the session is ended by the proxy too');
  const login = await run_program(['login', `${server.named}/mcp`], { env });
  assert.match(login.stdout, /asks for no authorization/, login.stderr);
});

test('what streams is not held back', squid_options, async (t) => {
  const server = await start_behind(t);
  const squid = await start_squid(t);
  const env = clean_environment({ http_proxy: proxy_url(squid) });
  for (const revision of ['2026-07-28', '2025-11-25']) {
    const numbers = ['stream_numbers', 'count=2', 'interval_ms=60000'];
    const child = spawn(
      program,
      ['call', `${server.named}/mcp`, '--revision', revision, ...numbers],
      { env, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    t.after(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    // The second number comes after a minute.
    await until(() => output.includes('"n":0'), 'the first number is there');
    assert.ok(!output.includes('"n":1'));
    assert.equal(child.exitCode, null);
  }
});

test('the proxy wants a user name and a password', squid_options, async (t) => {
  const server = await start_behind(t);
  const secured = await start_behind(t, with_tls(make_certificate(t, 'DNS:mcp.test')));
  const squid = await start_squid(t, { user: kUser });
  const run = (target, user) =>
    run_program(['call', '-v', target, ...kEcho], { env: { ALL_PROXY: proxy_url(squid, user) } });
  const known = await run(`${server.named}/mcp`, kUser);
  assert.deepEqual([known.code, known.stdout], [0, 'hello\n'], known.stderr);
  assert_no_secret(known);
  for (const { named } of [server, secured]) {
    const unknown = await run(`${named}/mcp`);
    assert.equal(unknown.code, 4, unknown.stderr);
    assert.match(
      unknown.stderr,
      /The proxy 127\.0\.0\.1:\d+ \(ALL_PROXY\) wants a user name and a password: .*http:\/\/user:password@host:port/,
    );
    const wrong = await run(`${named}/mcp`, { name: 'mira', password: 'another secret' });
    assert.equal(wrong.code, 4, wrong.stderr);
    assert.match(wrong.stderr, /\(ALL_PROXY\) does not take the user name and the password/);
    assert_no_secret(wrong);
  }
});

test('https has a tunnel, and the certificate is that of the server', squid_options, async (t) => {
  const pair = make_certificate(t, 'DNS:mcp.test');
  const server = await start_behind(t, with_tls(pair));
  const squid = await start_squid(t, { user: kUser });
  const env = { https_proxy: proxy_url(squid, kUser), SSL_CERT_FILE: pair.certificate };
  const called = await run_program(['call', '-v', `${server.named}/mcp`, ...kEcho], { env });
  assert.deepEqual([called.code, called.stdout], [0, 'hello\n'], called.stderr);
  assert_no_secret(called);
  await until(() => squid.log().length > 0, 'the tunnel has ended');
  assert.deepEqual(new Set(squid.log()), new Set([`CONNECT ${server.place}`]));

  const other = make_certificate(t);
  const misnamed = await start_behind(t, with_tls(other));
  const refused = await run_program(['call', `${misnamed.named}/mcp`, ...kEcho], {
    env: { ...env, SSL_CERT_FILE: other.certificate },
  });
  assert.equal(refused.code, 4, refused.stderr);
  assert.match(refused.stderr, /The connection to mcp\.test:\d+ failed: .*hostname mismatch/);
});

test('a WebSocket has a tunnel, with TLS or without', squid_options, async (t) => {
  const pair = make_certificate(t, 'DNS:mcp.test');
  const squid = await start_squid(t, { user: kUser });
  const env = { ALL_PROXY: proxy_url(squid, kUser), SSL_CERT_FILE: pair.certificate };
  for (const flags of [[], with_tls(pair)]) {
    const server = await start_behind(t, flags);
    const called = await run_program(['call', server.named_ws, ...kEcho], { env });
    assert.deepEqual([called.code, called.stdout], [0, 'hello\n'], called.stderr);
    await until(() => squid.log().includes(`CONNECT ${server.place}`), 'the tunnel has ended');
  }
});

test('chat and the proxy of servers go by it too', squid_options, async (t) => {
  const server = await start_behind(t);
  const squid = await start_squid(t);
  const env = { HTTP_PROXY: proxy_url(squid) };
  for (const via of ['sse', 'ws', 'poll', 'mcp']) {
    const answer = await run_program(
      ['chat', '-q', '--url', server.named, '--via', via, '--max-tokens', '3', 'hello'],
      { env },
    );
    assert.equal(answer.code, 0, `${via}: ${answer.stderr}`);
  }
  await until(() => squid.log().includes(`CONNECT ${server.place}`), 'the tunnel has ended');
  const front = await start_proxy(t, [`${server.named}/mcp`], { env });
  const called = await run_program(['call', front.mcp_url, ...kEcho]);
  assert.deepEqual([called.code, called.stdout], [0, 'hello\n'], called.stderr);
});

test('a server that the proxy denies', squid_options, async (t) => {
  const squid = await start_squid(t);
  const env = { ALL_PROXY: proxy_url(squid) };
  const tunnel = await run_program(['call', 'https://denied.test/mcp', ...kEcho], { env });
  assert.equal(tunnel.code, 4, tunnel.stderr);
  assert.match(
    tunnel.stderr,
    /The proxy 127\.0\.0\.1:\d+ \(ALL_PROXY\) does not connect to denied\.test:443, but answers with HTTP 403/,
  );
  for (const command of [
    ['call', 'http://denied.test/mcp', ...kEcho],
    ['login', 'http://denied.test/mcp'],
  ]) {
    const plain = await run_program(command, { env });
    assert.equal(plain.code, 4, plain.stderr);
    assert.match(
      plain.stderr,
      /\(ALL_PROXY\) itself answers with HTTP 403 Forbidden, ERR_ACCESS_DENIED/,
    );
  }
});

test('NO_PROXY and this machine: nothing goes by the proxy', squid_options, async (t) => {
  const server = await start_behind(t);
  const squid = await start_squid(t);
  const env = { ALL_PROXY: proxy_url(squid) };
  const local = await run_program(['call', server.mcp_url, ...kEcho], { env });
  assert.deepEqual([local.code, local.stdout], [0, 'hello\n'], local.stderr);
  for (const exception of ['*', 'test', '.mcp.test', `mcp.test:${server.port}`]) {
    // Only the proxy knows the name.
    const straight = await run_program(['call', `${server.named}/mcp`, ...kEcho], {
      env: { ...env, NO_PROXY: exception },
    });
    assert.equal(straight.code, 4, straight.stderr);
    assert.match(straight.stderr, /Cannot find mcp\.test: /);
  }
  assert.deepEqual(squid.log(), []);
});

test('variables that cannot be used', async (t) => {
  const server = await start_behind(t);
  for (const command of [
    ['call', `${server.named}/mcp`, ...kEcho],
    ['login', `${server.named}/mcp`],
    ['doctor', `${server.named}/mcp`],
    ['chat', '--url', server.named, 'hello'],
  ]) {
    const socks = await run_program(command, {
      env: { http_proxy: 'socks5://mira:secret@127.0.0.1:1' },
    });
    assert.equal(socks.code, 2, socks.stderr);
    assert.match(socks.stderr, /http_proxy names no proxy that can be used: .*socks5/);
    assert_no_secret(socks);
  }
  const absent = await run_program(['call', `${server.named}/mcp`, ...kEcho], {
    env: { http_proxy: 'mira:secret@127.0.0.1:1' },
  });
  assert.equal(absent.code, 4, absent.stderr);
  assert.match(absent.stderr, /Cannot connect to the proxy 127\.0\.0\.1:1 \(http_proxy\)/);
  assert_no_secret(absent);
});

test('doctor says which proxy is used, and examines the server behind it', squid_options, async (t) => {
  const pair = make_certificate(t, 'DNS:mcp.test');
  const squid = await start_squid(t, { user: kUser });
  const env = { ALL_PROXY: proxy_url(squid, kUser), SSL_CERT_FILE: pair.certificate };
  for (const flags of [[], with_tls(pair)]) {
    const server = await start_behind(t, flags);
    const found = await run_program(['doctor', `${server.named}/mcp`], { env });
    assert.match(found.stdout, /^ok +proxy +by the proxy 127\.0\.0\.1:\d+ \(ALL_PROXY\)$/m);
    assert.match(found.stdout, server.tls ? /^ok +encryption +TLS/m : /^warn +encryption/m);
    assert.match(found.stdout, /^ok +listen +acknowledged/m);
    assert.doesNotMatch(found.stdout, /^fail/m);
    assert_no_secret(found);
  }
  const denied = await run_program(['doctor', 'https://denied.test/mcp'], { env });
  assert.equal(denied.code, 4, denied.stdout);
  assert.match(denied.stdout, /^fail +tunnel +The proxy .* answers with HTTP 403/m);
});
