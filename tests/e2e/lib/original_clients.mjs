// Runs the clients of an earlier server (fixtures/) against a given server.

import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { clean_environment, program, root, run_program, temporary_folder } from './server.mjs';

const fixture = (name) => readFileSync(path.join(root, 'tests/e2e/fixtures', name), 'utf8');

export const http_client = fixture('original_http_client.mjs');
export const ws_client = fixture('original_ws_client.mjs');

// The source with the host and port of `server`. Outside a page, relative addresses need them too.
export function with_address(source, server, { relative_works = false } = {}) {
  const there = source.replaceAll('ws://localhost:8080/', `ws://${server.host}:${server.port}/`);
  return relative_works ? there : there.replaceAll("'/mcp'", `'${server.mcp_url}'`);
}

// What the sources rely on, as code to run before them.
export const surroundings = `
globalThis.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
globalThis.process ??= { stdout: { write: (text) => globalThis.written(text) } };
globalThis.WebSocket = class extends WebSocket {
  send(data) {
    if (this.readyState === WebSocket.CONNECTING) {
      this.addEventListener('open', () => super.send(data), { once: true });
    } else {
      super.send(data);
    }
  }
};
`;

// The text between the first and the last line that the WebSocket client prints.
export function between_its_lines(output) {
  const match = /^Stream started: ([a-z0-9]{16})\n([^]*)\\nStream complete\n$/.exec(output);
  if (!match) throw new Error(`not the WebSocket client's output: ${JSON.stringify(output)}`);
  return { stream_id: match[1], text: match[2] };
}

export const ws_client_is_done = (output) => output.endsWith('\\nStream complete\n');

// Runs the client over standard streams, as run_program() does. The server that it starts gets `flags`.
export function run_stdio_client(t, flags, env = {}) {
  const folder = temporary_folder(t);
  const server = path.join(folder, 'build', 'mcp_server');
  const client = path.join(folder, 'tests', 'stdio_test.js');
  for (const file of [server, client]) mkdirSync(path.dirname(file));
  writeFileSync(client, fixture('original_stdio_client.cjs'));
  const words = [program, 'serve', '--stdio', ...flags].map((word) => `'${word}'`).join(' ');
  writeFileSync(server, `#!/bin/sh\necho 'listening for connections' >&2\nexec ${words}\n`);
  chmodSync(server, 0o755);
  return run_program([client], { command: process.execPath, env });
}

// Runs a source in a new Node process until it ends or `done(output)` is true. Returns what it
// printed.
export function run_in_node(source, done = () => false) {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ['--input-type=module', '--eval', surroundings + source],
      {
        env: clean_environment(),
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let output = '';
    let errors = '';
    let killed = false;
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (text) => {
      output += text;
      if (done(output)) {
        killed = true;
        child.kill('SIGKILL');
      }
    });
    child.stderr.on('data', (text) => {
      errors += text;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0 || killed) resolve(output);
      else reject(new Error(`the client ended with ${code}:\n${errors}`));
    });
  });
}
