// What `sluice serve` says and does when it cannot start.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { make_model } from '../lib/model.mjs';
import { run_program, start_server } from '../lib/server.mjs';

function scratch(t) {
  const directory = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const serve_model = (file, ...flags) =>
  run_program(['serve', '--engine', 'llama', '--model', file, '--port', '0', ...flags]);

// Expects exit code 1 and a one-line message that names the file and says what is wrong.
function refused(outcome, file, what) {
  assert.equal(outcome.signal, null, `${what}: ${outcome.stderr}`);
  assert.equal(outcome.code, 1, `${what}: ${outcome.stderr}`);
  assert.ok(outcome.stderr.includes(file), `${what}: the file is named in ${outcome.stderr}`);
}

test('a model file that is missing', async (t) => {
  const file = path.join(scratch(t), 'missing.gguf');
  const outcome = await serve_model(file);
  refused(outcome, file, 'missing');
  assert.match(outcome.stderr, /no such file|does not exist|not found|cannot (open|read)/i);
});

test('a model file that is a directory', async (t) => {
  const file = scratch(t);
  refused(await serve_model(file), file, 'directory');
});

test('a model file that is not a GGUF file', async (t) => {
  const file = path.join(scratch(t), 'text.gguf');
  writeFileSync(file, 'This is a text, and no model at all.\n'.repeat(100));
  const outcome = await serve_model(file);
  refused(outcome, file, 'text');
  assert.match(outcome.stderr, /GGUF/);
});

test('an empty model file', async (t) => {
  const file = path.join(scratch(t), 'empty.gguf');
  writeFileSync(file, '');
  refused(await serve_model(file), file, 'empty');
});

test('a truncated model file, cut anywhere', async (t) => {
  const directory = scratch(t);
  const whole = make_model();
  for (const part of [0.001, 0.1, 0.5, 0.9, 0.999]) {
    const file = path.join(directory, `cut-${part}.gguf`);
    writeFileSync(file, whole.subarray(0, Math.floor(whole.length * part)));
    refused(await serve_model(file), file, `cut at ${part}`);
  }
});

test('a corrupt model file', async (t) => {
  const directory = scratch(t);
  for (const [what, at, bytes] of [
    ['a version from the future', 4, [0xff, 0xff, 0, 0]],
    ['more tensors than bytes', 8, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['more keys than bytes', 16, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['a key of absurd length', 24, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
  ]) {
    const model = Buffer.from(make_model());
    Buffer.from(bytes).copy(model, at);
    const file = path.join(directory, `${what.replaceAll(' ', '-')}.gguf`);
    writeFileSync(file, model);
    refused(await serve_model(file), file, what);
  }
});

test('no memory for the context', async (t) => {
  const file = path.join(scratch(t), 'model.gguf');
  writeFileSync(file, make_model());
  const outcome = await serve_model(file, '--context', '1000000', '--slots', '256');
  assert.equal(outcome.signal, null, outcome.stderr);
  assert.equal(outcome.code, 1, outcome.stderr);
  assert.match(outcome.stderr, /memory|context/i);
});

test('a busy port', async (t) => {
  const holder = net.createServer();
  await new Promise((resolve) => holder.listen(0, '127.0.0.1', resolve));
  t.after(() => holder.close());
  const { port } = holder.address();
  const outcome = await run_program(['serve', '--engine', 'synthetic', '--port', String(port)]);
  assert.equal(outcome.code, 1);
  assert.ok(outcome.stderr.includes(String(port)), outcome.stderr);
  assert.match(outcome.stderr, /taken|in use|busy/i);
});

test('a server does not share its port with a second one', async (t) => {
  const server = await start_server(t);
  const outcome = await run_program([
    'serve',
    '--engine',
    'synthetic',
    '--port',
    String(server.port),
  ]);
  assert.equal(outcome.code, 1);
  assert.match(outcome.stderr, /taken|in use|busy/i);
});

test('flags, variables and files that are wrong: exit code 2, and what is allowed', async (t) => {
  const directory = scratch(t);
  const wrong = [
    [['--port', '70000'], /--port/],
    [['--engine', 'magic'], /--engine.*(llama|synthetic)/s],
    [['--no-such-flag'], /--no-such-flag/],
    [['--stream-expiry', 'soon'], /--stream-expiry/],
    [['--max-body', '-1'], /--max-body/],
    [['--tls-cert', 'cert.pem'], /--tls-key/],
    [['--api-key', 'alice=short'], /--api-key/],
  ];
  for (const [flags, message] of wrong) {
    const outcome = await run_program(['serve', '--engine', 'synthetic', '--port', '0', ...flags]);
    assert.equal(outcome.code, 2, `${flags}: ${outcome.stderr}`);
    assert.match(outcome.stderr, message);
  }
  const by_variable = await run_program(['serve', '--engine', 'synthetic'], {
    env: { SLUICE_PORT: 'x' },
  });
  assert.equal(by_variable.code, 2);
  assert.match(by_variable.stderr, /SLUICE_PORT/);

  const file = path.join(directory, 'sluice.toml');
  writeFileSync(file, 'port = 0\n[streams]\nexpiry = "never"\n');
  const by_file = await run_program(['serve', '--engine', 'synthetic', '--config', file]);
  assert.equal(by_file.code, 2);
  assert.match(by_file.stderr, /sluice\.toml:3/);
});

test('flags win over variables, and variables over the file', async (t) => {
  const directory = scratch(t);
  const file = path.join(directory, 'sluice.toml');
  writeFileSync(file, 'host = "192.0.2.1"\nthreads = 1\n[engine]\nkind = "llama"\n');
  const server = await start_server(t, ['--config', file, '--engine', 'synthetic'], {
    env: { SLUICE_ENGINE: 'llama', SLUICE_MODEL: '/nowhere.gguf' },
  });
  assert.equal((await server.request({ path: '/readyz' })).status, 200);
});
