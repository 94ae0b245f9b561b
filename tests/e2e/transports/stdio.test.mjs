// `sluice serve --stdio` as a child process: official clients, bad input, slow readers, and every
// way to end it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { LineClient, start_stdio, stdio_client, stdio_flags } from '../lib/lines.mjs';
import { connect_over, generate, generations } from '../lib/mcp.mjs';
import { clean_environment, program, root, run_program, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kInitialize = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};
const line = (message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;

for (const [name, { era }] of Object.entries(generations)) {
  test(`${name}: lists, calls, gets progress, cancels and closes`, async (t) => {
    const { client, transport, call_tool } = await connect_over(t, name, 'stdio', {
      command: [program, ...stdio_flags],
    });
    if (era === 'modern') assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === 'generate'));
    const { text, deltas } = await generate(
      { call_tool },
      { prompt: 'Hello', count: 50, interval_us: 10_000 },
    );
    assert.equal(wire.count_numbers(text), 50);
    // These clients drop progress that they read together with the result.
    assert.ok(deltas.length > 10, `${deltas.length} progress messages`);
    assert.ok(text.startsWith(deltas.map((delta) => delta.message).join('')), 'in order');

    const breaker = new AbortController();
    await assert.rejects(
      generate(
        { call_tool },
        { prompt: 'Hello', count: 1_000_000, interval_us: 1000 },
        { signal: breaker.signal, on_delta: () => breaker.abort(new Error('enough')) },
      ),
    );
    const again = await generate({ call_tool }, { prompt: 'Hello', count: 3 });
    assert.equal(wire.count_numbers(again.text), 3);

    const { pid } = transport;
    await client.close();
    await until(() => !existsSync(`/proc/${pid}`), 'the server is gone');
  });
}

test('every bad line is answered with an error, and the next line counts', async (t) => {
  const client = stdio_client(t, ['--max-body', '2000']);
  const cases = [
    ['nonsense\n', wire.codes.parse],
    ['{"jsonrpc":"2.0","id":1,\n', wire.codes.parse],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d, 0x0a]), wire.codes.parse],
    [Buffer.from([0, 0x0a]), wire.codes.parse],
    [`${'['.repeat(500)}\n`, wire.codes.parse],
    ['[]\n', wire.codes.invalid_request],
    ['{}\n', wire.codes.invalid_request],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}\n', wire.codes.invalid_request],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}\n', wire.codes.invalid_request],
    [`${'x'.repeat(2001)}\n`, wire.codes.invalid_request],
    [`"${'x'.repeat(1_000_000)}"\r\n`, wire.codes.invalid_request],
    ['{"jsonrpc":"2.0","id":1,"method":"no/such"}\n', wire.codes.method_not_found],
  ];
  for (const [index, [text, code]] of cases.entries()) {
    client.write('\n\r\n');
    client.write(text);
    await client.when(() => client.messages.length === index + 1, `${text.slice(0, 40)} is answered`);
    assert.equal(client.messages[index].error?.code, code, String(text.slice(0, 40)));
  }
  assert.deepEqual(await client.call('ping'), {});
  assert.equal(client.messages.length, cases.length + 1, 'one answer each');
});

test('the revision of initialize holds, and nothing but messages is on standard output', async (t) => {
  const client = stdio_client(t, ['--log-level', 'debug']);
  const { protocolVersion } = await client.call('initialize', kInitialize);
  assert.equal(protocolVersion, '2025-06-18');
  client.send({ method: 'notifications/initialized' });
  await client.call('tools/list');
  const { supportedVersions } = await client.call('server/discover', {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  });
  assert.ok(supportedVersions.includes('2026-07-28'));
  client.child.stdin.end();
  assert.deepEqual(await client.child.exited, { code: 0, signal: null });
  assert.equal(client.messages.length, 3);
  assert.match(client.child.errors, /stopped/);
});

