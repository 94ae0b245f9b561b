// Every block of code in the documentation is executed, or says why it is not
// (lib/documentation.mjs).

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { start_notes_server } from '../fixtures/notes_server.mjs';
import { block_at, blocks, pages } from '../lib/documentation.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { clean_environment, program, root, run_program, start_server } from '../lib/server.mjs';

const kModel = path.join(root, 'models/sluice-tiny.gguf');

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-docs-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const server = await start_server({ after }, ['--engine', 'llama']);
const client = new HttpClient(server);
const here = (text) => text.replaceAll('127.0.0.1:8080', `127.0.0.1:${server.port}`);

// The blocks that a test of this file has executed.
const executed = new Set();
function take(page, language, number) {
  executed.add(`${page} ${language} ${number}`);
  return block_at(page, language, number);
}

function write(name, text) {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

async function run_script(name, text, flags = []) {
  const outcome = await run_program([...flags, write(name, here(text))], {
    command: process.execPath,
    deadline: 60_000,
  });
  assert.equal(outcome.code, 0, outcome.stderr);
  return outcome.stdout;
}

// Runs the commands after "$ " in a shell, in a folder with model.gguf. Returns what they print, with
// the address of a server that they start as in the documentation.
function run_commands(text, { until, before = '' } = {}) {
  if (!existsSync(path.join(folder, 'model.gguf'))) {
    symlinkSync(kModel, path.join(folder, 'model.gguf'));
  }
  const commands = text
    .split('\n')
    .filter((line) => line.startsWith('$ '))
    .map((line) => line.slice(2));
  return new Promise((resolve, reject) => {
    const bin = path.dirname(program);
    const child = spawn('/bin/bash', ['-c', `${before}\n${here(commands.join('\n'))}`], {
      cwd: folder,
      env: clean_environment({ PATH: `${bin}:${process.env.PATH}`, SLUICE_PORT: '0' }),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let printed = '';
    let errors = '';
    const late = setTimeout(() => end(new Error(`${text}\n${printed}\n${errors}`)), 60_000);
    const end = (failure) => {
      clearTimeout(late);
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // All of it has ended.
      }
      if (failure) reject(failure);
      else resolve(printed.replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:8080'));
    };
    child.stderr.setEncoding('utf8').on('data', (more) => {
      errors += more;
    });
    child.stdout.setEncoding('utf8').on('data', (more) => {
      printed += more;
      if (until && printed.includes(until)) end();
    });
    child.once('close', (code) => end(code === 0 ? undefined : new Error(`${code}: ${errors}`)));
  });
}

const output_of = (text) =>
  text
    .split('\n')
    .filter((line) => !line.startsWith('$ '))
    .join('\n');

// The names of the members, and the types of the values, in all depths.
const shape = (value) =>
  Array.isArray(value)
    ? value.map(shape)
    : value !== null && typeof value === 'object'
      ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shape(member)]))
      : typeof value;

test('README: scripts/run answers as is shown', async () => {
  const shown = take('README.md', 'console', 1);
  const printed = await run_commands(shown.replace('scripts/run', `'${root}/scripts/run'`));
  const [answer] = /^Hello!.*$/m.exec(output_of(shown));
  assert.equal(printed, `${answer}\n`);
});

test('README: serve prints what is shown', async () => {
  const shown = take('README.md', 'console', 3);
  const printed = await run_commands(
    shown.replace('build/release/bin/sluice', 'sluice'),
    { until: 'model    ' },
  );
  assert.equal(printed, output_of(shown));
});

test('README: the tokens are read by polling, by push and as events', async () => {
  const kAnswer = /^Hello! I am a tiny built-in model\./;
  assert.match(await run_script('poll.mjs', take('README.md', 'js', 1)), kAnswer);
  assert.match(await run_script('push.mjs', take('README.md', 'js', 2)), kAnswer);
  const { stream_id } = await client.call('run', { prompt: 'Hello', stream: true });
  const page = `const document = {body: {append: (text) => process.stdout.write(text)}};
const stream_id = '${stream_id}';\n`;
  const events = page + take('README.md', 'js', 3);
  assert.match(await run_script('events.mjs', events, ['--experimental-eventsource']), kAnswer);
});

