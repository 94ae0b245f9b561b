// sluice proxy: every transport on either side, several servers, children that die.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { block_at } from '../lib/documentation.mjs';
import {
  children_of,
  clean_environment,
  everything,
  program,
  run_program,
  start_everything,
  start_proxy,
  temporary_folder,
  until,
} from '../lib/server.mjs';

const kCommand = ['--', everything, '--stdio'];
const kSaid = 'This is a simple text response for testing.\n';

async function said(words, options) {
  const outcome = await run_program(words, options);
  assert.equal(outcome.code, 0, outcome.stderr);
  return outcome.stdout;
}

test('over every transport in front, in both eras', async (t) => {
  const server = await start_everything(t);
  const proxy = await start_proxy(t, [server.mcp_url]);
  const places = [
    [proxy.mcp_url],
    [proxy.ws_url],
    [`unix:${proxy.socket}`],
    ['--', program, 'proxy', server.mcp_url],
  ];
  for (const place of places) {
    for (const revision of ['2025-11-25', '2026-07-28']) {
      // A command comes last, any other target first.
      const words = (command, ...rest) => {
        const by = [...rest, '--revision', revision];
        return place[0] === '--' ? [command, ...by, ...place] : [command, ...place, ...by];
      };
      assert.equal(await said(words('call', 'test_simple_text')), kSaid);
      assert.match(await said(words('info')), /^sluice-everything 1\.0\n/);
    }
  }
});

test('HTTP with SSE in front', async (t) => {
  const proxy = await start_proxy(t, kCommand);
  const folder = temporary_folder(t);
  const file = path.join(folder, '.mcp.json');
  writeFileSync(
    file,
    JSON.stringify({ mcpServers: { old: { type: 'sse', url: `${proxy.base}/sse` } } }),
  );
  assert.equal(await said(['call', 'old', 'test_simple_text'], { cwd: folder }), kSaid);
});

test('to every transport behind, in both eras', async (t) => {
  const server = await start_everything(t);
  const places = [[server.mcp_url], kCommand];
  for (const place of places) {
    for (const revision of ['2025-11-25', '2026-07-28']) {
      const proxy = await start_proxy(t, ['--revision', revision, ...place]);
      for (const spoken of ['2025-11-25', '2026-07-28']) {
        const words = ['call', proxy.mcp_url, '--revision', spoken];
        assert.equal(await said([...words, 'test_simple_text']), kSaid);
        assert.match(await said([...words, 'count', 'to=3']), /1\D+2\D+3\D/);
      }
    }
  }
});

// A server whose only tool says something, and then works until it is cancelled.
const kEndlessServer = `
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const say = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const serverInfo = { name: 'endless', version: '1' };
    const { protocolVersion } = params;
    say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'tools/list') {
    say({ id, result: { tools: [{ name: 'work', inputSchema: { type: 'object' } }] } });
  } else if (method === 'tools/call') {
    const { progressToken } = params._meta;
    const said = { progressToken, progress: 1, message: 'begun' };
    say({ method: 'notifications/progress', params: said });
    process.called = id;
  } else if (method === 'notifications/cancelled') {
    writeFileSync(process.argv[2], String(params.requestId === process.called));
  } else if (id !== undefined) {
    say({ id, error: { code: -32601, message: 'Method not found' } });
  }
});
`;

test('output passes through while the tool runs, and so does the cancellation', async (t) => {
  const folder = temporary_folder(t);
  const script = path.join(folder, 'endless.mjs');
  const cancelled = path.join(folder, 'cancelled');
  writeFileSync(script, kEndlessServer);
  const proxy = await start_proxy(t, ['--', process.execPath, script, cancelled]);
  for (const revision of ['2025-11-25', '2026-07-28']) {
    const words = ['call', proxy.mcp_url, '--revision', revision, 'work'];
    const child = spawn(program, words, {
      env: clean_environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(() => child.kill('SIGKILL'));
    let shown = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        shown += text;
      });
    }
    await until(() => shown.includes('begun'), 'the output is there');
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    assert.deepEqual(await ended, [130, null]);
    await until(() => existsSync(cancelled), 'the server is told');
    assert.equal(readFileSync(cancelled, 'utf8'), 'true');
    rmSync(cancelled);
  }
});

test('several servers have prefixes', async (t) => {
  const server = await start_everything(t);
  const proxy = await start_proxy(t, [`far=${server.mcp_url}`, 'near=', ...kCommand]);
  const tools = await said(['tools', proxy.mcp_url]);
  for (const name of ['far_count', 'near_count']) assert.match(tools, new RegExp(`^${name}\\(`, 'm'));
  assert.equal(await said(['call', proxy.mcp_url, 'near_test_simple_text']), kSaid);
  const listed = JSON.parse(await said(['resources', proxy.mcp_url, '--json']));
  for (const prefix of ['far', 'near']) {
    const { uri } = listed.resources.find((each) => each.uri.startsWith(`${prefix}+`));
    await said(['read', proxy.mcp_url, uri]);
  }
});

