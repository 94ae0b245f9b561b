// Where `sluice chat` takes its question from, and what it says on standard error.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { clean_environment, program, run_program, start_server } from './lib/server.mjs';
import { Terminal } from './lib/terminal.mjs';
import { count_numbers } from './lib/wire.mjs';

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
  ]) {
    const outcome = await run_program(['chat', ...args], { input });
    assert.equal(outcome.code, 2, JSON.stringify([args, input]));
    assert.match(outcome.stderr, /^sluice: there is no question: give it as an argument .*\n$/);
    assert.equal(outcome.stdout, '');
  }
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
    const full = await ask(...format, 'Count from one to ten.');
    assert.match(full.stderr, /^sluice: the answer was cut off: .* context\n$/);
  }
  const whole = await ask('Count from 1 to 3.');
  assert.equal(whole.stderr, '');
});
