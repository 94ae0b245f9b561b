// Questions that end before the user has answered.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foreign_command } from '../lib/foreign_server.mjs';
import { program } from '../lib/server.mjs';
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
