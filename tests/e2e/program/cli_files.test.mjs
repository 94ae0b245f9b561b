// What is installed beside the program: completion and manual pages.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { program, run_program } from '../lib/server.mjs';

// What bash offers after `words`, the last of which is not complete.
async function offered(...words) {
  const script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf "%s\\n" "${COMPREPLY[@]}"';
  const outcome = await run_program(['--norc', '-c', script, program, 'sluice', ...words], {
    command: '/bin/bash',
  });
  assert.equal(outcome.code, 0);
  assert.equal(outcome.stderr, '');
  return outcome.stdout.trim().split('\n');
}

test('bash completes commands, options, values and files', async () => {
  assert.deepEqual(await offered('ser'), ['serve', 'servers']);
  assert.ok((await offered('')).includes('doctor'));
  assert.deepEqual(await offered('serve', '--max-conn'), [
    '--max-connections',
    '--max-connections-per-client',
  ]);
  assert.deepEqual(await offered('doctor', '--por'), ['--port']);
  assert.deepEqual(await offered('serve', '--engine', ''), ['llama', 'synthetic']);
  assert.deepEqual(await offered('serve', '--engine', '=', 'sy'), ['synthetic']);
  assert.deepEqual(await offered('chat', '--via', '='), ['poll', 'sse', 'ws', 'mcp']);
  assert.deepEqual(await offered('serve', '--port', ''), ['']);
  assert.deepEqual(await offered('serve', '--config', 'READ'), ['README.md']);
  assert.deepEqual(await offered('completion', 'z'), ['zsh']);
  assert.deepEqual(await offered('man', 'b'), ['bench']);
});

test('completion without a shell says which there are', async () => {
  for (const args of [[], ['tcsh']]) {
    const outcome = await run_program(['completion', ...args]);
    assert.equal(outcome.code, 2);
    assert.match(outcome.stderr, /bash, zsh or fish/);
  }
});

test('cmake --install puts completion and manual pages in their places', async (t) => {
  const prefix = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-install-'));
  t.after(() => rmSync(prefix, { recursive: true, force: true }));
  const build = path.resolve(program, '../..');
  const installed = await run_program(
    ['--install', build, '--component', 'manual', '--prefix', prefix],
    { command: 'cmake' },
  );
  assert.equal(installed.code, 0, installed.stderr);
  const text = (name) => readFileSync(path.join(prefix, 'share', name), 'utf8');
  assert.match(text('bash-completion/completions/sluice'), /^complete -F _sluice sluice$/m);
  assert.match(text('zsh/site-functions/_sluice'), /^#compdef sluice$/m);
  assert.match(text('fish/vendor_completions.d/sluice.fish'), /^complete -c sluice -f$/m);
  const { stdout } = await run_program(['man', '--list']);
  for (const command of stdout.trim().split('\n')) {
    assert.match(text(`man/man1/sluice-${command}.1`), /^\.TH SLUICE/);
  }
  assert.match(text('man/man1/sluice.1'), /^\.SH EXIT STATUS$/m);
});
