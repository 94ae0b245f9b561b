// What `sluice doctor TARGET` makes of a server that refuses for now, or that takes its time.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import {
  start_faulty_proxy,
  start_lazy_login,
  start_legacy_server,
} from '../lib/bad_server.mjs';
import { examine } from '../lib/doctor.mjs';
import { start_everything } from '../lib/server.mjs';

const subjects_of = (checks) => checks.map(({ subject }) => subject);

test('a limit of requests is waited for if it is short, and no fault if it is not', async (t) => {
  for (const is_short of [true, false]) {
    let count = 0;
    const { url, open } = await start_legacy_server(t, (message, response) => {
      const is_limited = is_short ? ++count === 9 : ++count >= 9;
      if (is_limited) response.writeHead(429, { 'retry-after': is_short ? 1 : 60 }).end('slow down');
      return is_limited;
    });
    const { code, bad, checks, found } = await examine([url]);
    assert.deepEqual([code, bad, [...open]], [0, [], []]);
    assert.equal(subjects_of(checks).includes('requests'), !is_short);
    if (is_short) continue;
    assert.equal(count, 9, 'nothing more is asked');
    assert.match(found('requests').finding, /limits requests \(HTTP 429\): .*deleted session$/);
    const notes = checks.filter(({ finding }) => finding.includes('429'));
    assert.equal(notes.length, 1);
  }
});