test('streams are pushed, resumed and acknowledged as on a WebSocket', async (t) => {
  const client = stdio_client(t);
  const { stream_id } = await client.call(...wire.start({ count: 20, window: 5 }));
  await client.when(() => client.pushed(stream_id).length === 5, 'the window is full');
  assert.equal(await client.code_of(...wire.ack(stream_id, 99)), wire.codes.invalid_state);
  await client.call(...wire.ack(stream_id, 5));
  await client.when(() => client.pushed(stream_id).length === 10, 'the window has moved');
  await client.call('unsubscribe', { stream_id });
  await client.call(...wire.subscribe(stream_id, 10));
  await client.when(() => client.pushed(stream_id).at(-1).end, 'the stream has ended');
  assert.equal(wire.count_numbers(wire.checked_text(client.pushed(stream_id))), 20);
});

test('what is under way when standard input ends is answered before the end', async () => {
  const input =
    line({ id: 1, method: 'run', params: { prompt: 'x', count: 30, stream: true } }) +
    line({ id: 2, method: 'run', params: { prompt: 'x', count: 30, interval_us: 3000 } }) +
    // No newline at the end.
    line({ id: 3, method: 'ping' }).trimEnd();
  const outcome = await run_program(stdio_flags, { input });
  assert.equal(outcome.code, 0, outcome.stderr);
  const messages = outcome.stdout.trimEnd().split('\n').map(JSON.parse);
  assert.deepEqual(
    messages
      .filter(({ id }) => id)
      .map(({ id }) => id)
      .sort(),
    [1, 2, 3],
  );
  const chunks = messages.filter(({ method }) => method).map(({ params }) => params);
  assert.equal(wire.count_numbers(wire.checked_text(chunks)), 30);
});

test('what takes longer than the deadline after the end of standard input is cut off', async () => {
  const input = line({
    id: 1,
    method: 'run',
    params: { prompt: 'x', count: 1e6, interval_us: 1000 },
  });
  const begun = performance.now();
  const outcome = await run_program([...stdio_flags, '--shutdown-deadline', '300ms'], { input });
  assert.equal(outcome.code, 0, outcome.stderr);
  assert.ok(performance.now() - begun < 5000);
});

test('nor is it waited for longer when nobody reads the answers', async (t) => {
  const child = start_stdio(t, ['--shutdown-deadline', '300ms']);
  await fill(child, 300_000);
  child.stdin.destroy();
  await until(() => child.exitCode !== null, 'it ends');
  assert.equal(child.exitCode, 0, child.errors);
});

test('files and /dev/null serve as standard input and output', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-stdio-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const count = 20_000;
  writeFileSync(
    path.join(folder, 'in'),
    Array.from({ length: count }, (_, id) => line({ id, method: 'ping' })).join(''),
  );
  const outcome = await run_program(['-c', 'exec "$0" "$@" < in > out', program, ...stdio_flags], {
    command: '/bin/sh',
    cwd: folder,
  });
  assert.equal(outcome.code, 0, outcome.stderr);
  const out = readFileSync(path.join(folder, 'out'), 'utf8').trimEnd().split('\n');
  assert.deepEqual(
    out.map((one) => JSON.parse(one).id),
    Array.from({ length: count }, (_, id) => id),
  );
  const nothing = await run_program(stdio_flags);
  assert.equal(nothing.code, 0, nothing.stderr);
  assert.equal(nothing.stdout, '');
});

test('a closed standard stream is named', async () => {
  for (const [redirection, name] of [
    ['<&-', 'Standard input'],
    ['</dev/null >&-', 'Standard output'],
  ]) {
    const outcome = await run_program(['-c', `"$0" "$@" ${redirection}`, program, ...stdio_flags], {
      command: '/bin/sh',
      deadline: 20_000,
    });
    assert.equal(outcome.code, 1, outcome.stderr);
    assert.match(outcome.stderr, new RegExp(`${name} is closed`));
  }
});

