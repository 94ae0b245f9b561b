// What operators load into a model: LoRA adapters, prompt caches and cross attention.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { connect } from '../lib/mcp.mjs';
import { abis, start_npu } from '../lib/npu.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server, temporary_folder, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const keys = { alice: 'alice-key-0123456789', bob: 'bob-key-0123456789' };
const key_flags = Object.entries(keys).flatMap(([name, key]) => ['--api-key', `${name}=${key}`]);

// A folder of models with an adapter, and the flags that make alice its operator.
function operated(t) {
  const root = temporary_folder(t);
  const folder = path.join(root, 'models');
  mkdirSync(path.join(folder, 'lora'), { recursive: true });
  writeFileSync(path.join(folder, 'lora/cat.rkllm'), 'adapter of a cat');
  writeFileSync(path.join(folder, 'foreign'), 'something else');
  writeFileSync(path.join(root, 'secret'), 'adapter outside');
  return { root, folder, flags: [...key_flags, '--operator', 'alice', '--model-dir', folder] };
}
const as = (server, name) => new HttpClient(server, { key: keys[name] });
const lora = { lora_adapter_path: 'lora/cat.rkllm', lora_adapter_name: 'cat', scale: 0.5 };
const with_cat = { prompt: 'Hi', infer_params: { lora_params: { lora_adapter_name: 'cat' } } };
const text_of = async (client, params) => wire.whole_text(await client.call('rkllm_run', params));
// The process of the model, a child of the server.
const worker_of = (server) =>
  Number(execFileSync('pgrep', ['-P', String(server.child.pid)]).toString().split('\n')[0]);

for (const abi of abis) {
  test(`an operator loads an adapter and a prompt cache, and others use them: ABI ${abi}`, async (t) => {
    const { folder, flags } = operated(t);
    const server = await start_npu(t, abi, 'say one\n', flags);
    const [alice, bob] = [as(server, 'alice'), as(server, 'bob')];
    await assert.rejects(bob.call('load_lora', lora), /-32600 rkllm_load_lora is for operators: .*--operator NAME/);
    await assert.rejects(bob.call('run', with_cat), /there is no LoRA adapter of this name/);
    assert.deepEqual(await alice.call('rkllm.load_lora', lora), { ret: 0 });
    assert.equal(await text_of(bob, with_cat), 'one');
    assert.match(server.calls(), /load_lora \S*\/lora\/cat.rkllm cat 0.500000\nrun .*lora=cat/);
    const save = { prompt_cache_params: { save_prompt_cache: 1, prompt_cache_path: 'lora/p' } };
    await assert.rejects(bob.call('run', { prompt: 'Hi', infer_params: save }), /is for operators/);
    assert.equal(await text_of(alice, { prompt: 'Hi', infer_params: save }), 'one');
    assert.match(readFileSync(path.join(folder, 'lora/p'), 'utf8'), /^cache .*Hi/);
    assert.deepEqual(await alice.call('load_prompt_cache', { prompt_cache_path: 'lora/p' }), { ret: 0 });
    assert.deepEqual(await alice.call('rkllm_release_prompt_cache'), { ret: 0 });
    for (const method of ['load_lora', 'load_prompt_cache']) {
      const wrong = { lora_adapter_path: 'foreign', lora_adapter_name: 'dog', prompt_cache_path: 'foreign' };
      await assert.rejects(alice.call(method, wrong), /-32602 The runtime returned -1/);
    }
    assert.equal(await text_of(bob, with_cat), 'one');

    process.kill(worker_of(server), 'SIGKILL');
    await until(() => server.calls().split('load_lora').length === 4, 'the adapter is loaded again');
    await until(async () => (await server.request({ path: '/readyz' })).status === 200, 'there is a model');
    assert.equal(await text_of(bob, with_cat), 'one');
  });
}

test('what the decoder attends to is set where the ABI has it', async (t) => {
  const params = { encoder_k_cache: [1, 2], encoder_v_cache: [3, 4], encoder_mask: [0], encoder_pos: [7] };
  for (const abi of ['1.2.1', '1.3.0']) {
    const server = await start_npu(t, abi, 'say one\n', [...operated(t).flags, '--cross-attention']);
    assert.deepEqual(await as(server, 'alice').call('set_cross_attn_params', params), { ret: 0 });
    await assert.rejects(as(server, 'bob').call('set_cross_attn_params', params), /is for operators/);
    assert.equal(await text_of(as(server, 'bob'), { prompt: 'Hi' }), 'one');
    assert.match(server.calls(), /attends=7,0.000000,1.000000,3.000000/);
  }
  const old = await start_npu(t, '1.2.0', 'say one\n', operated(t).flags);
  await assert.rejects(as(old, 'alice').call('set_cross_attn_params', params), /-32601 .*not with this engine/);
});

