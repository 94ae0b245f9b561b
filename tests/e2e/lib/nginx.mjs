// nginx in front of a server, with its defaults except for what a test configures.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';

const kTemporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

// Starts nginx with these directives in its `server` block, and `upstreams` beside that, and returns
// its port. The test `t` stops it.
export async function start_nginx(t, directives, upstreams = '') {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-nginx-'));
  // nginx inherits a socket that already listens, as it does when it is upgraded. So no port needs
  // to be guessed, and a client that connects early waits.
  const socket = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve, reject) => socket.once('listening', resolve).once('error', reject));
  const { port } = socket.address();
  writeFileSync(
    path.join(folder, 'nginx.conf'),
    `daemon off; user ${userInfo().username}; pid ${folder}/pid; error_log stderr;
    events {}
    http {
      access_log off;
      ${kTemporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      ${upstreams}
      server { listen 127.0.0.1:${port}; ${directives} }
    }`,
  );
  const child = spawn('/usr/sbin/nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], {
    env: { NGINX: '3;' },
    stdio: ['ignore', 'ignore', 'pipe', socket._handle.fd],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  socket.close();
  t.after(async () => {
    const early = child.exitCode !== null || child.signalCode !== null;
    child.kill();
    await ended;
    rmSync(folder, { recursive: true });
    if (early) throw new Error(`nginx ended:\n${output}`);
  });
  return port;
}

// `server` as clients see it through a proxy at `port`, under a path prefix.
export function behind(t, server, port, prefix) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  t.after(() => agent.destroy());
  return Object.assign(Object.create(server), { host: '127.0.0.1', port, prefix, agent });
}
