// Starts and stops the program under test, and queries its state.

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { patience } from './patience.mjs';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
export const program = path.resolve(root, process.env.SLUICE_BIN ?? 'build/release/bin/sluice');
export const is_sanitized = /\/build\/[at]san\//.test(program);
// The example that offers every feature of a server.
export const everything = path.join(path.dirname(program), 'sluice-everything');

const kStartDeadline = 60_000;
const kStopDeadline = 20_000;
// The longest that a connection may be silent while an answer is awaited.
const kSilence = 60_000;

// These variables say where the build keeps its files. They are not settings of the program.
const kBuildVariables = new Set(['SLUICE_CACHE', 'SLUICE_JOBS']);

// The environment without the settings that a developer may have, so that tests see the program's
// defaults.
export function clean_environment(extra = {}) {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      kBuildVariables.has(name) ||
      !(name.startsWith('SLUICE_') || name === 'NODE_OPTIONS' || /_proxy$/i.test(name)),
  );
  return { ...Object.fromEntries(kept), NO_COLOR: '1', ...extra };
}

// A running server. `output` holds the text that it printed.
export class Server {
  constructor(child) {
    this.child = child;
    this.prefix = ''; // in front of all paths
    this.output = '';
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    for (const stream of [child.stdout, child.stderr].filter(Boolean)) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        this.output += text;
      });
    }
  }

  get pid() {
    return this.child.pid;
  }

  // Waits for the program to print its address. Only this function knows the format.
  async wait_for_address() {
    const found = await new Promise((resolve, reject) => {
      const look = () => {
        const match = /(https?):\/\/(127\.0\.0\.1|localhost|\[::1\]):(\d+)\/mcp/.exec(this.output);
        if (match && match[3] !== '0') resolve(match);
      };
      const late = setTimeout(
        () => reject(new Error(`the server printed no address:\n${this.output}`)),
        kStartDeadline,
      );
      late.unref();
      this.child.stdout.on('data', look);
      this.child.stderr?.on('data', look);
      this.exited.then(({ code, signal }) =>
        reject(new Error(`the server ended (${code ?? signal}):\n${this.output}`)),
      );
      look();
    });
    this.tls = found[1] === 'https';
    this.host = found[2];
    this.port = Number(found[3]);
    const transport = this.tls ? https : http;
    this.agent = new transport.Agent({
      keepAlive: true,
      maxSockets: 64,
      rejectUnauthorized: false,
    });
  }

  get base() {
    return `${this.tls ? 'https' : 'http'}://${this.host}:${this.port}${this.prefix}`;
  }
  get mcp_url() {
    return `${this.base}/mcp`;
  }
  get ws_url() {
    return `${this.tls ? 'wss' : 'ws'}://${this.host}:${this.port}${this.prefix}/ws`;
  }

  // Makes one HTTP exchange: {status, headers, body: Buffer}.
  request({
    method = 'GET',
    path: target = '/',
    headers = {},
    body,
    local_address,
    agent,
    signal,
  }) {
    return new Promise((resolve, reject) => {
      const transport = this.tls ? https : http;
      const request = transport.request(
        {
          host: this.host,
          port: this.port,
          method,
          path: this.prefix + target,
          headers:
            body === undefined
              ? headers
              : { 'Content-Length': Buffer.byteLength(body), ...headers },
          localAddress: local_address,
          // Connections from another local address must not be mixed with the others.
          agent: agent ?? (local_address === undefined ? this.agent : false),
          rejectUnauthorized: false,
          signal,
        },
        (response) => {
          const parts = [];
          response.on('data', (part) => parts.push(part));
          response.on('error', reject);
          response.on('end', () =>
            resolve({
              status: response.statusCode,
              headers: response.headers,
              body: Buffer.concat(parts),
            }),
          );
        },
      );
      request.on('error', reject);
      request.setTimeout(kSilence, () =>
        request.destroy(new Error(`no answer to ${method} ${target}`)),
      );
      request.end(body);
    });
  }

  // The samples of /metrics: [{name, labels, value}]. The request uses a connection of its own,
  // which does not stay open and count.
  async metrics() {
    const { status, body } = await this.request({ path: '/metrics', agent: false });
    if (status !== 200) throw new Error(`/metrics answered ${status}`);
    return parse_metrics(body.toString());
  }

  async metric(name, labels = {}) {
    const samples = (await this.metrics()).filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    );
    if (samples.length === 0) throw new Error(`no metric ${name}`);
    return samples.reduce((sum, sample) => sum + sample.value, 0);
  }

  // The bytes of memory that are resident (VmRSS), or another size in /proc/PID/status. 0 for the
  // builds of sanitizers, whose memory says nothing about the program's.
  memory(kind = 'VmRSS') {
    if (is_sanitized) return 0;
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(new RegExp(`${kind}:\\s+(\\d+) kB`).exec(status)[1]) * 1024;
  }

  // The number of open descriptors of the process.
  descriptors() {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  signal(name) {
    this.child.kill(name);
  }

  async stop() {
    this.agent?.destroy();
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGTERM');
      const late = setTimeout(() => this.child.kill('SIGKILL'), kStopDeadline);
      await this.exited;
      clearTimeout(late);
    }
    return this.exited;
  }
}