test('the command line: a pipe, and a list of places', async () => {
  const before = 'git() { echo "+ a line"; }';
  assert.notEqual(await run_commands(take('docs/command-line.md', 'console', 1), { before }), '');
  const file = write('places.toml', take('docs/command-line.md', 'toml', 1));
  const printed = await run_program(['serve', '--config', file, '--print-config']);
  assert.match(printed.stdout, /^listen = \["127\.0\.0\.1:9000", "\[::1\]:9000"\]/);
});

test('names of servers: what the commands print, and our own file', async () => {
  const shown = take('docs/cli.md', 'console', 1);
  const home = mkdtempSync(path.join(folder, 'home-'));
  const before = `export HOME='${home}' XDG_CONFIG_HOME='${home}/.config'; cd "$HOME"`;
  assert.equal(await run_commands(shown, { before }), output_of(shown));
  mkdirSync(path.join(home, '.config/sluice'), { recursive: true });
  const own = take('docs/cli.md', 'json', 1);
  writeFileSync(path.join(home, '.config/sluice/servers.json'), own, { mode: 0o600 });
  const listed = await run_commands('$ sluice servers --json', { before });
  const { servers, warnings } = JSON.parse(listed);
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    servers.map(({ name, application, refusal }) => ({ name, application, refusal })),
    Object.keys(JSON.parse(own).mcpServers).map((name) => ({
      name,
      application: 'sluice',
      refusal: undefined,
    })),
  );
});

// A home in which `notes` is a server, and `npx` starts another one.
async function home_with_notes(t) {
  const url = await start_notes_server(t);
  const home = mkdtempSync(path.join(folder, 'home-'));
  mkdirSync(path.join(home, '.config/sluice'), { recursive: true });
  const servers = path.join(home, '.config/sluice/servers.json');
  writeFileSync(servers, JSON.stringify({ mcpServers: { notes: { url } } }), { mode: 0o600 });
  const script = path.join(root, 'tests/e2e/fixtures/notes_server.mjs');
  const npx = `#!/bin/sh\nexec '${process.execPath}' '${script}'\n`;
  mkdirSync(path.join(home, 'bin'));
  writeFileSync(path.join(home, 'bin/npx'), npx, { mode: 0o755 });
  return [
    `export HOME='${home}' XDG_CONFIG_HOME='${home}/.config' XDG_RUNTIME_DIR='${home}'`,
    `export PATH='${home}/bin':"$PATH"; cd "$HOME"`,
  ].join('\n');
}

test('calling a server, and its tasks: what the commands print', async (t) => {
  const before = await home_with_notes(t);
  for (const number of [2, 4]) {
    const shown = take('docs/cli.md', 'console', number);
    assert.equal(await run_commands(shown, { before }), output_of(shown));
  }
});

test('sessions: what the commands print', async (t) => {
  const before = await home_with_notes(t);
  const shown = take('docs/cli.md', 'console', 5);
  const of_this_run = (text) =>
    text.replace(/since [-\dT:.]+Z/, 'since then').replace(/process \d+/, 'process 1');
  const printed = await run_commands(shown, { before });
  assert.equal(of_this_run(printed), of_this_run(output_of(shown)));
});

