// The program as people use it: chat over every delivery, doctor, bench and help, also on a
// terminal.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { kDemo } from '../lib/agent.mjs';
import { model_file } from '../lib/model.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import {
  clean_environment,
  program,
  root,
  run_program,
  start_everything,
  start_server,
  temporary_folder,
  until,
} from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';
import * as wire from '../lib/wire.mjs';

const kWays = ['poll', 'sse', 'ws', 'mcp'];

// A separate home directory for what the program saves, so that the real history is neither read
// nor written.
function home(t) {
  const directory = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-home-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return { XDG_STATE_HOME: directory };
}

const model_flags = (file) => ['--model', file, '--model-threads', '1', '--context', '512'];

test('chat prints the same answer by poll, SSE, WebSocket and MCP, and nothing else', async (t) => {
  const env = home(t);
  const server = await start_server(t, ['--engine', 'llama', ...model_flags(model_file(t))]);
  const expected = wire.whole_text(
    await new HttpClient(server).call('run', {
      messages: [{ role: 'user', content: 'Hello there' }],
      max_tokens: 150,
    }),
  );
  for (const via of kWays) {
    const outcome = await run_program(
      ['chat', '--url', server.base, '--via', via, '--max-tokens', '150', 'Hello there'],
      { env },
    );
    assert.equal(outcome.code, 0, `${via}: ${outcome.stderr}`);
    assert.equal(outcome.stdout.replace(/\n$/, ''), expected.replace(/\n$/, ''), via);
    assert.match(outcome.stderr, /tokens\/s/, `${via}: the speed stands on standard error`);
  }
});

test('chat takes its prompt from a pipe', async (t) => {
  const env = home(t);
  const server = await start_server(t);
  const outcome = await run_program(['chat', '--url', server.base], {
    env,
    input: 'Hello from a pipe\n',
  });
  assert.equal(outcome.code, 0, outcome.stderr);
  assert.equal(wire.count_numbers(outcome.stdout), 16);
});

test('chat says when nobody is there: exit code 4', async (t) => {
  const env = home(t);
  const server = await start_server(t);
  const { base } = server;
  await server.stop();
  for (const via of kWays) {
    const outcome = await run_program(['chat', '--url', base, '--via', via, 'Hello'], { env });
    assert.equal(outcome.code, 4, `${via}: ${outcome.code} ${outcome.stderr}`);
    assert.equal(outcome.stdout, '', via);
    assert.ok(outcome.stderr.includes(String(server.port)), outcome.stderr);
  }
});

test('chat with a model of its own needs no server', async (t) => {
  const outcome = await run_program(
    ['chat', ...model_flags(model_file(t)), '--max-tokens', '20', 'Hello'],
    { env: home(t) },
  );
  assert.equal(outcome.code, 0, outcome.stderr);
  assert.ok(outcome.stdout.length > 10, outcome.stdout);
});

test('help: every command has one with examples, wrong usage is exit code 2', async () => {
  const main = await run_program(['--help']);
  assert.equal(main.code, 0);
  const remote = ['info', 'ping', 'tools', 'call', 'resources', 'read', 'prompts', 'prompt'];
  for (const command of ['serve', 'chat', 'doctor', 'bench', 'login', 'logout', ...remote]) {
    assert.match(main.stdout, new RegExp(`\\b${command}\\b`));
    const help = await run_program([command, '--help']);
    assert.equal(help.code, 0, command);
    assert.match(help.stdout, /Examples:/, command);
    assert.equal(help.stderr, '', command);
    const wrong = await run_program([command, '--no-such-flag']);
    assert.equal(wrong.code, 2, command);
    assert.match(wrong.stderr, /no-such-flag/, command);
  }
  assert.equal((await run_program([])).code, 2);
  assert.equal((await run_program(['no-such-command'])).code, 2);
  const version = await run_program(['--version']);
  assert.equal(version.code, 0);
  assert.match(version.stdout, /^sluice \d+\.\d+\.\d+/);
});

test('help is as wide as the terminal', async (t) => {
  for (const columns of [50, 120]) {
    const terminal = new Terminal(t, [
      'sh',
      '-c',
      `stty cols ${columns}; "$0" serve --help; echo over`,
      program,
    ]);
    const text = await terminal.until((seen) => seen.includes('over'), 'it ended');
    const longest = Math.max(...text.split('\r\n').map((line) => line.length));
    assert.ok(longest <= columns && longest > columns - 20, `${columns}: ${longest}`);
  }
});

