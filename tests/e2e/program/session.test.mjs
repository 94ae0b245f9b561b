// sluice session: a connection that stays open between commands.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { block_at } from '../lib/documentation.mjs';
import { clean_environment, everything, program, root, run_program, until } from '../lib/server.mjs';

// What both kinds of servers below do. `next` counts, so that it shows whether a server is the same
// as before; `whoami` is its process; `fail` fails.
const kAnswers = `
let count = 0;
const text = (said) => ({ content: [{ type: 'text', text: String(said) }] });
const tools = ['next', 'whoami', 'fail', 'hang'].map((name) => ({ name, inputSchema: { type: 'object' } }));
export function result_of({ method, params }) {
  if (method === 'initialize') {
    const { protocolVersion } = params;
    const serverInfo = { name: 'counter', version: '1' };
    return { protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === 'tools/list') return { tools };
  if (method !== 'tools/call') return undefined;
  if (params.name === 'fail') return { ...text('it failed'), isError: true };
  return text(params.name === 'next' ? ++count : process.pid);
}
`;
const kStdioServer = `
import { createInterface } from 'node:readline';
import { result_of } from './answers.mjs';
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined) return;
  if (message.params?.name === 'hang') return;
  const result = result_of(message);
  const error = { code: -32601, message: 'Method not found' };
  const { id } = message;
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
});
`;

