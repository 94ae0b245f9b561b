// Where `sluice chat` takes its question from, and what it says on standard error.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { clean_environment, program, run_program, start_server } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';
import { count_numbers } from '../lib/wire.mjs';

// A server that keeps what it is asked and refuses to answer.
async function listener(t) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    asked.push(JSON.parse(body).params.messages.at(-1).content);
    response.writeHead(400, { 'Content-Type': 'application/json' });
    response.end('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}');
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { asked, url: `http://127.0.0.1:${server.address().port}` };
}

test('chat joins its prompt and what is piped in', async (t) => {
  const { asked, url } = await listener(t);
  const ask = (args, input) => run_program(['chat', '--url', url, ...args], { input });
  await ask(['write a', 'commit message'], '- old\n+ new\n');
  await ask([], 'Why is\nthe sky blue?\n');
  await ask(['-'], 'From a dash\n');
  await ask(['Hello'], ' \n');
  await ask(['Hello']); // </dev/null
  assert.deepEqual(asked, [
    'write a commit message\n\n- old\n+ new',
    'Why is\nthe sky blue?',
    'From a dash',
    'Hello',
    'Hello',
  ]);
});

test('chat waits for what is piped in, and says so', async (t) => {
  const { asked, url } = await listener(t);
  const child = spawn(program, ['chat', '--url', url, 'Explain:'], { env: clean_environment() });
  t.after(() => child.kill('SIGKILL'));
  const [notice] = await once(child.stderr.setEncoding('utf8'), 'data');
  assert.match(notice, /waiting for the end of standard input; without it, add <\/dev\/null/);
  assert.deepEqual(asked, []);
  child.stdin.write('one');
  child.stdin.end(' two\n');
  await once(child, 'close');
  assert.deepEqual(asked, ['Explain:\n\none two']);
});

test('chat without a question says what to do: exit code 2', async () => {
  for (const [args, input] of [
    [[], ''],
    [[], ' \t\n\n'],
    [['  '], ''],
    [['-'], ''],
    [[''], undefined],
    [[], undefined], // </dev/null
  ]) {
    const outcome = await run_program(['chat', ...args], { input });
    assert.equal(outcome.code, 2, JSON.stringify([args, input]));
    assert.match(outcome.stderr, /^sluice: there is no question: give it as an argument .*\n$/);
    assert.equal(outcome.stdout, '');
  }
});

test('chat names an option out of range before it loads a model or asks a server: exit code 2', async (t) => {
  const { asked, url } = await listener(t);
  for (const [option, value, name] of [
    ['--temperature', '-1', 'temperature must be a number from 0 to 10'],
    ['--max-tokens', '0', 'max_tokens must be an integer from 1'],
    ['--param', 'priority=11', 'priority must be an integer from -10 to 10'],
  ]) {
    for (const place of [['--url', url], ['--model', '/dev/null']]) {
      const outcome = await run_program(['chat', ...place, option, value, 'Hello']);
      assert.equal(outcome.code, 2, outcome.stderr);
      assert.ok(outcome.stderr.startsWith(`sluice: ${name}`), outcome.stderr);
    }
  }
  assert.deepEqual(asked, []);
});

test('chat takes up to 4 MiB of input, and names the limit above that', async (t) => {
  const whole = 'x'.repeat(4 << 20);
  const server_of_its_own = ['--engine', 'synthetic', '--param', 'count=1', '--quiet'];
  const fits = await run_program(['chat', ...server_of_its_own], { input: whole });
  assert.equal(fits.code, 0, fits.stderr);
  assert.equal(count_numbers(fits.stdout), 1);
  const { asked, url } = await listener(t);
  const beyond = await run_program(['chat', '--url', url, 'Hello'], { input: `${whole}x` });
  assert.equal(beyond.code, 2);
  assert.match(beyond.stderr, /standard input is longer than 4MiB/);
  assert.deepEqual(asked, []);
});