test('every setting of serve is in its help', async () => {
  const { stdout } = await run_program(['serve', '--help']);
  for (const flag of Object.values(wire.flag)) assert.ok(stdout.includes(flag), flag);
});

test('doctor: 0 when all is well, 1 with the fix when something is not', async (t) => {
  const file = model_file(t);
  const well = await run_program(['doctor', '--json', '--port', '0', ...model_flags(file)]);
  const report = JSON.parse(well.stdout);
  assert.equal(well.code, 0, well.stdout);
  assert.equal(report.ok, true);
  const subjects = report.checks.map(({ subject }) => subject);
  assert.ok(new Set(subjects).size >= 5, `${subjects}`);

  const server = await start_server(t);
  const ill = await run_program([
    'doctor',
    '--json',
    '--port',
    String(server.port),
    '--model',
    '/no/such/model.gguf',
    '--tls-cert',
    '/no/such/cert.pem',
    '--tls-key',
    '/no/such/key.pem',
  ]);
  assert.equal(ill.code, 1);
  const failed = JSON.parse(ill.stdout).checks.filter(({ status }) => status === 'fail');
  assert.ok(failed.length >= 3, ill.stdout);
  for (const { finding, fix } of failed)
    assert.ok(finding.length > 0 && fix.length > 0, ill.stdout);
  const text = await run_program([
    'doctor',
    '--port',
    String(server.port),
    '--model',
    '/no/such/model.gguf',
  ]);
  assert.equal(text.code, 1);
  assert.ok(
    text.stdout.includes('/no/such/model.gguf') && text.stdout.includes(String(server.port)),
    text.stdout,
  );
});

for (const mode of ['poll', 'sse', 'ws', 'call']) {
  test(`bench: ${mode} for a moment, and its report is JSON`, async (t) => {
    const server = await start_server(t);
    const outcome = await run_program([
      'bench',
      '--url',
      server.base,
      '--mode',
      mode,
      '--streams',
      '4',
      '--duration',
      '1s',
      '--json',
    ]);
    assert.equal(outcome.code, 0, outcome.stderr);
    const report = JSON.parse(outcome.stdout);
    assert.equal(typeof report, 'object');
    const text = JSON.stringify(report);
    for (const name of ['p50', 'p99']) assert.ok(text.includes(name), text);
    assert.ok(!/"errors":[1-9]/.test(text), text);
    await until(
      async () => (await server.metric(wire.metric.slots_busy)) === 0,
      'the load is gone',
    );
  });
}

test('bench refuses what the server cannot do, before it begins', async (t) => {
  const model = await start_server(t, ['--engine', 'llama', ...model_flags(model_file(t))]);
  const server = { call: model, sse: await start_everything(t) };
  const message = {
    call: /^sluice: the server refuses such a call: Unknown tool: echo; .*synthetic.*\n$/,
    sse: /^sluice: the server refuses such a stream: .*\n$/,
  };
  for (const mode of ['call', 'sse']) {
    const outcome = await run_program(['bench', '--url', server[mode].base, '--mode', mode]);
    assert.equal(outcome.code, 2, outcome.stderr);
    assert.match(outcome.stderr, message[mode]);
    assert.equal(outcome.stdout, '');
  }
});

test('the default prompt of bench ends', async (t) => {
  const server = await start_server(t, ['--engine', 'llama']);
  const outcome = await run_program([
    ...['bench', '--url', server.base, '--streams', '1', '--duration', '200ms', '--json'],
  ]);
  assert.equal(outcome.code, 0, outcome.stderr);
  const { completed, chunks } = JSON.parse(outcome.stdout);
  assert.ok(completed > 0 && chunks / completed < 64, outcome.stdout);
});

const kRun = path.join(root, 'scripts/run');

test('scripts/run away from a terminal: an answer and 0; the second start is quick', async (t) => {
  const env = home(t);
  const first = await run_program([], { command: kRun, env, deadline: 170_000 });
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /tiny built-in model/, 'it answered the default prompt');
  assert.match(first.stderr, /--model FILE/, 'and said how to talk to another model');

  let first_token;
  const begun = performance.now();
  const second = await run_program(['Hello'], {
    command: kRun,
    env,
    on_stdout: () => (first_token ??= performance.now() - begun),
  });
  assert.equal(second.code, 0, second.stderr);
  assert.ok(first_token < 3000, `the first token came after ${first_token} ms`);
});