test('a login that only some requests need is named, and breaks no rule', async (t) => {
  const { mcp_url } = await start_everything(t);
  for (const is_open of [/"server\/discover"|"initialize"/, /"(server|notifications)\/|"initialize"|"ping"/]) {
    const { code, bad, found } = await examine([await start_lazy_login(t, mcp_url, is_open)]);
    assert.deepEqual([code, bad], [3, []]);
    assert.equal(found('tools').finding, 'not examined: behind a login');
    assert.equal(found('challenge').status, 'ok');
    assert.equal(found('PKCE').status, 'ok');
    assert.match(found('login').fix, /^sluice login http/);
  }
});

test('a WebSocket and HTTP with SSE behind a login are so as HTTP is', async (t) => {
  const server = http.createServer((request, response) => {
    const is_post = request.method === 'POST';
    if (request.url.includes('well-known')) return response.writeHead(404).end();
    response.writeHead(is_post ? 405 : 401, is_post ? {} : { 'www-authenticate': 'Bearer' }).end();
  });
  server.on('upgrade', (request, socket) => {
    socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  for (const place of ['ws', 'http']) {
    const url = `${place}://127.0.0.1:${server.address().port}/sse`;
    const { code, bad, found } = await examine([url]);
    assert.deepEqual([code, bad], [3, []], url);
    assert.ok(found('login').fix.startsWith(`sluice login ${url}`));
  }
});

test('a limit of requests and a later login of HTTP with SSE break no rule either', async (t) => {
  const { base } = await start_everything(t);
  for (const [status, headers] of [[429, { 'retry-after': '60' }], [401, { 'www-authenticate': 'Bearer' }]]) {
    let count = 0;
    const url = await start_faulty_proxy(t, `${base}/sse`, (number, { method, url: at }, response) => {
      const is_refused = method === 'POST' && !at.endsWith('/sse') && ++count > 3;
      if (is_refused) response.writeHead(status, headers).end();
      return is_refused;
    });
    const { code, bad, found } = await examine([url]);
    assert.deepEqual([code, bad], [status === 401 ? 3 : 0, []]);
    assert.match(found(status === 401 ? 'login' : 'requests').finding, /authorization$|HTTP 429\): /);
  }
});

test('documents of a login that do not come do not hide it', async (t) => {
  const server = http.createServer((request, response) => {
    if (request.url.includes('well-known')) return;
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  const { code, found } = await examine([url, '--timeout', '4']);
  assert.equal(code, 3);
  assert.match(found('resource metadata').finding, /does not answer in time/);
  assert.equal(found('login').status, 'note');
});

test('a server that has to be started first gets the time for that', async (t) => {
  const begin = performance.now();
  const { url } = await start_legacy_server(t, (message, response) => {
    if (performance.now() - begin > 6000) return false;
    setTimeout(() => response.writeHead(400).end(), 6000);
    return true;
  });
  const { code, found } = await examine([url]);
  assert.equal(code, 0);
  assert.match(found('reply').finding, /^HTTP 400 after 6\d\d\d ms/);
});

test('what an MCP server says about its error is shown', async (t) => {
  const { url } = await start_legacy_server(t, ({ id }, response) => {
    const error = { code: -32603, message: `no upstream for s3cretkey-123\n${'x'.repeat(400)}` };
    response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    return true;
  });
  const { code, bad } = await examine([`${url}?key=s3cretkey-123`]);
  assert.equal(code, 1);
  assert.match(bad[0].finding, /error -32603 "no upstream for \*\*\* x+\.\.\." to initialize$/);
  assert.doesNotMatch(bad[0].fix, /URL/);
});

test('a program that is silent to ping and what it does not know is examined all the same', async () => {
  const script = `
    const result = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } },
      'tools/list': { tools: [] },
    };
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (result[method]) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: result[method] }));
    });`;
  const words = ['--timeout', '14', '--', process.execPath, '-e', script];
  const { code, bad, found } = await examine(words);
  assert.equal(code, 1);
  assert.deepEqual(
    bad.map(({ subject, finding }) => [subject, finding]),
    [['method', 'no answer to an unknown method']],
  );
  assert.match(found('tools').finding, /^0 listed/);
});

test('websites use only a server that takes their host', async (t) => {
  for (const refuses_host of [true, false]) {
    const { mcp_url } = await start_everything(t);
    const url = await start_faulty_proxy(t, mcp_url, (number, request, response) => {
      const is_foreign = !/^127\.0\.0\.1:/.test(request.headers.host);
      assert.notEqual(is_foreign, 'x-key' in request.headers, 'a website does not know the key');
      const is_refused = refuses_host && is_foreign;
      delete request.headers.origin;
      if (is_refused) response.writeHead(403).end();
      return is_refused;
    });
    const { found } = await examine([url, '-H', 'X-Key: s3cret']);
    for (const subject of ['origin', 'legacy origin']) {
      assert.equal(found(subject).status, 'fail');
      assert.equal(found(subject).finding.includes('DNS rebinding'), !refuses_host);
    }
  }
});

test('sessions of a server that had gone and is there again are ended', async (t) => {
  const { url, open } = await start_legacy_server(t, () => false);
  let most = 0;
  const gone = await start_faulty_proxy(t, url, (number, request, response) => {
    most = Math.max(most, open.size);
    const is_gone = number >= 16 && request.method !== 'DELETE';
    if (is_gone) response.writeHead(502).end();
    return is_gone;
  });
  const { code } = await examine([gone]);
  assert.deepEqual([code, most > 0, [...open]], [4, true, []]);
});

test('a server that is loaded anew for a moment has not gone', async (t) => {
  const { mcp_url } = await start_everything(t);
  let since = Infinity;
  const url = await start_faulty_proxy(t, mcp_url, (number, request, response) => {
    if (number === 20) since = performance.now();
    const is_gone = performance.now() - since >= 0 && performance.now() - since < 200;
    if (is_gone) response.writeHead(502).end();
    return is_gone;
  });
  const { checks } = await examine([url]);
  assert.ok(!subjects_of(checks).includes('server'), JSON.stringify(checks));
});

test('a server that has one session at a time refuses no revision', async (t) => {
  let open = false;
  const { url } = await start_legacy_server(t, ({ method }, response) => {
    if (method !== 'initialize' || !open) {
      open ||= method === 'initialize';
      return false;
    }
    response.writeHead(400).end();
    return true;
  });
  const { bad, found } = await examine([url]);
  assert.deepEqual(bad, []);
  assert.match(found('initialize').finding, /only one session at a time/);
});

test('a TLS handshake that nobody answers is a server that is not reached', async (t) => {
  const sockets = [];
  const server = net.createServer((socket) => sockets.push(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = `https://127.0.0.1:${server.address().port}/mcp`;
  const { code, found } = await examine([url, '--timeout', '1']);
  assert.equal(code, 4);
  assert.equal(found('encryption').finding, 'no answer in time');
});
