// Squid, a proxy for clients, which knows the servers of this machine by names of its own.

import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { until } from './server.mjs';
import { free_port, unpacked } from './unpacked.mjs';

const kRoot = unpacked('squid');

// For tests that start it. It runs as a user who must be able to make shared memory.
export const squid_options = {
  skip:
    (statSync('/dev/shm').mode & 0o002) === 0 &&
    'squid needs a /dev/shm that everybody can write, as Debian has it',
};

// Starts it on a port of its own: {port, log}. mcp.test is this machine, and so is denied.test, where it
// connects nobody. It wants the name and the password of `user`, if there is one. `log` returns what it
// has been asked for: a line such as "GET http://mcp.test/mcp" for each request or tunnel that has ended.
export async function start_squid(t, { user } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-squid-'));
  t.after(() => rmSync(folder, { recursive: true }));
  // Started by root, it continues as a user who may not read the cache, but must write here.
  chmodSync(folder, 0o777);
  const file = (name, text) => {
    writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  const helper = (name) => {
    copyFileSync(`${kRoot}/usr/lib/squid/${name}`, path.join(folder, name));
    return path.join(folder, name);
  };
  const rules = ['acl denied dstdomain denied.test', 'http_access deny denied'];
  if (user) {
    const hash = execFileSync('openssl', ['passwd', '-apr1', user.password]).toString();
    const users = file('users', `${user.name}:${hash}`);
    rules.push(
      `auth_param basic program ${helper('basic_ncsa_auth')} ${users}`,
      'auth_param basic children 1',
      'acl known proxy_auth REQUIRED',
      'http_access deny !known',
    );
  }
  mkdirSync(path.join(folder, 'empty'));
  const port = await free_port();
  const access = path.join(folder, 'access');
  const config = file(
    'squid.conf',
    `http_port 127.0.0.1:${port}
visible_hostname squid.test
hosts_file ${file('hosts', '127.0.0.1 mcp.test\n127.0.0.1 denied.test\n')}
cache deny all
cache_mem 0
shutdown_lifetime 0 seconds
logformat asked %rm %ru
access_log stdio:${access} asked
cache_log ${folder}/cache.log
coredump_dir ${folder}
pid_filename ${folder}/pid
mime_table ${file('mime.conf', '')}
icon_directory ${folder}/empty
error_directory ${folder}/empty
unlinkd_program ${helper('unlinkd')}
pinger_enable off
cache_effective_user ${userInfo().uid === 0 ? 'nobody' : userInfo().username}
${rules.join('\n')}
http_access allow all
`,
  );
  // The name of its shared memory must be its own.
  const service = `sluice${port}`;
  const child = spawn(`${kRoot}/usr/sbin/squid`, ['-N', '-n', service, '-f', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const exited = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  t.after(() => {
    child.kill();
    return exited;
  });
  const log = path.join(folder, 'cache.log');
  await until(() => {
    if (child.exitCode !== null) throw new Error(`squid ended:\n${output}`);
    return existsSync(log) && readFileSync(log, 'utf8').includes('Accepting HTTP');
  }, 'squid listens');
  return {
    port,
    log: () => (existsSync(access) ? readFileSync(access, 'utf8').split('\n').slice(0, -1) : []),
  };
}