test('paths do not leave the folder, and errors do not tell where it is', async (t) => {
  const { root, folder, flags } = operated(t);
  symlinkSync('../secret', path.join(folder, 'out'));
  symlinkSync('/dev/zero', path.join(folder, 'zero'));
  execFileSync('mkfifo', [path.join(folder, 'fifo')]);
  const server = await start_npu(t, '1.3.0', 'say one\n', flags);
  const alice = as(server, 'alice');
  const wrong = ['', '../secret', path.join(root, 'secret'), 'out', 'zero', 'fifo', 'lora', 'no', 'a\0b', ['a'], {}];
  for (const lora_adapter_path of wrong) {
    const { error } = await alice.reply('load_lora', { lora_adapter_name: 'x', lora_adapter_path });
    assert.equal(error.code, -32602, JSON.stringify(lora_adapter_path));
    if (lora_adapter_path !== path.join(root, 'secret')) assert.doesNotMatch(error.message, new RegExp(root));
    const cache = { save_prompt_cache: true, prompt_cache_path: lora_adapter_path };
    const run = { prompt: 'Hi', infer_params: { prompt_cache_params: cache } };
    if (lora_adapter_path !== 'no') assert.equal(await alice.code_of('run', run), -32602);
  }
  assert.doesNotMatch(server.calls(), /load_lora|secret/);
  assert.ok(!existsSync(path.join(root, 'b')));
});

test('a worker that dies while it loads is replaced, and the caller is told', async (t) => {
  const server = await start_npu(t, '1.3.0', 'lora hang\nsay one\n', operated(t).flags);
  const alice = as(server, 'alice');
  const [loads, again] = [alice.reply('load_lora', lora), alice.reply('load_lora', lora)];
  await until(() => server.calls().includes('load_lora'), 'it is being loaded');
  process.kill(worker_of(server), 'SIGKILL');
  for (const reply of [await loads, await again]) {
    assert.match(reply.error.message, /The process of the model has died/);
  }
  await until(async () => (await server.request({ path: '/readyz' })).status === 200, 'there is a model');
  assert.equal(await text_of(alice, { prompt: 'Hi' }), 'one');
  await assert.rejects(alice.call('run', with_cat), /there is no LoRA adapter/);
});

test('operators are taken from the settings again on SIGHUP', async (t) => {
  const { folder } = operated(t);
  const file = path.join(folder, '../sluice.toml');
  const settings = (operator) =>
    writeFileSync(
      file,
      `[engine]\nmodel_dir = "${folder}"\n[access]\noperators = ["${operator}"]\n` +
        `api_keys = [${Object.entries(keys).map(([name, key]) => `"${name}=${key}"`)}]\n`,
    );
  settings('alice');
  const server = await start_npu(t, '1.3.0', 'say one\n', ['--config', file]);
  assert.deepEqual(await as(server, 'alice').call('load_lora', lora), { ret: 0 });
  await assert.rejects(as(server, 'bob').call('load_lora', lora), /is for operators/);
  settings('bob');
  server.signal('SIGHUP');
  await until(() => server.output.includes('reloaded'), 'the settings are read again');
  assert.deepEqual(await as(server, 'bob').call('load_lora', lora), { ret: 0 });
  await assert.rejects(as(server, 'alice').call('load_lora', lora), /is for operators/);
});

test('without an operator or a folder the answers say how to have one', async (t) => {
  const server = await start_server(t, ['--engine', 'llama', ...key_flags, '--operator', 'alice']);
  await assert.rejects(as(server, 'alice').call('load_lora', lora), /start the server with --model-dir DIR/);
  await assert.rejects(as(server, 'bob').call('load_lora', lora), /--operator NAME/);
  await assert.rejects(as(server, 'alice').call('load_prompt_cache'), /-32601 .*not with this engine \(llama\)/);
});

test('MCP clients that are operators load adapters by tools', async (t) => {
  const { flags } = operated(t);
  const server = await start_npu(t, '1.3.0', 'say one\n', flags);
  for (const [name, is_error] of [['alice', false], ['bob', true]]) {
    const { call_tool } = await connect(t, server, 'v1 (2025-11-25)', {
      headers: { Authorization: `Bearer ${keys[name]}` },
    });
    const result = await call_tool({ name: 'rkllm_load_lora', arguments: lora });
    assert.equal(result.isError ?? false, is_error);
    if (!is_error) assert.deepEqual(result.structuredContent, { ret: 0 });
  }
});