test('a server that is not there leaves the others, and is named', async (t) => {
  const proxy = await start_proxy(t, ['gone=unix:/no/such/socket', 'near=', ...kCommand]);
  assert.match(await said(['tools', proxy.mcp_url]), /^near_count\(/m);
  const outcome = await run_program(['call', proxy.mcp_url, 'gone_count', '--arguments', '{}']);
  assert.notEqual(outcome.code, 0);
  assert.match(proxy.output, /cannot be reached.*server=gone/);
});

test('a child that dies is reported and started anew; none is left at the end', async (t) => {
  const proxy = await start_proxy(t, kCommand);
  const client = spawn(program, ['proxy', `unix:${proxy.socket}`], {
    env: clean_environment(),
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.after(() => client.kill('SIGKILL'));
  const answers = new Map();
  let rest = '';
  client.stdout.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      answers.set(message.id, message);
    }
  });
  const ask = async (id, method, params) => {
    client.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return until(() => answers.get(id), `${method} is answered`);
  };
  const info = { name: 'test', version: '1' };
  await ask(1, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: info,
  });
  const call = { name: 'test_simple_text', arguments: {} };
  assert.ok((await ask(2, 'tools/call', call)).result);
  const [child] = children_of(proxy);
  process.kill(child, 'SIGKILL');
  await until(() => /has gone; .*server=/.test(proxy.output), 'the death is reported');
  assert.ok((await ask(3, 'tools/call', call)).result);
  const [next] = children_of(proxy);
  assert.notEqual(next, child);
  client.stdin.end();
  await until(() => children_of(proxy).length === 0, 'the child ends with its client');
  assert.ok(!existsSync(`/proc/${next}`));
});

test('a server that ends for nobody does not outlive the proxies in front of it', async (t) => {
  const file = path.join(temporary_folder(t), 'process');
  const server = `
    process.on('SIGTERM', () => {});
    setInterval(() => {}, 1000);
    require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.pid));
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (id === undefined) return;
      const reply = method === 'initialize'
        ? { result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } } }
        : method === 'ping' ? { result: {} } : { error: { code: -32601, message: 'no' } };
      console.log(JSON.stringify({ jsonrpc: '2.0', id, ...reply }));
    });`;
  const proxies = Array(2).fill([program, 'proxy', '--']).flat();
  await said(['ping', '--', ...proxies, process.execPath, '--eval', server]);
  const place = `/proc/${readFileSync(file, 'utf8')}`;
  await until(() => !existsSync(place), 'the server is gone');
});

test('the documentation: its commands serve, and the configuration of a client', async (t) => {
  const folder = temporary_folder(t);
  const server = await start_everything(t);
  const real = (text) =>
    text
      .replaceAll('https://mcp.example.com/mcp', server.mcp_url)
      .replace(/npx -y some-server|uvx mcp-server-time/, `${everything} --stdio`)
      .replace('/run/user/1000/mcp.sock', path.join(folder, 'mcp.sock'))
      .replace('127.0.0.1:8090', '127.0.0.1:0');
  const file = path.join(folder, '.mcp.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { docs: { url: server.mcp_url } } }));
  const ask = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n';
  const lines = [1, 2].flatMap((number) => block_at('docs/proxy.md', '', number).split('\n'));
  const commands = lines.filter((line) => line.startsWith('sluice proxy'));
  const { mcpServers } = JSON.parse(block_at('docs/proxy.md', 'json', 1));
  commands.push([mcpServers.example.command, ...mcpServers.example.args].join(' '));
  assert.equal(commands.length, 5);
  for (const command of commands) {
    const [, ...words] = real(command.replace(/ +#.*/, '')).split(' ');
    if (words.includes('--listen') || words.includes('--unix')) {
      const child = spawn(program, words, {
        cwd: folder,
        env: clean_environment(),
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      t.after(() => child.kill('SIGKILL'));
      const [printed] = await once(child.stdout, 'data');
      assert.match(String(printed), /^MCP |^Unix socket /);
      child.kill('SIGTERM');
      assert.deepEqual(await once(child, 'exit'), [0, null]);
    } else {
      const { stdout, code, stderr } = await run_program(words, { input: ask, cwd: folder });
      assert.equal(code, 0, stderr);
      assert.ok(JSON.parse(stdout).result.tools.length > 0, stderr);
    }
  }
});

test('wrong words end with 2 and say what to give', async () => {
  for (const [words, message] of [
    [[], /give .*URL/],
    [['unix:/a', 'unix:/b'], /each needs a name: give NAME=TARGET/],
    [['a=unix:/a', 'a=unix:/b'], /two servers have this name/],
    [['a='], /give a target behind it/],
    [['--idle-timeout', '-1', 'unix:/a'], /--idle-timeout/],
    [['--header', 'A: b', 'a=http://x/', 'b=http://y/'], /--header/],
  ]) {
    const outcome = await run_program(['proxy', ...words]);
    assert.equal(outcome.code, 2, outcome.stderr);
    assert.match(outcome.stderr, message);
  }
});
