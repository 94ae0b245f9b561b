// Run in a network of its own (`unshare -rn`): a client reads the stream of its session at a proxy,
// and its address vanishes. So nothing that the proxy sends is acknowledged or refused any more.
// Ends with 0 once the proxy has ended the session and its child.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { children_of, everything, start_proxy, until } from './server.mjs';
import { initialize } from './streamable.mjs';

const kAddress = '10.99.0.2';
const ip = (...words) => execFileSync('ip', words);

const ends = [];
const t = { after: (end) => ends.unshift(end) };
try {
  ip('link', 'set', 'lo', 'up');
  ip('address', 'add', `${kAddress}/32`, 'dev', 'lo');
  // The kernel gives up after seconds, not after a quarter of an hour.
  writeFileSync('/proc/sys/net/ipv4/tcp_retries2', '3');
  const times = ['--session-expiry', '1s', '--event-keep-alive', '1s'];
  const proxy = await start_proxy(t, [...times, '--', everything, '--stdio']);
  const headers = {
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
  };
  // A session belongs to the address that has begun it.
  const begin = async (method, body) => {
    const options = { method, headers, agent: false, localAddress: kAddress };
    const request = http.request(proxy.mcp_url, options).end(body);
    const [response] = await once(request, 'response');
    return { request, response: response.on('error', () => {}).resume() };
  };
  const post = async (message) => {
    const { response } = await begin('POST', JSON.stringify({ jsonrpc: '2.0', ...message }));
    await once(response, 'close');
    return response.headers;
  };
  const { 'mcp-session-id': session } = await post({ id: 1, ...initialize('2025-11-25') });
  headers['Mcp-Session-Id'] = session;
  await post({ method: 'notifications/initialized' });
  await post({ id: 2, method: 'tools/list' });
  const { request, response } = await begin('GET');
  assert.equal(response.statusCode, 200);
  let is_told = false;
  for (const event of ['error', 'close']) request.on(event, () => (is_told = true));
  assert.equal(children_of(proxy).length, 1);
  ip('address', 'del', `${kAddress}/32`, 'dev', 'lo');
  await until(() => children_of(proxy).length === 0, 'the child ends');
  assert.ok(!is_told, 'the reader has heard of nothing');
} finally {
  for (const end of ends) await end();
}
process.exit(0);
