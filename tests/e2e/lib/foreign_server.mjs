// Servers that others wrote, or that are on SDKs that others wrote. They run on the Node of the tests.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { clean_environment, root, until } from './server.mjs';

const kFixtures = path.join(root, 'tests/e2e/fixtures/servers');
const packages = path.join(root, 'tests/node_modules');

// The words of the command that runs a script: a fixture, or a file of a package.
export function foreign_command(script, ...args) {
  const folder = script.includes('/') ? packages : kFixtures;
  return [process.execPath, path.join(folder, script), ...args];
}

// Starts a script that listens on a port that it is free to choose. The test `t`, or anything else
// with an `after`, stops it. `output` is what it has printed so far.
export async function start_foreign(t, [node, ...words], env = {}) {
  const announced = path.join(kFixtures, 'announced.mjs');
  const child = spawn(node, ['--import', announced, ...words], {
    env: clean_environment({ PORT: '0', ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const server = { child, output: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      server.output += text;
    });
  }
  const exited = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  t.after(() => {
    child.kill('SIGKILL');
    return exited;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`the server ended:\n${server.output}`);
    server.port = /listening on port (\d+)/.exec(server.output)?.[1];
    return server.port !== undefined;
  }, 'the server listens');
  server.base = `http://127.0.0.1:${server.port}`;
  return server;
}
