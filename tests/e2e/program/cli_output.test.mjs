// Output of the program that is not read, or cannot be written.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { clean_environment, program, run_program, until } from '../lib/server.mjs';

// Asks the synthetic engine of a server of its own; "$0" is the program.
const chat = (count) => `"$0" chat --engine synthetic -q hi --param count=${count} </dev/null`;

test('chat can be interrupted while nobody reads its output', async (t) => {
  for (const redirection of ['', '2>&1']) {
    for (const signal of ['SIGINT', 'SIGTERM']) {
      // The answer is longer than what the pipe holds, and is never read.
      const child = spawn('/bin/sh', ['-c', `exec ${chat(100_000)} ${redirection}`, program], {
        env: clean_environment(),
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      t.after(() => child.kill('SIGKILL'));
      const exited = once(child, 'exit');
      await once(child.stdout, 'readable');
      await until(() => !child.kill(signal), `${signal} ends it`);
      const [code, killer] = await exited;
      // Late in its shutdown, the program leaves signals to the system again.
      assert.ok(code === 130 || killer === signal, `${signal} ${redirection}: ${code} ${killer}`);
    }
  }
});

test('output that cannot be written is a failure with a reason', async () => {
  for (const command of ['"$0" --version', '"$0" serve --help', chat(3), `${chat(3)} --json`]) {
    const outcome = await run_program(['-c', `${command} >/dev/full`, program], {
      command: '/bin/sh',
    });
    assert.equal(outcome.code, 1, command);
    assert.equal(outcome.stderr, 'sluice: cannot write: No space left on device\n', command);
  }
});

test('chat shows an empty answer as nothing, over every delivery', async () => {
  for (const via of ['poll', 'sse', 'ws', 'mcp']) {
    const outcome = await run_program(['-c', `${chat(0)} --via ${via}`, program], {
      command: '/bin/sh',
    });
    assert.deepEqual([outcome.code, outcome.stdout], [0, ''], `${via} ${outcome.stderr}`);
  }
});

test('a reader that leaves early needs no explanation', async () => {
  const outcome = await run_program(['-c', `${chat(100_000)} | head -c 10`, program], {
    command: '/bin/sh',
  });
  assert.equal(outcome.stdout.length, 10);
  assert.equal(outcome.stderr, '');
});
