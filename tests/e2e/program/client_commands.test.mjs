// The commands that talk to any MCP server: info, ping, tools, call, resources, read, prompts, prompt,
// complete, watch, tasks.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import {
  clean_environment,
  everything,
  program,
  run_program,
  start_everything,
  until,
} from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';

function folder_of(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-client-commands-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const kStdio = ['--', everything, '--stdio'];

async function json_of(words, options) {
  const outcome = await run_program([...words, '--json'], options);
  assert.equal(outcome.code, 0, outcome.stderr);
  return JSON.parse(outcome.stdout);
}

test('info and ping, over HTTP and to a command', async (t) => {
  const server = await start_everything(t);
  const { stdout } = await run_program(['info', server.mcp_url]);
  assert.match(stdout, /^sluice-everything 1\.0\nrevision {2}2026-07-28\noffers {4}.*tools/);
  assert.match(stdout, /A server for tests of clients/);
  const told = await json_of(['info', server.mcp_url, '--revision', '2025-11-25']);
  assert.equal(told.revision, '2025-11-25');
  assert.equal(told.server.serverInfo.name, 'sluice-everything');
  const pinged = await json_of(['ping', server.mcp_url]);
  assert.equal(typeof pinged.milliseconds, 'number');
  const started = await run_program(['ping', ...kStdio]);
  assert.match(started.stdout, /^The server answered in [\d.]+ ms\n$/);
});

test('tools have a line each, with a signature', async (t) => {
  const server = await start_everything(t);
  const { stdout } = await run_program(['tools', server.mcp_url]);
  assert.match(stdout, /^count\(.*\) {2}Counts aloud$/m);
  assert.match(stdout, /^test_simple_text\(\) {2}Returns text$/m);
  const { tools } = await json_of(['tools', server.mcp_url]);
  assert.ok(tools.some(({ name, inputSchema }) => name === 'count' && inputSchema));
});

test('call: text, and a tool at the end of a command or before it', async (t) => {
  const server = await start_everything(t);
  const said = 'This is a simple text response for testing.\n';
  for (const words of [
    ['call', server.mcp_url, 'test_simple_text'],
    ['call', ...kStdio, 'test_simple_text'],
    ['call', 'test_simple_text', ...kStdio],
  ]) {
    const outcome = await run_program(words);
    assert.deepEqual([outcome.code, outcome.stdout], [0, said], outcome.stderr);
  }
  const greeted = await run_program(['call', ...kStdio, 'greet', 'name=Ada Lovelace']);
  assert.equal(greeted.stdout, 'Hello, Ada Lovelace!\n', greeted.stderr);
  const piped = await run_program(['call', server.mcp_url, 'greet', '--arguments', '-'], {
    input: '{"name": "Mira"}',
  });
  assert.equal(piped.stdout, 'Hello, Mira!\n', piped.stderr);
  for (const words of [
    ['call', server.mcp_url, 'greet', '{"name": "Mira"}'],
    ['call', ...kStdio, 'greet', '{"name": "Mira"}'],
    ['call', server.mcp_url, 'greet', '-'],
  ]) {
    const outcome = await run_program(words, { input: '{"name": "Mira"}' });
    assert.equal(outcome.stdout, 'Hello, Mira!\n', outcome.stderr);
  }
  for (const words of [
    ['greet', '--json', 'name=Mira'],
    ['greet', '--json', '{"name": "Mira"}'],
    ['greet', '--json={"name": "Mira"}'],
    ['--json={"name": "Mira"}', 'greet'],
    ['greet', '--json=true', '{"name": "Mira"}'],
  ]) {
    const whole = await json_of(['call', server.mcp_url, ...words]);
    assert.equal(whole.content[0].text, 'Hello, Mira!');
  }
  const text = await run_program(['call', server.mcp_url, 'greet', '--json=false', 'name=Mira']);
  assert.equal(text.stdout, 'Hello, Mira!\n', text.stderr);
});

test('a program is seen to end also where SIGCHLD is ignored', async () => {
  const script = 'trap "" CHLD; exec "$0" "$@"';
  const said = await run_program(['-c', script, program, 'call', ...kStdio, 'greet', 'name=Ada'], {
    command: '/bin/sh',
  });
  assert.deepEqual([said.code, said.stdout], [0, 'Hello, Ada!\n'], said.stderr);
});

test('call: mistakes quote the schema and end with 2', async (t) => {
  const server = await start_everything(t);
  const mistakes = [
    [['greeet', 'name=a'], /no tool greeet; did you mean greet\?/],
    [['greet'], /give NAME=VALUE for: name \{.*"string"/],
    [['greet', 'nme=a'], /no argument nme; did you mean name\?; the schema says \{/],
    [['greet', 'a'], /"a" is no argument/],
    [['greet', '--arguments', '[]'], /give a JSON object/],
    [['greet', '{"name":'], /the arguments: /],
    [['greet', '{}', '{}'], /one JSON object/],
    [['greet', '{}', '--arguments', '{}'], /either/],
    [['greet', '{}', '--json={"name": "a"}'], /either/],
    [['greet', '--json=[]'], /give a JSON object/],
    [['greet', '--json={"name":'], /the arguments: /],
    [[], /give the name of a tool/],
  ];
  for (const [words, message] of mistakes) {
    const outcome = await run_program(['call', server.mcp_url, ...words]);
    assert.equal(outcome.code, 2, outcome.stderr);
    assert.match(outcome.stderr, message);
    assert.equal(outcome.stdout, '');
  }
});

test('call: a tool that fails ends with 5, an unreachable server with 4', async (t) => {
  const server = await start_everything(t);
  const failed = await run_program(['call', server.mcp_url, 'test_error_handling']);
  assert.deepEqual([failed.code, failed.stdout], [5, '']);
  assert.equal(failed.stderr, 'This tool intentionally returns an error for testing\n');
  const as_json = await run_program(['call', server.mcp_url, 'test_error_handling', '--json']);
  assert.equal(as_json.code, 5);
  assert.equal(JSON.parse(as_json.stdout).isError, true);
  await server.stop();
  for (const words of [[server.mcp_url], ['--', 'no-such-program-here']]) {
    const gone = await run_program(['ping', ...words]);
    assert.equal(gone.code, 4, gone.stderr);
  }
});

test('call: images and audio are saved, and replace nothing', async (t) => {
  const server = await start_everything(t);
  const folder = folder_of(t);
  const words = ['call', server.mcp_url, 'test_multiple_content_types', '--save', folder];
  for (const name of ['image.png', 'image-1.png']) {
    const outcome = await run_program(words);
    assert.equal(outcome.code, 0, outcome.stderr);
    assert.equal(outcome.stdout, 'Multiple content types test:\n{"test":"data","value":123}\n');
    assert.match(outcome.stderr, new RegExp(`^sluice: saved ${folder}/${name} \\(image/png, `));
  }
  assert.deepEqual(readdirSync(folder).sort(), ['image-1.png', 'image.png']);
  assert.equal(readFileSync(path.join(folder, 'image.png')).subarray(1, 4).toString(), 'PNG');

  const [{ data }] = (await json_of(['call', server.mcp_url, 'test_audio_content'])).content;
  for (const name of ['audio.wav', 'audio-1.wav']) {
    const words_of_audio = ['call', server.mcp_url, 'test_audio_content', '--save', folder];
    const { code, stdout, stderr } = await run_program(words_of_audio);
    assert.deepEqual([code, stdout], [0, ''], stderr);
    assert.match(stderr, new RegExp(`^sluice: saved ${folder}/${name} \\(audio/wav, `));
    assert.deepEqual(readFileSync(path.join(folder, name)), Buffer.from(data, 'base64'));
  }
});

test('call: a terminal that can shows images, and no pipe gets them', async (t) => {
  const server = await start_everything(t);
  const folder = folder_of(t);
  const words = ['call', server.mcp_url, 'test_image_content', '--save', folder];
  const kitty = { TERM: 'xterm-kitty' };
  const terminal = new Terminal(t, [program, ...words], { env: kitty });
  assert.equal(await terminal.exit_code(), 0);
  assert.match(terminal.seen, /\x1b_Ga=T,f=100,q=2,m=0;iVBORw0KGgo[\w+/=]+\x1b\\/);
  const hidden = new Terminal(t, [program, ...words, '--images', 'never'], { env: kitty });
  assert.equal(await hidden.exit_code(), 0);
  assert.ok(!hidden.seen.includes('\x1b_G'));
  const chosen = new Terminal(t, [program, ...words, '--images', 'iterm2']);
  assert.equal(await chosen.exit_code(), 0);
  assert.match(chosen.seen, /\x1b\]1337;File=inline=1;size=\d+:iVBORw0KGgo/);
  const piped = await run_program([...words, '--images', 'kitty'], { env: kitty });
  assert.equal(piped.stdout, '');
  assert.equal(readdirSync(folder).length, 4);
  const wrong = await run_program([...words, '--images', 'sixel']);
  assert.equal(wrong.code, 2, wrong.stderr);
});

test('call: output comes while the tool runs, and Ctrl-C cancels', async (t) => {
  const server = await start_everything(t);
  const counted = await run_program(['call', server.mcp_url, 'count', 'to=3']);
  assert.equal(counted.code, 0, counted.stderr);
  assert.match(counted.stdout, /1\D+2\D+3\D/);
  const child = spawn(program, ['call', server.mcp_url, 'slow_compute', 'seconds=60'], {
    env: clean_environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve([code, signal]));
  });
  child.kill('SIGINT');
  // Before it can take the signal, that itself ends it.
  const [code, signal] = await ended;
  assert.ok(code === 130 || signal === 'SIGINT', `${code} ${signal}`);
});

test('Ctrl-C while connecting ends a server that ignores the end of its input and SIGTERM', async (t) => {
  const script = 'trap "" TERM; echo $$ >&2; while :; do sleep 60; done';
  const child = spawn(program, ['ping', '--', 'sh', '-c', script], {
    env: clean_environment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  const [said] = await once(child.stderr, 'data');
  const server = Number(String(said));
  assert.ok(server > 1, String(said));
  child.kill('SIGINT');
  assert.equal(await ended, 130);
  assert.throws(() => process.kill(server, 0), { code: 'ESRCH' });
});

test('resources, prompts and completions', async (t) => {
  const server = await start_everything(t);
  const { resources, resourceTemplates } = await json_of(['resources', server.mcp_url]);
  assert.ok(resources.length > 0 && resourceTemplates.length > 0);
  const listed = await run_program(['resources', server.mcp_url]);
  assert.ok(listed.stdout.includes(resources[0].uri));
  const { contents } = await json_of(['read', server.mcp_url, 'test://static-text']);
  const read = await run_program(['read', server.mcp_url, 'test://static-text']);
  assert.equal(read.stdout, `${contents[0].text}\n`);
  const { prompts } = await json_of(['prompts', server.mcp_url]);
  assert.ok(prompts.some(({ name }) => name === 'test_simple_prompt'));
  const prompt = await run_program(['prompt', server.mcp_url, 'test_simple_prompt']);
  assert.match(prompt.stdout, /^user: ./);
  const refused = await run_program(['read', server.mcp_url, 'test://nothing']);
  assert.equal(refused.code, 1);
});

test('a Unix socket has HTTP too', async (t) => {
  const server = await start_everything(t);
  const socket = path.join(folder_of(t), 'proxy.sock');
  const proxy = net.createServer((peer) => {
    const upstream = net.connect(server.port, '127.0.0.1');
    for (const one of [peer, upstream]) one.on('error', () => {});
    peer.pipe(upstream).pipe(peer);
  });
  await new Promise((resolve) => {
    proxy.listen(socket, resolve);
  });
  t.after(() => proxy.close());
  const outcome = await run_program(['call', `http+unix:${socket}`, 'greet', 'name=Mira']);
  assert.equal(outcome.stdout, 'Hello, Mira!\n', outcome.stderr);
});

test('headers go to the server, and 401 ends with 3', async (t) => {
  const seen = [];
  const guard = http.createServer((request, response) => {
    seen.push(request.headers['x-key']);
    response.writeHead(401).end();
  });
  await new Promise((resolve) => {
    guard.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => guard.close());
  const url = `http://127.0.0.1:${guard.address().port}/mcp`;
  const outcome = await run_program(['ping', url, '-H', 'X-Key: abc']);
  assert.equal(outcome.code, 3, outcome.stderr);
  assert.equal(seen[0], 'abc');
  const wrong = await run_program(['ping', url, '-H', 'secret']);
  assert.equal(wrong.code, 2);
  assert.ok(!wrong.stderr.includes('secret'));
});

test('what a server refuses is no mistake of the user, who ends with 2', async (t) => {
  let answer = (response) => response.writeHead(400).end('no');
  const odd = http.createServer((_, response) => answer(response));
  await new Promise((resolve) => {
    odd.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => odd.close());
  const url = `http://127.0.0.1:${odd.address().port}/mcp`;
  const refused = await run_program(['ping', url]);
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, /HTTP 400/);
  answer = (response) =>
    response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":1,"error":{"code":2,"message":"no"}}');
  const coded = await run_program(['ping', url, '--revision', '2025-11-25']);
  assert.equal(coded.code, 1, coded.stderr);
  const wrong = await run_program(['ping', url, '-H', 'Content-Length: 5']);
  assert.equal(wrong.code, 2, wrong.stderr);
});

// A server of 2026-07-28 without sessions; `answer` makes the result of a request.
async function start_plain(t, answer) {
  const plain = http.createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method } = JSON.parse(body);
    const result = await answer(method, response);
    if (result === undefined) return;
    response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }));
  });
  await once(plain.listen(0, '127.0.0.1'), 'listening');
  t.after(() => plain.closeAllConnections());
  t.after(() => plain.close());
  return `http://127.0.0.1:${plain.address().port}/mcp`;
}
const kFresh = { ttlMs: 0, cacheScope: 'private' };
const kPlain = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ...kFresh };

