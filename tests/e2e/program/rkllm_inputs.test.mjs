// What a client gives an NPU's model in place of text, and gets besides it, over HTTP, WebSocket and as a tool.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../lib/mcp.mjs';
import { abis, start_npu } from '../lib/npu.mjs';
import { HttpClient, WsClient } from '../lib/rpc.mjs';
import { start_server } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const base64 = (numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
const floats = (text) => {
  const bytes = Buffer.from(text, 'base64');
  return [...new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))];
};
const tokens = { input_type: 'RKLLM_INPUT_TOKEN', token_input: { input_ids: [3, 1, 4] } };
const embed = { input_type: 2, embed_input: { embed: base64([1, 2, 3, 4]), n_tokens: 1 } };
const image = { image_embed: [1, 2, 3, 4], n_image_tokens: 1 };
const images = { input_type: 3, multimodal_input: { prompt: '<image>?', ...image } };
const hidden = { mode: 'RKLLM_INFER_GET_LAST_HIDDEN_LAYER' };

for (const abi of abis) {
  test(`tokens, embeddings, images and hidden states over HTTP: ABI ${abi}`, async (t) => {
    const server = await start_npu(t, abi, 'echo\nstates\nlogits 2\n');
    const client = new HttpClient(server);
    assert.equal(wire.whole_text(await client.call('rkllm_run', { input: tokens })), 'tokens 3 1 4');
    assert.equal(wire.whole_text(await client.call('rkllm.run', { input: embed })), 'embed 1 sum 30');
    assert.match(wire.whole_text(await client.call('run', { input: images })), /^images "<image>\?" .*sum 30$/);
    const { last_hidden_layer } = await client.call('run', { input: embed, infer_params: hidden });
    assert.deepEqual(
      { ...last_hidden_layer, hidden_states: floats(last_hidden_layer.hidden_states) },
      { hidden_states: [2, 4, 6, 8], embd_size: 4, num_tokens: 1 },
    );
    const logits = client.reply('run', { prompt: 'Hi', infer_params: { mode: 2 } });
    if (abi === '1.1') {
      assert.match((await logits).error.message, /needs a runtime since 1.2.0, and this one is 1.1.0 to 1.1.4/);
    } else {
      assert.equal((await logits).result.logits.vocab_size, 2);
    }
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hi' })), 'prompt Hi');
  });
}

test('hidden states are a chunk of a stream that is polled or pushed', async (t) => {
  const server = await start_npu(t, '1.3.0', 'say a\nstates 60000\n');
  const params = { prompt: 'Hi', infer_params: hidden };
  const check = (chunks) => {
    const found = chunks.filter((chunk) => chunk.last_hidden_layer !== undefined);
    assert.equal(found.length, 1);
    assert.equal(found[0].last_hidden_layer.num_tokens, 60000);
    assert.deepEqual(floats(found[0].last_hidden_layer.hidden_states).slice(0, 2), [72, 72.25]);
    assert.deepEqual([chunks[0].delta, chunks.at(-1).end], ['a', true]);
  };
  const http = new HttpClient(server);
  const { stream_id } = await http.call('run_async', params);
  const polled = [];
  for (let more = true; more; ) {
    const { chunks, has_more } = await http.call('run', { stream_id, from_seq: polled.length, wait_ms: 10000 });
    polled.push(...chunks);
    more = has_more;
  }
  check(polled);
  const ws = await WsClient.connect(server);
  t.after(() => ws.socket.close());
  const pushed = await ws.call('run', { ...params, stream: true });
  check(await ws.whole(pushed.stream_id));
});

test('MCP clients give embeddings and get hidden states by the tool rkllm_run', async (t) => {
  const server = await start_npu(t, '1.2.1', 'states\n');
  for (const name of ['v1 (2025-11-25)', 'v2, 2026-07-28']) {
    const { client, call_tool } = await connect(t, server, name);
    const { tools } = await client.listTools();
    const { inputSchema } = tools.find((tool) => tool.name === 'rkllm_run');
    assert.ok(inputSchema.properties.input.properties.embed_input);
    const result = await call_tool({ name: 'rkllm_run', arguments: { input: embed, infer_params: hidden } });
    assert.deepEqual(floats(result.structuredContent.last_hidden_layer.hidden_states), [2, 4, 6, 8]);
  }
});

test('too many numbers are refused, and other engines have none', async (t) => {
  const server = await start_npu(t, '1.3.0', 'states 1048577\nturn\nsay next\n');
  const client = new HttpClient(server);
  const { error } = await client.reply('run', { prompt: 'Hi', infer_params: hidden });
  assert.equal(error.code, -31010);
  assert.match(error.message, /must be at most 16777216 bytes/);
  assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hi' })), 'next');
  const other = new HttpClient(await start_server(t, ['--engine', 'synthetic']));
  await assert.rejects(other.call('run', { input: tokens }), /-32602 .*not with this engine \(synthetic\)/);
  await assert.rejects(other.call('run', { prompt: 'a', infer_params: hidden }), /not with this engine/);
});