test('scripts/run agent shows the demo, with all words after it, in the folder of the caller', async (t) => {
  const cwd = temporary_folder(t);
  const asked = await run_program(['agent', '--trace', 'run.jsonl', kDemo], {
    command: kRun,
    env: home(t),
    cwd,
    deadline: 170_000,
  });
  assert.equal(asked.code, 0, asked.stderr);
  const written = [...asked.stdout.matchAll(/^ *stream_numbers \| ([\d .]+)$/gm)];
  assert.equal(written.map(([, numbers]) => numbers).join(''), '2 4 6 8 10 12 14 16 18 20.');
  assert.match(asked.stdout, /^[^|]*\b20\b[^|]*$/m, 'the model names the last number');
  assert.deepEqual(readdirSync(cwd), ['run.jsonl']);
  const refused = await run_program(['agent', '--max-turns', '0', 'Go'], { command: kRun, env: home(t) });
  assert.equal(refused.code, 2, refused.stderr);
});

test('scripts/run on a terminal opens a chat with a model of its own', async (t) => {
  const terminal = new Terminal(t, [kRun], { env: home(t) });
  await terminal.until(prompting, 'it prompts', { deadline: 170_000 });
  const from = terminal.seen.length;
  terminal.type('Hello\r');
  const answer = await terminal.until(prompting_again, 'it answers', { from });
  assert.match(answer, /tokens\/s/);
  terminal.interrupt();
  const code = await terminal.exit_code();
  assert.ok(code === 0 || code === 130, `${code}`);
});

const answering = (text) => /water|stream|stones/.test(text);
// Tests type only after the prompt has appeared: earlier input would end up in the answer.
const prompting = (text) => /(^|\n)> $/.test(text);
const prompting_again = (text) => /\n.*\n> $/s.test(text);

test('on a terminal: Ctrl-C stops the answer, a second one leaves', async (t) => {
  const env = home(t);
  const server = await start_server(t, [
    '--engine',
    'llama',
    '--model',
    model_file(t),
    '--model-threads',
    '1',
    '--context',
    '65536',
  ]);
  const idle = () =>
    until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'the answer stopped');
  const terminal = new Terminal(t, [program, 'chat', '--url', server.base], { env });
  await terminal.until(prompting, 'it prompts');
  for (const question of ['Hello there', 'Once more']) {
    const from = terminal.seen.length;
    terminal.type(`${question}\r`);
    await terminal.until(answering, 'it answers', { from });
    assert.ok((await server.metric(wire.metric.slots_busy)) > 0, 'and would go on');
    terminal.interrupt();
    await idle();
    await terminal.until(prompting_again, 'it prompts again', { from });
  }
  terminal.interrupt();
  const code = await terminal.exit_code();
  assert.ok(code === 0 || code === 130, `${code}`);
});

test('on a terminal: history and end of input', async (t) => {
  const env = home(t);
  const server = await start_server(t);
  const chat = async (keys) => {
    const terminal = new Terminal(t, [program, 'chat', '--url', server.base], { env });
    await terminal.until(prompting, 'it prompts');
    terminal.type(keys);
    await terminal.until((text) => text.includes('remember me'), 'the question stands there');
    const from = terminal.seen.length;
    terminal.type('\r');
    const answer = await terminal.until(prompting_again, 'the answer and a prompt', { from });
    assert.ok(answer.includes('"n":15'), answer);
    terminal.type('\x04');
    assert.equal(await terminal.exit_code(), 0);
  };
  await chat('remember me');
  // The up arrow brings back what was typed in the previous session.
  await chat('\x1b[A');
});

test('on a terminal that becomes smaller while a long line is typed', async (t) => {
  for (const [size, typed] of [
    ['cols 40', 120],
    ['rows 2', 200],
  ]) {
    const start = 'tty; stty cols 80 rows 24; exec "$0" chat --url http://127.0.0.1:9';
    const terminal = new Terminal(t, ['sh', '-c', start, program], { env: home(t) });
    await terminal.until(prompting, 'it prompts');
    const [device] = /\/dev\/\S+/.exec(terminal.seen);
    terminal.type('a'.repeat(typed - 1));
    terminal.type('b');
    await terminal.until((text) => text.includes('b'), 'the line stands there');
    const from = terminal.seen.length;
    execFileSync('stty', ['-F', device, ...size.split(' ')]);
    await terminal.until((text) => text.includes('b'), 'the line is shown again', { from });
    terminal.type('c\x15\x04');
    assert.equal(await terminal.exit_code(), 0);
  }
});

