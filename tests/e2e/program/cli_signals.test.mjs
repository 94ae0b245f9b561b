// Signals that end chat: the answer stops at the server too, and the exit code says so.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { clean_environment, program, start_server, until } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';
import * as wire from '../lib/wire.mjs';

const kEndless = ['--param', 'count=1000000', '--param', 'interval_us=1000'];

const idle = (server) =>
  until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'the answer stopped');

test('a signal stops the answer: exit code 130', async (t) => {
  const server = await start_server(t);
  for (const via of ['poll', 'sse', 'ws', 'mcp']) {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      const child = spawn(program, ['chat', '--url', server.base, '--via', via, ...kEndless, 'hi'], {
        env: clean_environment(),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
      const closed = once(child, 'close');
      await once(child.stdout.resume(), 'data');
      child.kill(signal);
      const [code] = await closed;
      assert.equal(code, 130, `${via} ${signal}: ${said}`);
      assert.match(said, /stopped/, `${via} ${signal}`);
      await idle(server);
    }
  }
});

test('a signal stops an answer that comes faster than it can be shown', async (t) => {
  const args = ['chat', '--engine', 'synthetic', '--param', 'count=100000000', 'hi'];
  const child = spawn(program, args, {
    env: clean_environment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => child.kill('SIGKILL'));
  const read = async () => {
    for await (const _ of child.stdout) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const closed = once(child, 'close');
  await once(child.stdout, 'readable');
  const reading = read();
  child.kill('SIGINT');
  await until(() => child.exitCode !== null, 'it ended', 15_000);
  assert.equal((await closed)[0], 130);
  await reading;
});

test('a terminal that closes stops the answer', async (t) => {
  const server = await start_server(t);
  const terminal = new Terminal(t, [program, 'chat', '--url', server.base, ...kEndless]);
  await terminal.until((text) => text.includes('> '), 'it prompts');
  const from = terminal.seen.length;
  terminal.type('hi\r');
  await terminal.until((text) => text.includes('"n":'), 'it answers', { from });
  assert.equal(await server.metric(wire.metric.slots_busy), 1);
  terminal.child.kill('SIGKILL');
  await idle(server);
});
