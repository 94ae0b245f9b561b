// Models for a Rockchip NPU, with a stand-in for its runtime.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { connect, generate } from '../lib/mcp.mjs';
import { abis, library, npu_files, start_npu } from '../lib/npu.mjs';
import {
  between_its_lines,
  http_client,
  run_in_node,
  with_address,
  ws_client,
  ws_client_is_done,
} from '../lib/original_clients.mjs';
import { curl_stream, event_stream, poll_stream, push_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { children_of, run_program, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kWords = ['Water ', 'is ', 'w\\xc3', '\\xa4rmer ', 'here', '.'];
const kText = 'Water is wärmer here.';
const kScript = `${kWords.map((word) => `say ${word}`).join('\n')}\n`;

for (const abi of abis) {
  test(`every delivery of an answer of the runtime ${abi}`, async (t) => {
    const server = await start_npu(t, abi, kScript);
    const client = new HttpClient(server);
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hello' })), kText);
    const { stream_id } = await client.call('run', { prompt: 'Hello', stream: true });
    const [pushed, evented, curled] = await Promise.all([
      push_stream(server, stream_id),
      event_stream(server, stream_id),
      curl_stream(server, stream_id),
    ]);
    const polled = await poll_stream(client, stream_id, { wait_ms: 1000 });
    for (const chunks of [pushed, evented, curled, polled]) {
      assert.equal(wire.checked_text(chunks), kText);
    }
    for (const name of ['v1 (2025-11-25)', 'v2, 2026-07-28']) {
      const { text } = await generate(await connect(t, server, name), { prompt: 'Hello' });
      assert.equal(text, kText);
    }
    assert.match(server.calls(), /^init model=/);
  });

  test(`a runtime ${abi} that dies ends its answer, and another takes its place`, async (t) => {
    const server = await start_npu(t, abi, 'say One.\ncrash\n');
    const client = new HttpClient(server);
    const [worker] = children_of(server);
    const { stream_id } = await client.call('run', { prompt: 'Hello', stream: true });
    const chunks = await push_stream(server, stream_id);
    assert.equal(chunks[0].delta, 'One.');
    assert.match(chunks.at(-1).error.message, /SIGSEGV/);
    writeFileSync(server.script, kScript);
    await until(
      async () => (await server.request({ path: '/readyz', agent: false })).status === 200,
      'the server is ready again',
    );
    assert.notDeepEqual(children_of(server), [worker]);
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hello' })), kText);
  });
}

test('the original clients print an answer of the NPU', async (t) => {
  const server = await start_npu(t, '1.3.0', kScript);
  assert.equal(await run_in_node(with_address(http_client, server)), kText);
  const pushed = between_its_lines(
    await run_in_node(with_address(ws_client, server), ws_client_is_done),
  );
  assert.equal(pushed.text, kText);
});

test('a model that cannot be loaded ends the program with the reason', async (t) => {
  const files = npu_files(t, kScript);
  const serve = (...flags) =>
    run_program(['serve', '--port', '0', '--model', files.model, ...flags], { env: files.env });
  const without = await serve('--rkllm-library', `${files.model}.so`);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /model\.rkllm\.so/);
  const text = await serve('--rkllm-library', files.model);
  assert.equal(text.code, 1);
  assert.match(text.stderr, /is no shared library/);
  const gone = await run_program(
    ['serve', '--port', '0', '--model', 'no.rkllm', '--rkllm-library', library('1.3.0')],
  );
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /There is no no\.rkllm/);
  const abi = await serve('--rkllm-abi', '9');
  assert.equal(abi.code, 2);
  assert.match(abi.stderr, /auto, 1\.1, 1\.2\.0, 1\.2\.1 or 1\.3\.0/);
});

test('sluice chat runs a model for an NPU', async (t) => {
  const files = npu_files(t, kScript);
  const { code, stdout } = await run_program(
    ['chat', '--model', files.model, '--rkllm-library', library('1.2.1'), 'Hello'],
    { env: files.env },
  );
  assert.deepEqual([code, stdout.trim()], [0, kText]);
});

test('sluice doctor looks at the runtime and the board', async (t) => {
  const files = npu_files(t, kScript);
  const { stdout } = await run_program(
    ['doctor', '--json', '--model', files.model, '--rkllm-library', library('1.2.1')],
  );
  const found = new Map(JSON.parse(stdout).checks.map((check) => [check.subject, check]));
  assert.equal(found.get('model').status, 'ok');
  assert.match(found.get('NPU runtime').finding, /librkllmrt\.so.*interface 1\.2\.1/);
  assert.equal(found.get('board').status, 'fail');
});
