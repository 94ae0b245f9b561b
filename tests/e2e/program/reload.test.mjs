// SIGHUP: API keys, the certificate and the log file are read again, and connections stay.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { make_certificate } from '../lib/certificate.mjs';
import { start_server, until } from '../lib/server.mjs';

const kOld = 'old-key-0123456789';
const kNew = 'new-key-0123456789';

function directory(t) {
  const made = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-'));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

// Starts a server with a certificate, a key file and a log file: {server, files, log, reload}.
// `reload` sends the signal and waits for `told` in the log.
async function start(t) {
  const files = make_certificate(t);
  const home = directory(t);
  files.keys = path.join(home, 'keys');
  files.log = path.join(home, 'log');
  writeFileSync(files.keys, `alice=${kOld}\n`);
  const server = await start_server(t, [
    ...['--tls-cert', files.certificate, '--tls-key', files.key],
    ...['--api-key-file', files.keys, '--log-file', files.log],
  ]);
  const log = () => (existsSync(files.log) ? readFileSync(files.log, 'utf8') : '');
  const reload = async (told) => {
    server.signal('SIGHUP');
    await until(() => log().includes(told), `the log says ${told}`);
  };
  return { server, files, log, reload };
}

// Asks over `agent`: {status, certificate, port}, the last being ours. The agent must verify nothing.
function ask(server, agent, key) {
  return new Promise((resolve, reject) => {
    const request = https.request(
      `${server.base}/mcp`,
      { method: 'POST', agent, headers: { Authorization: `Bearer ${key}` } },
      (response) => {
        const certificate = response.socket.getPeerCertificate().fingerprint256;
        const port = response.socket.localPort;
        response.resume();
        response.on('end', () =>
          resolve({ status: response.statusCode, certificate, port }),
        );
      },
    );
    request.on('error', reject);
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }));
  });
}

const agent = (keepAlive) => new https.Agent({ keepAlive, maxSockets: 1, rejectUnauthorized: false });

test('keys, certificate and log file are replaced, and a connection stays', async (t) => {
  const { server, files, log, reload } = await start(t);
  const kept = agent(true);
  t.after(() => kept.destroy());
  const before = await ask(server, kept, kOld);
  assert.equal(before.status, 200);

  const next = make_certificate(t);
  copyFileSync(next.certificate, files.certificate);
  copyFileSync(next.key, files.key);
  writeFileSync(files.keys, `alice=${kNew}\n`);
  renameSync(files.log, `${files.log}.1`);
  await reload('reloaded API keys');

  assert.ok(!log().includes('ready'), 'the new file has only what came since');
  assert.match(readFileSync(`${files.log}.1`, 'utf8'), /ready/);
  assert.ok(!log().includes(kNew) && !log().includes(kOld), 'keys are not logged');
  const after = await ask(server, kept, kNew);
  assert.deepEqual(after, before, 'the connection is the same');
  const refused = await ask(server, kept, kOld);
  assert.deepEqual(refused, { ...before, status: 401 });
  const newcomer = await ask(server, agent(false), kNew);
  assert.equal(newcomer.status, 200);
  assert.notEqual(newcomer.certificate, before.certificate);
});

test('if one of them cannot be used, all of the old ones stay', async (t) => {
  const { server, files, reload } = await start(t);
  const before = await ask(server, agent(false), kOld);
  writeFileSync(files.keys, `alice=${kNew}\n`);
  writeFileSync(files.certificate, 'rubbish');
  await reload(`nothing is reloaded why="Cannot use the TLS certificate ${files.certificate}`);
  const after = await ask(server, agent(false), kOld);
  assert.equal(after.status, 200);
  assert.equal(after.certificate, before.certificate);

  writeFileSync(files.keys, '# nobody\n');
  await reload(`nothing is reloaded why="${files.keys}: there is no key in this file`);
  assert.equal((await ask(server, agent(false), kOld)).status, 200);
});

test('what was not there at the start cannot come', async (t) => {
  const home = directory(t);
  const config = path.join(home, 'sluice.toml');
  writeFileSync(config, '');
  const server = await start_server(t, ['--config', config]);
  writeFileSync(config, `[access]\napi_keys = ["alice=${kNew}"]\n`);
  server.signal('SIGHUP');
  await until(() => server.output.includes('nothing is reloaded'), 'it says so');
  assert.match(server.output, /restart the server to change that/);
  writeFileSync(config, '[log\n');
  server.signal('SIGHUP');
  await until(() => server.output.includes('sluice.toml:1'), 'a mistake in the file is named');
});
