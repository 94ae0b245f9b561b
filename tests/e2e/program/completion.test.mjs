// What shells offer while a command for an MCP server is typed: names of servers, and what a server has.

import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { everything, program, run_program, start_everything, until } from '../lib/server.mjs';

function folder_of(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-completion-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// What bash puts in the place of the last word of `line`; bash splits words at "=", ":" and "@" too.
async function offered(line, options = {}) {
  const script =
    'source <("$0" completion bash); COMP_LINE=$1; shift; COMP_POINT=${#COMP_LINE}; COMP_WORDS=("$@");' +
    ' COMP_CWORD=$(($# - 1)); _sluice "$0"; printf "%s\\n" "${COMPREPLY[@]}"';
  const words = line
    .split(/ +/)
    .flatMap((word) => word.split(/([=:@]+)/).filter((part, i, all) => part || all.length === 1));
  const outcome = await run_program(['--norc', '-c', script, program, line, ...words], {
    command: '/bin/bash',
    ...options,
  });
  assert.equal(outcome.stderr, '');
  return outcome.stdout.trim().split('\n');
}

test('tools, their arguments and the values of these', async (t) => {
  const { mcp_url: url } = await start_everything(t);
  assert.deepEqual(await offered(`sluice call ${url} gree`), ['greet']);
  assert.ok((await offered(`sluice call ${url} `)).includes('count'));
  assert.deepEqual(await offered(`sluice call ${url} greet `), ['name=']);
  assert.deepEqual(await offered(`sluice call --json ${url} greet na`), ['name=']);
  assert.deepEqual(await offered(`sluice call ${url} greet name=a `), ['']);
  const schema = `sluice call ${url} json_schema_2020_12_tool contactMethod=`;
  assert.deepEqual(await offered(schema), ['phone', 'email']);
  assert.deepEqual(await offered(`${schema}ph`), ['phone']);
  assert.deepEqual(await offered(`sluice call ${url} --revi`), ['--revision']);
});

test('resources, prompts and what the server suggests for an argument', async (t) => {
  const { mcp_url: url } = await start_everything(t);
  assert.deepEqual(await offered(`sluice read ${url} test://static-te`), ['//static-text']);
  assert.deepEqual(await offered(`sluice prompt ${url} test_prompt_with_ar`), [
    'test_prompt_with_arguments',
  ]);
  const prompt = `sluice prompt ${url} test_prompt_with_arguments `;
  assert.deepEqual(await offered(prompt), ['arg1=', 'arg2=']);
  assert.deepEqual(await offered(`${prompt}arg2=x arg1=p`), ['pparis', 'ppark']);
});

test('names of configuration files; a project is not trusted with more', async (t) => {
  const home = folder_of(t);
  const project = path.join(home, 'project');
  const made = path.join(home, 'made');
  mkdirSync(path.join(home, '.config/sluice'), { recursive: true });
  mkdirSync(project);
  const servers = (file, mcpServers) =>
    writeFileSync(path.join(home, file), JSON.stringify({ mcpServers }), { mode: 0o600 });
  servers('.config/sluice/servers.json', {
    local: { command: everything, args: ['--stdio'] },
  });
  servers('project/.mcp.json', { lure: { command: 'touch', args: [made] } });
  const options = { cwd: project, env: { HOME: home, XDG_CONFIG_HOME: path.join(home, '.config') } };
  assert.deepEqual(await offered('sluice call l', options), ['local', 'lure']);
  assert.deepEqual(await offered('sluice call local gree', options), ['greet']);
  assert.deepEqual(await offered('sluice call lure ', options), ['']);
  assert.deepEqual(await offered(`sluice call -- touch ${made} `, options), ['']);
  assert.ok(!existsSync(made));
});

test('sessions, and what their servers have', async (t) => {
  const options = { env: {} };
  t.after(() => run_program(['session', 'stop', '--all'], options)); // before its folder goes
  options.env.XDG_RUNTIME_DIR = folder_of(t);
  const start = ['session', 'start', '--name', 'open', '--', everything, '--stdio'];
  const begun = await run_program(start, options);
  assert.equal(begun.code, 0, begun.stderr);
  assert.deepEqual(await offered('sluice call @', options), ['open']);
  assert.deepEqual(await offered('sluice call @o', options), ['open']);
  assert.deepEqual(await offered('sluice call @open gree', options), ['greet']);
});

test('a server that is silent, or not there, holds nobody up', async (t) => {
  const sockets = new Set();
  const silent = net.createServer((socket) => sockets.add(socket.on('error', () => {})));
  await new Promise((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const url = `http://127.0.0.1:${silent.address().port}/mcp`;
  const begin = performance.now();
  assert.deepEqual(await offered(`sluice call ${url} `), ['']);
  // As long as the connection itself may take, without a limit, is 30 s.
  assert.ok(performance.now() - begin < 15_000);
  assert.deepEqual(await offered('sluice call unix:/nowhere/at/all '), ['']);
  for (const words of [[], ['call'], ['nothing', ''], ['call', 'no-such-name', '']]) {
    const outcome = await run_program(['__complete', ...words]);
    assert.deepEqual([outcome.code, outcome.stdout, outcome.stderr], [0, '', '']);
  }
});

test('a server that does not end by itself is ended, and holds nothing up', async (t) => {
  const home = folder_of(t);
  mkdirSync(path.join(home, 'sluice'));
  const mark = path.join(home, 'pid');
  const script = `trap "" TERM; echo $$ > ${mark}; while :; do sleep 1; done`;
  const mcpServers = { deaf: { command: 'bash', args: ['-c', script] } };
  writeFileSync(path.join(home, 'sluice', 'servers.json'), JSON.stringify({ mcpServers }), {
    mode: 0o600,
  });
  const outcome = await run_program(['-c', '"$0" __complete call deaf "" 2>/dev/null', program], {
    command: '/bin/bash',
    env: { XDG_CONFIG_HOME: home, HOME: home },
  });
  assert.deepEqual([outcome.code, outcome.stdout], [0, '']);
  const pid = readFileSync(mark, 'utf8').trim();
  await until(() => !existsSync(`/proc/${pid}`), 'the server has ended');
});