test('behind a proxy: doctor names it', async (t) => {
  const proxy = createServer((request, response) => response.writeHead(502).end());
  proxy.on('connect', (request, socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
  t.after(() => proxy.close());
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const place = `127.0.0.1:${proxy.address().port}`;
  const shown = take('docs/cli.md', 'console', 3);
  const printed = await run_commands(shown.replaceAll('cache.example:3128', place));
  assert.equal(printed, output_of(shown).replace('cache.example:3128', '127.0.0.1:8080'));
});

test('the stream methods: requests, and the forms of their results', async () => {
  const json = (number) => JSON.parse(take('docs/streaming.md', 'json', number));
  const started = json(1);
  const begun = await client.call(started.method, started.params);
  assert.deepEqual(shape(begun), shape(json(2)));
  const poll = json(3);
  const reply = await client.call(poll.method, { ...poll.params, stream_id: begun.stream_id });
  const shown = json(4);
  assert.deepEqual(Object.keys(reply).sort(), Object.keys(shown).sort());
  assert.deepEqual(shape(reply.chunks[0]), shape(shown.chunks[0]));

  const command = take('docs/streaming.md', 'console', 1);
  const events = await run_commands(command.replace('k3v9x0q2m7d1c5za', begun.stream_id));
  const [, first] = /^data: (.*)$/m.exec(events);
  assert.deepEqual(shape(JSON.parse(first)), shape(json(5)));
});

test('conversations: tools, calls, messages and the program', async () => {
  const json = (number) => JSON.parse(take('docs/conversations.md', 'json', number));
  const question = { role: 'user', content: 'What is the weather in Paris?' };
  const forms = [json(1), json(2)];
  const shown = json(3);
  const chunk = json(4);
  for (const tool of forms) {
    const params = { messages: [question], tools: [tool], temperature: 0 };
    const { timings, ...result } = await client.call('run', params);
    assert.deepEqual(result, { ...shown, usage: result.usage });
    assert.deepEqual(shape(result.usage), shape(shown.usage));
    const { stream_id } = await client.call('run', { ...params, stream: true });
    const polled = await client.call('run', { stream_id, from_seq: 0, wait_ms: 10_000 });
    assert.deepEqual(polled.chunks[0], chunk);
  }
  for (const asked of [json(5), json(6)]) {
    const messages = [question, asked, { role: 'tool', content: '{"temperature": 12}' }];
    const { text } = await client.call('run', { messages, tools: forms, temperature: 0 });
    assert.match(text, /12/);
  }
  const printed = await run_script('weather.mjs', take('docs/conversations.md', 'js', 1));
  assert.equal(printed, output_of(take('docs/conversations.md', 'console', 1)));
});

test('the transports: the configuration of a client, and a Unix socket', async () => {
  const { mcpServers } = JSON.parse(take('docs/transports.md', 'json', 1));
  const { command, args } = mcpServers.sluice;
  assert.equal(command, 'sluice');
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';
  const local = args.map((word) => word.replace('/models/model.gguf', kModel));
  const { stdout } = await run_program(local, { input: ping });
  assert.equal(stdout, '{"jsonrpc":"2.0","id":1,"result":{}}\n');

  const shown = take('docs/transports.md', 'console', 1);
  // nc is not there in CI. The socket may not be there yet.
  const nc = write(
    'nc.mjs',
    `import net from 'node:net';
const connect = () => {
  const socket = net.connect(process.argv[2]).on('error', () => setTimeout(connect, 10));
  socket.on('connect', () => process.stdin.pipe(socket).pipe(process.stdout));
};
connect();`,
  );
  const before = `unset SLUICE_PORT; nc() { '${process.execPath}' '${nc}' "$2"; }`;
  const socket = path.join(folder, 'sluice.sock');
  const printed = await run_commands(
    shown.replaceAll('/run/user/1000/sluice.sock', socket),
    { before, until: '"result"' },
  );
  const reply = /^\{.*\}$/m.exec(printed)?.[0];
  assert.equal(reply, output_of(shown).trim());
});

test('behind a proxy: the configuration of nginx for several servers', () => {
  // The first is used by nginx.test.mjs.
  const text = take('docs/behind-a-proxy.md', 'nginx', 2);
  const listening = text.replace('server {', `server { listen unix:${folder}/nginx.sock;`);
  const config = write('nginx.conf', `pid ${folder}/pid; events {} http { ${listening} }`);
  const checked = spawnSync('/usr/sbin/nginx', ['-t', '-p', folder, '-c', config, '-e', 'stderr']);
  assert.equal(checked.status, 0, String(checked.stderr));
});

test('the C++ compiles', () => {
  const fragments = path.join(root, 'tests/docs/fragments.cpp');
  const used = readFileSync(fragments, 'utf8');
  for (const { page, language, number, text, mark } of blocks) {
    if (language !== 'cpp' || mark) continue;
    const name = `${path.basename(page, '.md')}-${number}.inc`;
    assert.ok(used.includes(`#include "${name}"`), `tests/docs/fragments.cpp has no ${name}`);
    write(name, text);
    take(page, language, number);
  }
  const database = path.resolve(path.dirname(program), '../compile_commands.json');
  const commands = JSON.parse(readFileSync(database, 'utf8'));
  const { command, directory } = commands.find(({ file }) => file.endsWith('examples/testing.cpp'));
  const words = command.split(' ').filter((word) => word !== '');
  const compiler = words.findIndex((word) => word.includes('clang++'));
  const flags = words.slice(compiler + 1, words.indexOf('-o'));
  const compiled = spawnSync(
    words[compiler],
    [...flags, '-fsyntax-only', '-w', `-I${folder}`, fragments],
    { cwd: directory },
  );
  assert.equal(compiled.status, 0, String(compiled.stderr));
});

test('options in the text exist', async () => {
  const help = async (...words) => (await run_program([...words, '--help'])).stdout;
  const known = new Set(['--component']); // of CMake
  const commands = ['serve', 'proxy', 'session', 'chat', 'agent', 'bench', 'doctor', 'man', 'completion', 'version'].concat(
    'servers',
    'mcp',
    'login',
    'logout',
    ...['info', 'ping', 'tools', 'call', 'resources', 'read', 'prompts', 'prompt', 'complete', 'watch'],
    'tasks',
  );
  for (const text of await Promise.all([help(), ...commands.map((name) => help(name))])) {
    for (const [option] of text.matchAll(/--[a-z][a-z-]+/g)) known.add(option);
  }
  // These are about other programs as well.
  const others = ['HACKING.md', 'models/README.md', 'docs/performance.md'];
  const unknown = [];
  for (const [page, text] of pages) {
    if (others.includes(page)) continue;
    for (const [span] of text.matchAll(/`[^`\n]+`/g)) {
      const is_ours = /^`(?:sluice|--)/.test(span);
      for (const [option] of is_ours ? span.matchAll(/--[a-z][a-z-]+/g) : []) {
        if (!known.has(option)) unknown.push(`${page}: ${span}`);
      }
    }
  }
  assert.deepEqual(unknown, []);
});

test('each row of robustness.md names a test, and the tests exist', () => {
  const folders = ['src', 'tests/agent', 'tests/client', 'tests/e2e', 'tests/faults', 'tests/matrix'];
  const files = folders.flatMap((name) => {
    const place = path.join(root, name);
    const names = readdirSync(place, { recursive: true }).filter((file) => /\.(cpp|mjs)$/.test(file));
    return names.map((file) => readFileSync(path.join(place, file), 'utf8'));
  });
  const exists = (pattern) => files.some((text) => pattern.test(text));
  const text = pages.get('docs/robustness.md');
  const missing = [];
  const of_code = /`(\w+)\.(\w+)`/g;
  const of_program = /"([^"]+)"/g;
  for (const [name, suite, test_name] of text.matchAll(of_code)) {
    if (!exists(new RegExp(`^TEST\\w*\\(${suite},\\s*${test_name}\\)`, 'm'))) missing.push(name);
  }
  for (const [, title] of text.matchAll(of_program)) {
    if (!files.some((file) => file.includes(`test('${title}'`))) missing.push(title);
  }
  const rows = text.split('\n').filter((line) => /^\| (?!what goes wrong)/.test(line));
  assert.ok(rows.length > 0);
  for (const row of rows) {
    const shown_by = row.split(' | ').at(-1);
    if (![of_code, of_program].some((names) => shown_by.match(names))) missing.push(row);
  }
  assert.deepEqual(missing, []);
});

test('lines of text have at most 128 characters', () => {
  const long = [];
  for (const [page, text] of pages) {
    let is_code = false;
    for (const [index, line] of text.split('\n').entries()) {
      if (line.startsWith('```')) is_code = !is_code;
      const is_text = !is_code && !line.startsWith('|');
      if (is_text && [...line].length > 128) long.push(`${page}:${index + 1}`);
    }
  }
  assert.deepEqual(long, []);
});

// The last one: the others have noted what they executed.
test('every other block says why it is not executed', () => {
  const silent = [];
  for (const { page, line, language, number, mark } of blocks) {
    if (language === 'mermaid' || executed.has(`${page} ${language} ${number}`)) continue;
    const by = /^run by (\S+)$/.exec(mark ?? '')?.[1];
    const is_reason = /^not run: ./.test(mark ?? '');
    if (by ? !existsSync(path.join(root, by)) : !is_reason) silent.push(`${page}:${line}`);
  }
  assert.deepEqual(silent, []);
});