// A folder for the sessions of a test, which ends them, and a server on standard streams.
function place_of(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-session-'));
  const env = { XDG_RUNTIME_DIR: folder };
  const run = (...words) => run_program(words, { env, cwd: folder });
  t.after(async () => {
    await run('session', 'stop', '--all');
    rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(path.join(folder, 'answers.mjs'), kAnswers);
  writeFileSync(path.join(folder, 'counter.mjs'), kStdioServer);
  const said = async (...words) => {
    const outcome = await run(...words);
    assert.equal(outcome.code, 0, outcome.stderr);
    return outcome.stdout;
  };
  const sessions = async () => JSON.parse(await said('session', 'list', '--json')).sessions;
  const files = () => readdirSync(path.join(folder, 'sluice/sessions'));
  const command = ['--', process.execPath, path.join(folder, 'counter.mjs')];
  return { folder, env, run, said, sessions, files, command };
}

const is_running = (pid) => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

test('a session keeps its server between calls; stop ends both', async (t) => {
  const { said, sessions, files, command } = place_of(t);
  const told = await said('session', 'start', ...command);
  assert.match(told, /^Session counter is connected to counter 1\n.*sluice call @counter TOOL/);
  assert.equal(await said('call', '@counter', 'next'), '1\n');
  assert.equal(await said('call', '@counter', 'next'), '2\n');
  assert.match(await said('tools', '@counter'), /^next\(\)/);
  assert.match(await said('info', '@counter'), /^counter 1\n/);
  const pid = Number(await said('call', '@counter', 'whoami'));
  const [session, ...others] = await sessions();
  assert.deepEqual(others, []);
  const { name, server, target, since, socket } = session;
  assert.deepEqual([name, server], ['counter', 'counter 1']);
  assert.match(target, /^-- \/.*counter\.mjs$/);
  assert.ok(Date.now() - Date.parse(since) < 60_000, since);
  assert.ok(existsSync(socket));
  assert.match(await said('session', 'list'), /^@counter {2}counter 1\n.*process \d+\n$/);
  assert.ok(is_running(session.pid) && is_running(pid));
  assert.equal(await said('session', 'stop', 'counter'), 'Session counter has ended\n');
  assert.ok(!is_running(session.pid) && !is_running(pid));
  assert.deepEqual(files(), []);
});

test('a server of either era has one connection, whatever the clients speak', async (t) => {
  const { said, sessions } = place_of(t);
  for (const revision of ['2025-11-25', '2026-07-28']) {
    const start = ['session', 'start', '--name', 'all', '--revision', revision];
    await said(...start, '--', everything, '--stdio');
    for (const spoken of ['2025-11-25', '2026-07-28']) {
      const words = ['call', '@all', '--revision', spoken];
      assert.match(await said(...words, 'count', 'to=3'), /1\D+2\D+3\D/);
    }
    const [{ pid }] = await sessions();
    const threads = readdirSync(`/proc/${pid}/task`);
    const children = threads.map((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim(),
    );
    assert.equal(children.filter(Boolean).join(' ').split(' ').length, 1);
    await said('session', 'stop', '@all');
  }
});

test('the next session of a name is not harmed by one whose files were removed', async (t) => {
  const { folder, said, sessions, command } = place_of(t);
  await said('session', 'start', '--idle', '1', ...command);
  const [{ pid }] = await sessions();
  rmSync(path.join(folder, 'sluice'), { recursive: true });
  await said('session', 'start', ...command);
  await until(() => !is_running(pid), 'the first session ends');
  assert.equal(await said('call', '@counter', 'next'), '1\n');
});

test('a folder of sessions within one that others may write to is refused', async (t) => {
  const { folder, run, said, command } = place_of(t);
  await said('session', 'start', ...command);
  await said('session', 'stop', '--all');
  chmodSync(path.join(folder, 'sluice'), 0o777);
  const { code, stderr } = await run('session', 'start', ...command);
  chmodSync(path.join(folder, 'sluice'), 0o700);
  assert.equal(code, 1);
  assert.match(stderr, /sluice: others may write to it/);
});

test('a long refusal of the server is told, in part', async (t) => {
  const { folder, run } = place_of(t);
  const refuses = path.join(folder, 'refuses.mjs');
  writeFileSync(
    refuses,
    `process.stdin.once('data', () => {
      const error = { code: -32602, message: 'No! '.repeat(50_000) };
      console.log(JSON.stringify({ jsonrpc: '2.0', id: 1, error }));
    });`,
  );
  const words = ['session', 'start', '--revision', '2025-11-25', '--', process.execPath, refuses];
  const { code, stderr } = await run(...words);
  assert.equal(code, 1);
  assert.match(stderr, /No! No! /);
});

test('the timeout of a configuration file counts in a session', async (t) => {
  const { folder, run, said, command } = place_of(t);
  const [, program_, ...arguments_] = command;
  const slow = { command: program_, args: arguments_, timeout: 500 };
  writeFileSync(path.join(folder, '.mcp.json'), JSON.stringify({ mcpServers: { slow } }));
  await said('session', 'start', 'slow');
  const { code, stderr } = await run('call', '@slow', 'hang');
  assert.equal(code, 1, stderr);
  assert.match(stderr, /silent too long/);
});

test('doctor names the server of a session instead of examining the session', async (t) => {
  const { run } = place_of(t);
  const { code, stderr } = await run('doctor', '@counter');
  assert.equal(code, 2);
  assert.match(stderr, /name its server/);
});

test('calls in parallel', async (t) => {
  const { said, command } = place_of(t);
  await said('session', 'start', ...command);
  const calls = Array.from({ length: 20 }, () => said('call', '@counter', 'next'));
  const numbers = (await Promise.all(calls)).map(Number).sort((a, b) => a - b);
  assert.deepEqual(
    numbers,
    calls.map((_, index) => index + 1),
  );
});

test('a name is of one session, and an unknown one is told which there are', async (t) => {
  const { run, said, command } = place_of(t);
  const unknown = await run('call', '@counter', 'next');
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /there is no session counter; begin one/);
  await said('session', 'start', ...command);
  const again = await run('session', 'start', ...command);
  assert.equal(again.code, 2);
  assert.match(again.stderr, /there is a session counter already: use it as @counter/);
  await said('session', 'start', '--name', 'second', ...command);
  const other = await run('call', '@third', 'next');
  assert.equal(other.code, 2);
  assert.match(other.stderr, /there are @counter, @second;/);
  assert.equal(await said('call', '@second', 'next'), '1\n');
  const offered = await said('__complete', 'call', '@s');
  assert.match(offered, /^@second\tsession, -- .*\n$/);
  assert.match(await said('__complete', 'call', '@second', 'wh'), /^whoami\t/);
  const ended = await said('session', 'stop', '--all');
  assert.equal(ended, 'Session counter has ended\nSession second has ended\n');
});

// An MCP server over HTTP that can refuse whoever asks.
async function start_http_server(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-session-http-'));
  writeFileSync(path.join(folder, 'answers.mjs'), kAnswers);
  const { result_of } = await import(path.join(folder, 'answers.mjs'));
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (server.refuses) return response.writeHead(401).end();
    if (request.method !== 'POST') return response.writeHead(405).end();
    const message = JSON.parse(body);
    if (message.id === undefined) return response.writeHead(202).end();
    const result = result_of(message);
    const error = { code: -32601, message: 'Method not found' };
    const { id } = message;
    response.writeHead(200, { 'Content-Type': 'application/json' });
    return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.url = `http://127.0.0.1:${server.address().port}/mcp`;
  server.end = () => {
    server.close();
    server.closeAllConnections();
  };
  t.after(() => {
    server.end();
    rmSync(folder, { recursive: true, force: true });
  });
  return server;
}

test('exit codes are those of the server', async (t) => {
  const { run, said } = place_of(t);
  const server = await start_http_server(t);
  await said('session', 'start', '--name', 'web', server.url);
  assert.equal(await said('call', '@web', 'next'), '1\n');
  const failed = await run('call', '@web', 'fail');
  assert.deepEqual([failed.code, failed.stderr], [5, 'it failed\n']);
  const mistaken = await run('call', '@web', 'nex');
  assert.equal(mistaken.code, 2, mistaken.stderr);
  server.refuses = true;
  const refused = await run('call', '@web', 'next');
  assert.equal(refused.code, 3, refused.stderr);
  server.refuses = false;
  assert.equal(await said('call', '@web', 'next'), '2\n');
  server.end();
  const gone = await run('call', '@web', 'next');
  assert.equal(gone.code, 4, gone.stderr);
});

test('a session that cannot be connected says why, and leaves its name', async (t) => {
  const { folder, run, sessions, files, command } = place_of(t);
  const server = await start_http_server(t);
  server.refuses = true;
  const dies = ['--', process.execPath, '-e', 'console.error("no key"); process.exit(3)'];
  for (const [words, code, message] of [
    [[server.url], 3, /asks for authorization: run `sluice login/],
    [['unix:/no/such/socket'], 4, /No such file/],
    [['--', 'no-such-program-here'], 4, /no program "no-such-program-here"/],
    [dies, 4, /ended with code 3; its log is /],
    [['nobody-knows-me'], 2, /there is no server nobody-knows-me/],
    [['--name', 'a/b', ...command], 2, /is no name of a session/],
    [['--idle', '0', ...command], 2, /--idle/],
    [['-H', 'A: b', ...command], 2, /a command has no HTTP headers/],
    [[], 2, /give a target/],
  ]) {
    const name = words.includes('--name') ? [] : ['--name', 'one'];
    const outcome = await run('session', 'start', ...name, ...words);
    assert.equal(outcome.code, code, outcome.stderr);
    assert.match(outcome.stderr, message);
    assert.equal(outcome.stdout, '');
  }
  assert.deepEqual(await sessions(), []);
  assert.deepEqual(files(), ['one.log']);
  const log = readFileSync(path.join(folder, 'sluice/sessions/one.log'), 'utf8');
  assert.match(log, /^no key$/m);
  const whole = await run('session', 'start', '--name', 'one', ...command);
  assert.equal(whole.code, 0, whole.stderr);
});

test('what is left of a killed session is cleaned up, and its server ends', async (t) => {
  const { run, said, sessions, files, command } = place_of(t);
  await said('session', 'start', ...command);
  const server = Number(await said('call', '@counter', 'whoami'));
  const [{ pid }] = await sessions();
  process.kill(pid, 'SIGKILL');
  await until(() => !is_running(pid), 'the session is dead');
  const gone = await run('call', '@counter', 'next');
  assert.equal(gone.code, 2);
  assert.match(gone.stderr, /no session counter; the log of the last one is .*counter\.log/);
  assert.deepEqual(files(), ['counter.log']);
  await until(() => !is_running(server), 'the server ends');
  await said('session', 'start', ...command);
  assert.equal(await said('call', '@counter', 'next'), '1\n');
});

test('the process of a session that runs elsewhere is not taken for one of this machine', async (t) => {
  const { folder, run, said, command } = place_of(t);
  await said('session', 'start', ...command);
  const file = path.join(folder, 'sluice/sessions/counter.json');
  const own = readFileSync(file, 'utf8');
  assert.match(own, /pid:\[\d+\]/);
  writeFileSync(file, own.replace(/pid:\[\d+\]/, 'pid:[1]'));
  const refused = await run('session', 'stop', 'counter');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /counter runs in another container or on another machine/);
  assert.equal(await said('call', '@counter', 'next'), '1\n');
  writeFileSync(file, own);
  await said('session', 'stop', 'counter');
});

test('a session that was begun without /proc may run anywhere', async (t) => {
  const { folder, env, run, command } = place_of(t);
  const here = ['unshare', '-Urm', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
  const run_without = (...words) =>
    spawnSync(here[0], [...here.slice(1), ...words], { cwd: folder, env: clean_environment(env) });
  if (run_without('true').status !== 0) return t.skip('/proc cannot be covered here');
  assert.equal(run_without(program, 'session', 'start', ...command).status, 0);
  const { pid } = JSON.parse(readFileSync(path.join(folder, 'sluice/sessions/counter.json'), 'utf8'));
  t.after(() => process.kill(pid));
  const refused = await run('session', 'stop', 'counter');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /counter runs in another container or on another machine/);
  assert.ok(existsSync(`/proc/${pid}`));
});

test('a server that dies is started anew by the next call', async (t) => {
  const { said, command } = place_of(t);
  await said('session', 'start', ...command);
  const server = Number(await said('call', '@counter', 'whoami'));
  process.kill(server, 'SIGKILL');
  // A call before the session knows of it is sent to the dead server, and fails.
  await until(() => !existsSync(`/proc/${server}`), 'the session knows that the server is dead');
  assert.equal(await said('call', '@counter', 'next'), '1\n');
});

test('nothing of who begins a session stays open in it', async (t) => {
  const { folder, env, command } = place_of(t);
  const child = spawn(program, ['session', 'start', ...command], {
    cwd: folder,
    env: clean_environment(env),
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  for (const stream of child.stdio.slice(1)) stream.resume();
  // Which comes when all of its pipes have ended.
  assert.deepEqual(await once(child, 'close'), [0, null]);
});

test('a session that nobody uses ends', async (t) => {
  const { said, sessions, files, command } = place_of(t);
  await said('session', 'start', '--idle', '0.2', ...command);
  await until(async () => (await sessions()).length === 0, 'the session has ended');
  assert.deepEqual(files(), []);
});

test('Ctrl-C while a server is connected ends the session', async (t) => {
  const { folder, env, sessions } = place_of(t);
  const silent = ['--', process.execPath, '-e', 'process.stdin.resume(); console.error("up")'];
  const child = spawn(program, ['session', 'start', '--name', 'mute', ...silent], {
    cwd: folder,
    env: clean_environment(env),
    stdio: 'ignore',
  });
  t.after(() => child.kill('SIGKILL'));
  const log = path.join(folder, 'sluice/sessions/mute.log');
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('up'), 'it has begun');
  const [{ pid, server }] = await sessions();
  assert.equal(server, '');
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  assert.deepEqual(await ended, [130, null]);
  await until(() => !is_running(pid), 'the session ends too');
  assert.deepEqual(await sessions(), []);
});

test('Ctrl-C gives the name back at once, however long the server takes to end', async (t) => {
  const { folder, env, run, said, sessions, command } = place_of(t);
  const stubborn =
    'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.error("up")';
  const words = ['session', 'start', '--name', 'one'];
  const child = spawn(program, [...words, '--', process.execPath, '-e', stubborn], {
    cwd: folder,
    env: clean_environment(env),
    stdio: 'ignore',
  });
  t.after(() => child.kill('SIGKILL'));
  const log = path.join(folder, 'sluice/sessions/one.log');
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('up'), 'it has begun');
  const [{ pid }] = await sessions();
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  assert.deepEqual(await ended, [130, null]);
  const next = await run(...words, ...command);
  assert.equal(next.code, 0, next.stderr);
  await until(() => !is_running(pid), 'the first one ends');
  assert.equal(await said('call', '@one', 'next'), '1\n');
});

test('start prints the session as JSON, as list has it', async (t) => {
  const { said, sessions, command } = place_of(t);
  const started = JSON.parse(await said('session', 'start', '--json', ...command));
  assert.deepEqual([started], await sessions());
  assert.equal(started.name, 'counter');
});

test('wrong words end with 2 and say what to give', async (t) => {
  const { run } = place_of(t);
  for (const [words, message] of [
    [[], /say what to do: start, list or stop/],
    [['strat'], /did you mean start\?/],
    [['start', 'unix:/a', 'unix:/b'], /no use for "unix:\/b"/],
    [['list', 'x'], /no use for "x"/],
    [['list', '--', 'x'], /list does not take -- COMMAND/],
    [['list', '--all', '--idle', '5'], /list does not take --idle, --all;/],
    [['start', '--all', 'unix:/a'], /start does not take --all/],
    [
      ['stop', 'x', '--json', '--name', 'y', '-H', 'A: b', '--revision', '2025-11-25'],
      /stop does not take --name, --header, --revision, --json/,
    ],
    [['stop'], /the name of a session, or --all/],
    [['stop', 'x', '--all'], /the name of a session, or --all/],
    [['stop', 'x'], /there is no session x/],
  ]) {
    const outcome = await run('session', ...words);
    assert.equal(outcome.code, 2, outcome.stderr);
    assert.match(outcome.stderr, message);
  }
});

test('the measurement in the documentation runs, and prints what is shown but for the times', async () => {
  const [first, first_line, second, second_line] = block_at('docs/cli.md', 'console', 6).split('\n');
  const form = (line) => line.trim().replaceAll(/\d+\.\d/g, 'N');
  for (const [command, line] of [
    [first, first_line],
    [second, second_line],
  ]) {
    const words = command.replace('build/release/bin/sluice-everything', everything).split(' ');
    assert.deepEqual(words.splice(0, 2), ['$', 'bench/session']);
    const outcome = await run_program(['--rounds', '2', ...words], {
      command: path.join(root, 'bench/session'),
      env: { SLUICE_BIN: program },
    });
    assert.equal(outcome.code, 0, outcome.stderr);
    assert.equal(form(outcome.stdout), form(line));
  }
});