test('the flags in the documentation of settings are those of the program', async () => {
  const example = await run_program(['serve', '--example-config']);
  assert.equal(example.code, 0);
  assert.match(example.stdout, /\[streams\]/);
  const printed = await run_program([
    'serve',
    '--print-config',
    '--port',
    '1234',
    '--api-key',
    'alice=alice-key-0123456789',
  ]);
  assert.equal(printed.code, 0);
  assert.match(printed.stdout, /1234/);
  assert.ok(!printed.stdout.includes('alice-key-0123456789'), 'keys are not shown');
});

test('chat starts a server of its own wherever the settings would have it listen', async (t) => {
  const env = home(t);
  for (const place of [{ SLUICE_STDIO: 'true' }, { SLUICE_UNIX: '/nowhere/sluice.sock' }]) {
    const outcome = await run_program(
      ['chat', '--quiet', '--engine', 'synthetic', '--param', 'count=1', 'Hello'],
      { env: { ...env, ...place } },
    );
    assert.equal(outcome.code, 0, outcome.stderr);
    assert.match(outcome.stdout, /"n":0/);
  }
});

test('--log-level debug logs each request without what may be secret, and nothing of llama.cpp', async (t) => {
  const server = await start_server(t, [
    ...['--engine', 'llama', '--log-level', 'debug', '--api-key', 'alice=alice-key-0123456789'],
  ]);
  const reply = await server.request({
    method: 'POST',
    path: '/mcp',
    headers: { authorization: 'Bearer alice-key-0123456789' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'run',
      params: { prompt: 'Hello, my password is opensesame' },
    }),
  });
  assert.equal(reply.status, 200);
  await until(() => server.output.includes('method=run'), 'the request is logged');
  assert.match(
    server.output,
    / debug request method=run name=- client=key:alice ms=[\d.]+ outcome=answered left_out=0\n/,
  );
  assert.doesNotMatch(server.output, /opensesame|alice-key|source=llama\.cpp/);
});

test('serve --listen HOST:PORT, several times', async (t) => {
  const places = ['--listen', '127.0.0.1:0', '--listen', 'localhost:0'];
  const child = spawn(program, ['serve', '--engine', 'synthetic', ...places], {
    env: clean_environment(),
  });
  t.after(() => child.kill('SIGKILL'));
  const [text] = await once(child.stdout.setEncoding('utf8'), 'data');
  const urls = [...text.matchAll(/^MCP +(http:\/\/\S+:[1-9]\d*)\/mcp$/gm)].map(([, url]) => url);
  assert.deepEqual(
    urls.map((url) => new URL(url).hostname),
    ['127.0.0.1', 'localhost'],
  );
  for (const url of urls) {
    const outcome = await run_program(['chat', '--quiet', '--url', url, 'Hello']);
    assert.equal(outcome.code, 0, outcome.stderr);
  }
  const taken = new URL(urls[0]).host;
  const second = await run_program(
    ['serve', '--engine', 'synthetic', '--listen', '127.0.0.1:0', '--listen', taken],
    { env: clean_environment() },
  );
  assert.equal(second.code, 1);
  assert.match(second.stderr, new RegExp(`Cannot listen on ${taken}: the port is taken`));
});

test('a terminal sees how far loading the model is, and then no more', async (t) => {
  const chat = [program, 'chat', ...model_flags(model_file(t)), 'Hello'];
  const seen = await new Terminal(t, chat, { env: home(t) }).until(
    (text) => text.includes('tokens/s'),
    'it answers',
  );
  // A small model may be there before the first look at it.
  const shown = seen.match(/loading the model, \d+ %/g) ?? [];
  const erased = seen.match(/loading the model, \d+ %\x1b\[\?7h\r\r\x1b\[K/g) ?? [];
  assert.equal(erased.length, shown.length);
});

test('the number of a standard stream that is closed goes to nothing else', async (t) => {
  const child = spawn('/bin/sh', [
    '-c',
    'exec "$0" serve --engine synthetic --port 0 <&- 2>&-',
    program,
  ]);
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  for (const number of [0, 2]) {
    assert.equal(readlinkSync(`/proc/${child.pid}/fd/${number}`), '/dev/null');
  }
});

test('a message of the server is one line', async (t) => {
  const server = createServer((request, response) => {
    const error = { code: -1, message: 'no\nsluice: all is well' };
    response.writeHead(400, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }));
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  const outcome = await run_program(['chat', '--url', url, 'Hello']);
  assert.equal(outcome.code, 1);
  assert.equal(outcome.stderr, 'sluice: no sluice: all is well\n');
});
