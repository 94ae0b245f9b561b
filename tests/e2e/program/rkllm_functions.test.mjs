// The functions of RKLLM's C interface as methods and as tools.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../lib/mcp.mjs';
import { start_npu } from '../lib/npu.mjs';
import { HttpClient, WsClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kScript = 'say one\nturn\nsay two\nturn\nsay three\n';

test('a client sets a template, and what is said is kept, over HTTP', async (t) => {
  const server = await start_npu(t, '1.1', kScript);
  const client = new HttpClient(server);
  const { handle_id, status, ret } = await client.call('rkllm.init', { param: { max_new_tokens: 9 } });
  assert.deepEqual([status, ret], ['initialized', 0]);
  const set = { handle_id, system_prompt: 'S', prompt_prefix: '<u>', prompt_postfix: '</u>' };
  assert.deepEqual(await client.call('rkllm_set_chat_template', set), { ret: 0 });
  const said = { handle_id, input: { role: 'user', prompt_input: 'Hi' }, infer_params: { keep_history: 1 } };
  assert.equal(wire.whole_text(await client.call('rkllm_run', said)), 'one');
  assert.equal(wire.whole_text(await client.call('run', { handle_id, prompt: 'More', keep_history: 1 })), 'two');
  assert.match(server.calls(), /S<u>Hi<\/u>one<u>More<\/u>/);
  assert.deepEqual(await client.call('clear_kv_cache', { handle_id }), { ret: 0 });
  assert.deepEqual(await client.call('get_kv_cache_size', { handle_id }), { ret: 0, cache_sizes: [0] });
  await assert.rejects(client.call('get_kv_cache_size'), /call init, and pass the handle_id/);
  assert.equal((await client.call('rkllm.destroy', { handle_id })).status, 'destroyed');
  await assert.rejects(client.call('clear_kv_cache', { handle_id }), /no session of this handle_id/);
});

test('a connection has a session of its own', async (t) => {
  const server = await start_server(t, ['--engine', 'synthetic']);
  const [first, other] = [await WsClient.connect(server), await WsClient.connect(server)];
  t.after(() => [first, other].forEach(({ socket }) => socket.close()));
  assert.equal((await first.call('set_function_tools', { tools: '[]' })).ret, 0);
  assert.equal((await first.call('init')).status, 'already_initialized');
  assert.equal((await other.call('init')).status, 'initialized');
  assert.equal((await first.call('get_constants')).LLMCallState.RKLLM_RUN_FINISH, 2);
  const refused = await first.reply('rkllm_load_lora', { lora_adapter_path: 'x' });
  assert.deepEqual(refused.error, {
    code: -32601,
    message: 'rkllm_load_lora: not with this engine (synthetic)',
  });
  const { stream_id } = await first.call('rkllm.run_async', { count: 1000, interval_us: 10000 });
  assert.equal((await first.call('rkllm.is_running', { stream_id })).status, 'running');
  await until(() => first.pushed.has(stream_id), 'a chunk is pushed');
  assert.equal(first.pushed.get(stream_id)[0].method, 'rkllm.run_async');
  assert.equal((await first.call('rkllm.abort', { stream_id })).status, 'aborted');
});

test('MCP clients see the functions of an NPU as tools', async (t) => {
  const server = await start_npu(t, '1.3.0', kScript);
  for (const name of ['v1 (2025-11-25)', 'v2, 2026-07-28']) {
    const { client, call_tool } = await connect(t, server, name);
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    for (const expected of ['generate', 'rkllm_run', 'rkllm_init', 'rkllm_createDefaultParam']) {
      assert.ok(names.includes(expected), `${expected} in ${names}`);
    }
    const { structuredContent } = await call_tool({ name: 'rkllm_init', arguments: {} });
    const { handle_id } = structuredContent;
    const set = { handle_id, system_prompt: '', tools: '[]' };
    const done = await call_tool({ name: 'rkllm_set_function_tools', arguments: set });
    assert.deepEqual(done.structuredContent, { ret: 0 });
  }
});
