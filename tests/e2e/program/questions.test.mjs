// Questions that end before the user has answered.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foreign_command } from '../lib/foreign_server.mjs';
import { everything, program, run_program } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';

const asking = (deed) => ['call', 'ask', '--', ...foreign_command('impatient.mjs', deed)];

test('a question that nobody waits for any more is withdrawn, and the command ends', async (t) => {
  for (const [deed, code, said] of [
    ['answers', 0, 'It is done'],
    ['dies', 4, 'it has ended with code 3'],
    ['takes-back', 0, 'It is done'],
  ]) {
    const terminal = new Terminal(t, [program, ...asking(deed)]);
    await terminal.until((seen) => seen.includes('[string]'), 'it asks');
    assert.equal(await terminal.exit_code(), code, terminal.seen);
    assert.match(terminal.seen, /The question was withdrawn\./);
    assert.ok(terminal.seen.includes(said), terminal.seen);
  }
});

test('an interrupt at a question ends the command, and answers nothing', async (t) => {
  for (let round = 0; round < 5; ++round) {
    const terminal = new Terminal(t, [program, ...asking('waits')]);
    await terminal.until((seen) => seen.includes('[string]'), 'it asks');
    terminal.interrupt();
    assert.equal(await terminal.exit_code(), 130, terminal.seen);
    assert.ok(!terminal.seen.includes('They said'), terminal.seen);
  }
});

test('the pages of a request that is refused until the user has been there are shown', async () => {
  const { code, stderr } = await run_program(asking('page'));
  assert.equal(code, 1, stderr);
  assert.match(stderr, /Sign in first\nGo to this page, if you trust example\.com\./);
  assert.ok(stderr.includes('  https://example.com/sign-in?state=1\n'), stderr);
});

test('a program that is started has no terminal to ask on', async (t) => {
  // As ssh and sudo do.
  const script = 'read password < /dev/tty; exec "$0" --stdio';
  const words = ['info', '--timeout', '10', '--', 'sh', '-c', script, everything];
  const terminal = new Terminal(t, [program, ...words]);
  assert.equal(await terminal.exit_code(), 0, terminal.seen);
  assert.ok(terminal.seen.includes('/dev/tty'), terminal.seen);
});