test('where a server redirects is said without the key in its URL', async (t) => {
  const url = await start_plain(t, (_, response) => {
    response.writeHead(307, { Location: `${url}/?token=URLSECRET` }).end();
  });
  for (const command of ['tools', 'doctor']) {
    const { stdout, stderr } = await run_program([command, `${url}?token=URLSECRET`]);
    assert.match(stdout + stderr, /mcp\/\?token=\*\*\*/);
    assert.ok(!(stdout + stderr).includes('URLSECRET'), stdout + stderr);
  }
});

test('a list that does not end ends the command', async (t) => {
  let asked = 0;
  const url = await start_plain(t, (method) => {
    if (method === 'server/discover') return kPlain;
    return { tools: [], nextCursor: String(++asked), ...kFresh };
  });
  const endless = await run_program(['tools', url, '--timeout', '0']);
  assert.equal(endless.code, 1, endless.stderr);
  assert.match(endless.stderr, /more than .* 1000 pages/);
  assert.equal(asked, 1000);
});

test('all pages of a list share the timeout', async (t) => {
  let asked = 0;
  const url = await start_plain(t, async (method) => {
    if (method === 'server/discover') return kPlain;
    // Each page comes in time.
    await setTimeout(600);
    return { tools: [], nextCursor: String(++asked), ...kFresh };
  });
  const slow = await run_program(['call', url, 'tool', '--timeout', '2']);
  assert.match(slow.stderr, /pages, and they take longer than 2 s/);
  assert.ok(asked <= 4, `${asked} pages`);
});