test('chat sends input that is not UTF-8 with replacement characters', async (t) => {
  const { asked, url } = await listener(t);
  await run_program(['chat', '--url', url], { input: Buffer.from('caf\xe9', 'latin1') });
  assert.deepEqual(asked, ['caf\u{fffd}']);
});

test('chat on a terminal whose answer goes elsewhere asks for a question', async (t) => {
  const terminal = new Terminal(t, ['sh', '-c', '"$0" chat | cat; echo over', program]);
  const text = await terminal.until((seen) => seen.includes('over'), 'it ended');
  assert.match(text, /there is no question/);
});

test('chat says that an answer was cut off, on standard error', async (t) => {
  const server = await start_server(t, ['--engine', 'llama', '--context', '64']);
  const ask = (...args) => run_program(['chat', '--quiet', '--url', server.base, ...args]);
  for (const format of [[], ['--json']]) {
    const limited = await ask(...format, '--max-tokens', '3', 'Hello');
    assert.equal(limited.code, 0);
    assert.equal(
      limited.stderr,
      'sluice: the answer was cut off at the limit of --max-tokens\n',
    );
    const full = await ask(...format, 'Count from 1 to 50');
    assert.match(full.stderr, /^sluice: the answer was cut off: .* context\n$/);
  }
  const whole = await ask('Count from 1 to 3.');
  assert.equal(whole.stderr, '');
});

test('on a terminal: a pasted block is one question, wide characters are edited whole', async (t) => {
  const { asked, url } = await listener(t);
  const home = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-home-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const env = { XDG_STATE_HOME: home };
  const terminal = new Terminal(t, [program, 'chat', '--url', url], { env });
  // Each question is typed when the prompt for it has appeared.
  const ask = async (keys) => {
    const from = terminal.seen.length;
    terminal.type(keys);
    await terminal.until((text) => /sluice: no\r\n[^]*> $/.test(text), 'it is refused', { from });
    return asked.at(-1);
  };
  await terminal.until((text) => text.endsWith('> '), 'it prompts');
  assert.match(terminal.seen, /\x1b\[\?2004h/);
  const pasted = (text) => `\x1b[200~${text}\x1b[201~`;
  assert.equal(await ask(`${pasted('one\rtwo\nthree\r')} four\r`), 'one\ntwo\nthree four');
  assert.equal(await ask(`${pasted('/* a\n */')}\r`), '/* a\n */');
  assert.equal(await ask(`a${pasted('\x1b[2J\x07b\tc')}d\r`), 'a[2Jb\tcd');
  const left = '\x1b[D';
  const backspace = '\x7f';
  assert.equal(await ask(`日本語${left}${backspace}x${left}${left}い\r`), 'い日x語');
  assert.equal(await ask(`a😀b${left}${backspace}c\r`), 'acb');
  // Bytes that are not UTF-8 take no key with them.
  assert.equal(await ask(Buffer.from('caf\xe9 \xc3\xffx\xe9\r', 'latin1')), 'caf x');
  // The history has the pasted lines as one entry.
  const up = '\x1b[A';
  assert.equal(await ask(`${up.repeat(6)}\r`), 'one\ntwo\nthree four');
  terminal.type('\x04');
  assert.equal(await terminal.exit_code(), 0);
});

test('on a terminal: the lines of an answer break between words', async (t) => {
  const whole = await run_program(['chat', '--quiet', 'Hello']);
  const terminal = new Terminal(t, [
    ...['sh', '-c', 'stty cols 30; "$0" chat --quiet Hello; echo over', program],
  ]);
  const seen = await terminal.until((text) => text.includes('over'), 'it ended');
  const lines = seen
    .split('\r\n')
    // A word that did not fit was removed from the end of its line.
    .map((line) => line.replace(/^(.*)\x1b\[(\d+)G\x1b\[K$/, (_, text, at) => text.slice(0, at - 1)));
  const answer = lines.slice(0, lines.indexOf('over')).map((line) => line.trimEnd());
  assert.ok(answer.length > 2 && answer.every((line) => line.length <= 30), seen);
  assert.equal(answer.join(' '), whole.stdout.trim());
});