export function parse_metrics(text) {
  const samples = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/.exec(line);
    if (!match) throw new Error(`not a metric: ${line}`);
    const labels = {};
    for (const [, key, value] of (match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[key] = value;
    }
    samples.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return samples;
}

// Starts `sluice serve` with the given flags on its own port. The test `t` stops it. A flag that is
// given replaces the default below. `stderr` is a descriptor for its log, which is then not part of
// `output`.
export async function start_server(t, flags = [], { env = {}, cwd, stderr } = {}) {
  const has = (flag) => flags.some((given) => given === flag || given.startsWith(`${flag}=`));
  const defaults = [
    ['--engine', 'synthetic'],
    ['--host', '127.0.0.1'],
    ['--port', '0'],
    ['--threads', '2'],
    // So that a test that leaves an endless stream behind does not wait for it.
    ['--shutdown-deadline', '500ms'],
  ].filter(([flag]) => !has(flag));
  const server = await launch(t, program, ['serve', ...defaults.flat(), ...flags], {
    env,
    cwd,
    stderr,
  });
  // The server already listens while a model loads.
  await until(async () => {
    if (server.child.exitCode !== null) throw new Error(`the server ended:\n${server.output}`);
    return (await server.request({ path: '/readyz', agent: false })).status === 200;
  }, 'the server is ready');
  return server;
}

// Starts `sluice-everything` on its own port, and on a Unix socket (`socket`). The test `t`, or anything
// else with an `after`, stops it.
export async function start_everything(t) {
  const socket = path.join(temporary_folder(t), 'socket');
  const server = await launch(t, everything, ['--listen', '127.0.0.1:0', '--unix', socket]);
  return Object.assign(server, { socket });
}

// Starts `sluice proxy` with these words, as start_everything() does.
export async function start_proxy(t, words, options) {
  const socket = path.join(temporary_folder(t), 'socket');
  const places = ['--listen', '127.0.0.1:0', '--unix', socket];
  const server = await launch(t, program, ['proxy', ...places, ...words], options);
  return Object.assign(server, { socket });
}

// The path of an example.
export const example = (name) => path.join(path.dirname(program), `example-${name}`);

// Starts an example that is a server on its own port, as start_everything() does.
export const start_example = (t, name, flags = []) =>
  launch(t, example(name), ['--listen', '127.0.0.1:0', ...flags]);

// The pids of the children of a process.
export const children_of = ({ pid }) =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
    .filter(Boolean)
    .map(Number);

// A folder that is removed after the test `t`, or anything else with an `after`.
export function temporary_folder(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function launch(t, command, args, { env = {}, cwd, stderr = 'pipe' } = {}) {
  const child = spawn(command, args, {
    cwd: cwd ?? root,
    env: clean_environment(env),
    stdio: ['ignore', 'pipe', stderr],
  });
  const server = new Server(child);
  t.after(async () => {
    const ended = await server.stop();
    const sane = ended.signal === null && ended.code === 0;
    if (!sane && !server.may_die) {
      throw new Error(`the server ended badly (${ended.code ?? ended.signal}):\n${server.output}`);
    }
  });
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  await server.wait_for_address();
  return server;
}

// Runs the program to its end: {code, signal, stdout, stderr}. `deadline` in ms.
export function run_program(
  args,
  { input, env, cwd, deadline = 60_000, command = program, on_stdout } = {},
) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: cwd ?? root,
      env: clean_environment(env),
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      // In its own process group, so that everything it started is killed with it at the deadline.
      detached: true,
    });
    const out = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8');
      child[name].on('data', (text) => {
        out[name] += text;
      });
    }
    if (on_stdout) child.stdout.on('data', on_stdout);
    const late = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), deadline);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(late);
      resolve({ code, signal, ...out });
    });
    if (input === undefined) return;
    // A program need not read it, and may have ended.
    child.stdin.on('error', (error) => (error.code === 'EPIPE' ? undefined : reject(error)));
    child.stdin.end(input);
  });
}

// Calls `probe` again and again until its result is true, and returns that. The pause only saves
// CPU time; nothing depends on its length.
export async function until(probe, what, deadline = patience) {
  const end = performance.now() + deadline;
  for (;;) {
    const answer = await probe();
    if (answer) return answer;
    if (performance.now() > end) throw new Error(`waited ${deadline} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
