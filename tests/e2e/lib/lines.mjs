// Line-based JSON-RPC over the standard streams of a program that the test starts, or over a Unix
// domain socket.

import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { patience } from './patience.mjs';
import { unwrap } from './rpc.mjs';
import { check_message, revision_of } from './schemas.mjs';
import { clean_environment, program, root } from './server.mjs';

export const stdio_flags = ['serve', '--stdio', '--engine', 'synthetic', '--threads', '1'];

// Exchanges messages over a pair of Node streams. `messages` holds the parsed messages that
// arrived.
export class LineClient {
  #next_id = 1;
  #rest = '';
  #watchers = new Set();
  messages = [];
  ended = false;

  constructor(input, output) {
    this.input = input;
    input.on('error', () => {});
    output.setEncoding('utf8');
    output.on('data', (text) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop();
      // A line that is not a message fails the test.
      for (const line of lines) this.messages.push(JSON.parse(line));
      this.#wake();
    });
    const end = () => {
      this.ended = true;
      this.#wake();
    };
    output.on('end', end);
    output.on('close', end);
    output.on('error', end);
  }

  #wake() {
    for (const look of this.#watchers) look();
  }

  // Calls `probe(this)` after everything that arrives. Resolves with its result as soon as that is
  // true.
  when(probe, what, deadline = patience) {
    return new Promise((resolve, reject) => {
      const finish = (settle, value) => {
        this.#watchers.delete(look);
        clearTimeout(late);
        settle(value);
      };
      const look = () => {
        const answer = probe(this);
        if (answer) finish(resolve, answer);
        else if (this.ended) finish(reject, new Error(`the connection ended before ${what}`));
      };
      const late = setTimeout(
        () => finish(reject, new Error(`waited ${deadline} ms in vain until ${what}`)),
        deadline,
      );
      this.#watchers.add(look);
      look();
    });
  }

  write(text) {
    return this.input.write(text);
  }
  send(message) {
    return this.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
  async reply(method, params) {
    const id = `call ${this.#next_id++}`;
    this.send({ id, method, params });
    const reply = await this.when(
      () => this.messages.find((message) => message.id === id),
      `${method} is answered`,
    );
    check_message(reply, method, revision_of({ method, params }, { agreed: this.revision }));
    if (method === 'initialize') this.revision = reply.result?.protocolVersion;
    return reply;
  }
  async call(method, params) {
    return unwrap(await this.reply(method, params));
  }
  async code_of(method, params) {
    return (await this.reply(method, params)).error?.code;
  }
  pushed(stream_id) {
    return this.messages
      .filter(({ method, params }) => method && params?.stream_id === stream_id)
      .map(({ params }) => params);
  }
}

// Starts `sluice serve --stdio`. The test `t` kills it if it is still running.
export function start_stdio(t, flags = [], { env, stdio = ['pipe', 'pipe', 'pipe'] } = {}) {
  const child = spawn(program, [...stdio_flags, ...flags], {
    cwd: root,
    env: clean_environment(env),
    stdio,
  });
  child.errors = '';
  child.stderr?.setEncoding('utf8');
  child.stderr?.on('data', (text) => {
    child.errors += text;
  });
  child.exited = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

export function stdio_client(t, flags) {
  const child = start_stdio(t, flags);
  const client = new LineClient(child.stdin, child.stdout);
  client.child = child;
  return client;
}

// A path for a Unix domain socket. The test `t` removes its folder.
export function socket_path(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-unix-'));
  chmodSync(folder, 0o755);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, 'socket');
}

export const unix_client = (t, place) => socket_client(t, { path: place });

// `place` is as for net.connect(): {path} or {host, port}.
export async function socket_client(t, place) {
  const socket = net.connect({ ...place, allowHalfOpen: true });
  t.after(() => socket.destroy());
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  const client = new LineClient(socket, socket);
  client.socket = socket;
  return client;
}