test('a tool is called as soon as the page of the list has been read that has it', async (t) => {
  let asked = 0;
  const url = await start_plain(t, (method) => {
    if (method === 'server/discover') return kPlain;
    if (method === 'tools/call') return { content: [{ type: 'text', text: 'a\r\n\f\u001b[1mb' }] };
    const tools = ++asked === 2 ? [{ name: 'tool', inputSchema: { type: 'object' } }] : [];
    return { tools, nextCursor: String(asked), ...kFresh };
  });
  const called = await run_program(['call', url, 'tool']);
  assert.equal(called.stderr, '');
  assert.equal(called.stdout, 'a\r\n\f\u001b[1mb\n', 'a pipe gets the text as it is');
  assert.equal(asked, 2);
});

test('answers without what they must have are mistakes of the server, and said to be', async (t) => {
  const url = await start_plain(t, (method) => {
    if (method === 'server/discover') return kPlain;
    if (method === 'tools/list') {
      return { tools: [{ name: 'tool', inputSchema: { type: 'object' } }], ...kFresh };
    }
    if (method === 'tools/call') return { content: 'text' };
    return method === 'resources/read' ? { contents: 5, ...kFresh } : { messages: {} };
  });
  for (const words of [['call', url, 'tool'], ['read', url, 'x:y'], ['prompt', url, 'p']]) {
    const { code, stderr } = await run_program(words);
    assert.equal(code, 1, words[0]);
    assert.match(stderr, /the server's answer is wrong: \w+ must be an array/);
  }
});

test('watch prints changes until it is interrupted', async (t) => {
  const server = await start_everything(t);
  for (const revision of ['2025-11-25', '2026-07-28']) {
    const child = spawn(program, ['watch', server.mcp_url, '--revision', revision], {
      env: clean_environment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
    await until(async () => {
      await run_program(['call', server.mcp_url, 'test_trigger_tool_change']);
      return printed.includes('tools/list_changed');
    }, 'the change is told');
    const ended = new Promise((resolve) => {
      child.once('exit', resolve);
    });
    child.kill('SIGINT');
    assert.equal(await ended, 130);
  }
});

test('tasks are begun, listed, awaited and cancelled', async (t) => {
  const server = await start_everything(t);
  for (const revision of ['2025-11-25', '2026-07-28']) {
    const spoken = ['--revision', revision];
    const begin = async (...words) => {
      const begun = await run_program(['call', server.mcp_url, ...words, '--task', ...spoken]);
      assert.match(begun.stdout, /^[a-z0-9]{32}\n$/, begun.stderr);
      return begun.stdout.trim();
    };
    const tasks = (...words) => run_program(['tasks', server.mcp_url, ...words, ...spoken]);
    const id = await begin('slow_compute', 'seconds=0.2', 'label=it');
    const awaited = await tasks('--wait', id);
    assert.deepEqual([awaited.code, awaited.stdout], [0, 'Computed it\n'], awaited.stderr);
    const state = JSON.parse((await tasks('--get', id, '--json')).stdout);
    assert.deepEqual([state.taskId, state.status], [id, 'completed']);

    const failing = await tasks('--wait', await begin('failing_job'));
    assert.deepEqual([failing.code, failing.stderr], [5, 'The job failed\n']);

    const long = await begin('slow_compute', 'seconds=1000');
    const cancelled = await tasks('--cancel', long);
    assert.equal(cancelled.stdout.split('  ')[1].trim(), 'cancelled', cancelled.stderr);
    assert.equal((await tasks('--wait', long)).code, 1);

    const asking = await begin('confirm_delete', 'filename=notes');
    const terminal = new Terminal(t, [program, 'tasks', server.mcp_url, '--wait', asking, ...spoken]);
    await terminal.until((seen) => seen.includes('Delete notes?'), 'the task asks');
    const declined = await tasks('--get', 'x'.repeat(32));
    assert.equal(declined.code, 1);
  }
  const both = await run_program(['tasks', server.mcp_url, '--get', 'a', '--wait', 'b']);
  assert.equal(both.code, 2);
  const no_task = await run_program(['call', server.mcp_url, 'greet', 'name=Mira', '--task']);
  assert.equal(no_task.stdout, 'Hello, Mira!\n', no_task.stderr);
});

test('questions are asked on the terminal, and declined without one', async (t) => {
  const server = await start_everything(t);
  const words = ['call', server.mcp_url, 'test_input_required_result_elicitation'];
  const alone = await run_program(words);
  assert.equal(alone.stdout, 'You did not say.\n', alone.stderr);
  assert.match(alone.stderr, /declined, as there is no terminal/);
  const terminal = new Terminal(t, [program, ...words]);
  const shows = (text) => terminal.until((seen) => seen.includes(text), `it shows ${text}`);
  await shows('What is your name?');
  terminal.type('Mira\n');
  await shows('[yes or no]');
  terminal.type('yes\n');
  await shows('Hello, Mira!');
  assert.equal(await terminal.exit_code(), 0);
});

test('-v shows the traffic of HTTP and of a command, without secrets', async (t) => {
  const server = await start_everything(t);
  const words = ['call', server.mcp_url, 'greet', 'name=Mira', '-v'];
  for (const revision of ['2025-11-25', '2026-07-28']) {
    const shown = await run_program([
      ...words,
      ...['--revision', revision, '-H', 'Authorization: Bearer sesame', '-H', 'X-Api-Key: sesame'],
    ]);
    assert.equal(shown.stdout, 'Hello, Mira!\n', shown.stderr);
    assert.match(shown.stderr, /^\d+\.\d{3} s > http POST http:.*\/mcp {2}.*Authorization: \*\*\*;/m);
    assert.match(shown.stderr, /^\d+\.\d{3} s > http \{.*"tools\/call".*"name":"Mira"/m);
    assert.match(shown.stderr, /^\d+\.\d{3} s < http 200 {2}.*Content-Type: /m);
    assert.match(shown.stderr, /^\d+\.\d{3} s < http \{.*Hello, Mira!/m);
    assert.ok(!shown.stderr.includes('sesame'), shown.stderr);
  }
  const legacy = await run_program([...words, '--revision', '2025-11-25']);
  assert.match(legacy.stderr, /Mcp-Session-Id: [^ ;]{1,8}\.\.\.(;|$)/im);
  assert.doesNotMatch(legacy.stderr, /Mcp-Session-Id: [^ .;]{9}/i);
  const login = await run_program(['login', server.mcp_url, '-v']);
  assert.match(login.stderr, /> http GET http:.*\/\.well-known\/oauth-protected-resource/);
  const stdio = await run_program(['call', '-v', ...kStdio, 'greet', 'name=Mira']);
  assert.match(stdio.stderr, /^\d+\.\d{3} s > stdio \{"jsonrpc"/m);
  assert.equal(stdio.stdout, 'Hello, Mira!\n');
});

test('a server that asks a model gets its answer only if the user allows it', async (t) => {
  const server = await start_everything(t);
  const words = ['call', server.mcp_url, '--revision', '2025-11-25', 'test_sampling', 'prompt=Hello'];
  // Not even the capability is declared.
  const alone = await run_program(words);
  assert.notEqual(alone.code, 0);
  const allowed = await run_program([...words, '--sampling', 'allow']);
  assert.match(allowed.stdout, /^LLM response: Hello! I am /, allowed.stderr);
  assert.match(allowed.stderr, /^sluice: the server asks the tiny built-in model: Hello$/m);
  const shows = (terminal, text) => terminal.until((seen) => seen.includes(text), `it shows ${text}`);
  for (const [typed, answer] of [
    ['yes\n', 'LLM response: Hello! I am '],
    ['\n', 'User rejected sampling request'],
  ]) {
    const terminal = new Terminal(t, [program, ...words]);
    await shows(terminal, 'user: Hello');
    await shows(terminal, '[yes, no or always]');
    terminal.type(typed);
    await shows(terminal, answer);
    await terminal.exit_code();
  }
  const never = new Terminal(t, [program, ...words, '--sampling', 'never']);
  await never.exit_code();
  assert.ok(!never.seen.includes('always'));
  for (const [option, code] of [
    [['--sampling', 'perhaps'], 2],
    [['--sampling', 'allow', '--model', '/nowhere/model.gguf'], 1],
  ]) {
    const wrong = await run_program([...words, ...option]);
    assert.equal(wrong.code, code, wrong.stderr);
  }
});

test('exit codes: a revision that there is not, and a file of tokens that is refused', async (t) => {
  const server = await start_everything(t);
  const unknown = await run_program(['info', server.mcp_url, '--revision', 'bogus']);
  assert.equal(unknown.code, 2, unknown.stderr);
  assert.match(unknown.stderr, /--revision: give one of .*2025-11-25/);
  const file = path.join(folder_of(t), 'tokens.json');
  writeFileSync(file, '[]', { mode: 0o600 });
  const refused = await run_program(['info', server.mcp_url], { env: { SLUICE_TOKEN_FILE: file } });
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, /The token file .*tokens\.json: it is not a JSON object/);
});

test('call --json of a tool that has failed says so on standard error', async () => {
  const failed = await run_program(['call', '--json', ...kStdio, 'test_error_handling']);
  assert.equal(failed.code, 5, failed.stderr);
  assert.equal(JSON.parse(failed.stdout).isError, true);
  assert.equal(failed.stderr, 'sluice: the tool has failed\n');
});

test('a stream of a session that is never answered holds up nothing', async (t) => {
  const asked = [];
  const results = {
    initialize: { capabilities: { tools: {} }, serverInfo: { name: 'quiet', version: '1' } },
    'tools/list': { tools: [{ name: 'look', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'looked' }] },
  };
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const text of request) body += text;
    asked.push(request.method);
    if (request.method === 'GET') return; // for ever
    if (request.method === 'DELETE') return response.writeHead(204).end();
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    const result = results[method];
    if (method === 'initialize') result.protocolVersion = params.protocolVersion;
    const error = { code: -32601, message: 'Method not found' };
    const headers = { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'one' };
    response.writeHead(200, headers);
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  for (const words of [
    [url, 'look'],
    [url, 'look', '--revision', '2025-11-25'],
    ['look', '--', program, 'proxy', url],
  ]) {
    asked.length = 0;
    const begun = performance.now();
    const called = await run_program(['call', ...words]);
    assert.deepEqual([called.code, called.stdout], [0, 'looked\n'], called.stderr);
    assert.ok(performance.now() - begun < 10_000);
    assert.equal(asked.filter((method) => method === 'GET').length, 1, 'the stream was asked for');
    assert.equal(asked.at(-1), 'DELETE', 'the session was ended');
  }
});

// Forgets its first session once it has begun.
async function start_forgetful_server(t) {
  let sessions = 0;
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const { id, method, params } = JSON.parse(body);
      const answer = (status, rest) => {
        response.writeHead(status, {
          'content-type': 'application/json',
          'mcp-session-id': `session-${sessions}`,
        });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...rest }));
      };
      if (method === 'initialize') {
        ++sessions;
        const { protocolVersion } = params;
        const serverInfo = { name: 'forgetful', version: '1' };
        return answer(200, { result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
      }
      if (id === undefined) return response.writeHead(202).end();
      if (method !== 'tools/list') {
        return answer(400, { error: { code: -32601, message: 'Method not found' } });
      }
      if (request.headers['mcp-session-id'] === 'session-1') return response.writeHead(404).end();
      return answer(200, { result: { tools: [{ name: 'kept', inputSchema: { type: 'object' } }] } });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

test('a session that the server has forgotten is begun anew, and it is said what is lost', async (t) => {
  const outcome = await run_program(['tools', await start_forgetful_server(t)]);
  assert.equal(outcome.code, 0, outcome.stderr);
  assert.match(outcome.stdout, /kept/);
  assert.match(
    outcome.stderr,
    /the server had forgotten the session; in the new one, what calls have stored, subscriptions and the log level are lost\n/,
  );
});