test('a client that does not read is held up, in bounded memory, and loses nothing', async (t) => {
  const child = start_stdio(t);
  const count = 300_000;
  const sent = await fill(child, count);
  assert.ok(sent < count, `${sent} requests were taken without one answer being read`);
  const { rss } = memory_of(child.pid);
  assert.ok(rss < 100 << 20, `${rss} bytes of memory`);
  const client = new LineClient(child.stdin, child.stdout);
  await client.when(() => client.messages.length === sent, 'all are answered');
  assert.deepEqual(
    client.messages.map(({ id }) => id),
    Array.from({ length: sent }, (_, id) => id),
  );
});

// Sends requests without reading until the server takes no more, at most `most`. Resolves to how
// many.
async function fill(child, most) {
  let sent = 0;
  child.stdin.on('error', () => {});
  await until(async () => {
    while (sent < most) {
      if (!child.stdin.write(line({ id: sent++, method: 'tools/list' }))) break;
    }
    if (sent === most) return true;
    // Node buffers what the pipe does not take. That buffer shows when the server reads no more.
    return child.stdin.writableLength > 0 && (await stands_still(child.stdin));
  }, 'the server takes nothing more');
  return sent;
}

async function stands_still(stream) {
  const before = stream.writableLength;
  for (let look = 0; look < 20; ++look) {
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (stream.writableLength !== before) return false;
  }
  return true;
}

function memory_of(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return { rss: Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024 };
}

test('SIGTERM, SIGINT and SIGHUP end it at once and cleanly, also in the middle of an answer', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    const client = stdio_client(t);
    const { stream_id } = await client.call(...wire.start({ count: 1e6, interval_us: 1000 }));
    await client.when(() => client.pushed(stream_id).length > 3, 'it streams');
    client.child.kill(signal);
    assert.deepEqual(await client.child.exited, { code: 0, signal: null }, client.child.errors);
    const last = client.pushed(stream_id).at(-1);
    assert.equal(last.end, true, 'the stream was ended');
    assert.equal(last.error.code, wire.codes.busy);
  }
});

test('a client that goes, closes its end or is killed leaves no orphan', async (t) => {
  const busy = line({
    id: 1,
    method: 'run',
    params: { prompt: 'x', count: 1e6, interval_us: 1000, stream: true },
  });
  // The client closes its ends of both pipes.
  const child = start_stdio(t);
  child.stdin.write(busy);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdin.destroy();
  child.stdout.destroy();
  assert.deepEqual(await child.exited, { code: 0, signal: null });

  // The client is killed. The process in between holds the pipes, as any client would.
  const parent = spawn(
    process.execPath,
    [
      '--eval',
      `const child = require('node:child_process').spawn(process.argv[1], process.argv.slice(2),
         { stdio: ['pipe', 'pipe', 'ignore'] });
       child.stdin.write(${JSON.stringify(busy)});
       child.stdout.once('data', () => console.log(child.pid));`,
      program,
      ...stdio_flags,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'], env: clean_environment(), cwd: root },
  );
  parent.stdout.setEncoding('utf8');
  const pid = Number(await new Promise((resolve) => parent.stdout.once('data', resolve)));
  t.after(() => existsSync(`/proc/${pid}`) && process.kill(pid, 'SIGKILL'));
  assert.ok(existsSync(`/proc/${pid}`));
  parent.kill('SIGKILL');
  await until(() => is_gone(pid), 'the server is gone');
});

// Whether the process has exited. It may still be a zombie that its new parent has not collected.
function is_gone(pid) {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

test('no port is opened unless it is asked for', async (t) => {
  const listening = (pid) => {
    const sockets = new Set(
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((row) => row.trim().split(/\s+/))
        .filter((row) => row[3] === '0A')
        .map((row) => `socket:[${row[9]}]`),
    );
    const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        return '';
      }
    });
    return links.filter((link) => sockets.has(link)).length;
  };
  const alone = stdio_client(t);
  await alone.call('ping');
  assert.equal(listening(alone.child.pid), 0);
  const beside = stdio_client(t, ['--port', '0']);
  await beside.call('ping');
  assert.equal(listening(beside.child.pid), 1);
});
