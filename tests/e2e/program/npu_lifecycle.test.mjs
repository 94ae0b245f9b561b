// The life of an answer of a model for a Rockchip NPU, with a stand-in for each version of its runtime.
// scripts/aarch64 runs this with the program for a board, which has no llama.cpp.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { connect, generate } from '../lib/mcp.mjs';
import { abis, npu_script, npu_text, start_npu } from '../lib/npu.mjs';
import { curl_stream, event_stream, poll_stream, push_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { children_of, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

for (const abi of abis) {
  test(`every delivery of an answer of the runtime ${abi}`, async (t) => {
    const server = await start_npu(t, abi, npu_script);
    const client = new HttpClient(server);
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hello' })), npu_text);
    const { stream_id } = await client.call('run', { prompt: 'Hello', stream: true });
    const [pushed, evented, curled] = await Promise.all([
      push_stream(server, stream_id),
      event_stream(server, stream_id),
      curl_stream(server, stream_id),
    ]);
    const polled = await poll_stream(client, stream_id, { wait_ms: 1000 });
    for (const chunks of [pushed, evented, curled, polled]) {
      assert.equal(wire.checked_text(chunks), npu_text);
    }
    for (const name of ['v1 (2025-11-25)', 'v2, 2026-07-28']) {
      const { text } = await generate(await connect(t, server, name), { prompt: 'Hello' });
      assert.equal(text, npu_text);
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
    writeFileSync(server.script, npu_script);
    await until(
      async () => (await server.request({ path: '/readyz', agent: false })).status === 200,
      'the server is ready again',
    );
    assert.notDeepEqual(children_of(server), [worker]);
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hello' })), npu_text);
  });

  test(`an answer of the runtime ${abi} is cancelled, and the next one is whole`, async (t) => {
    const server = await start_npu(t, abi, `say One.\nblock\nturn\n${npu_script}`);
    const client = new HttpClient(server);
    const workers = children_of(server);
    const { stream_id } = await client.call('run', { prompt: 'Hello', stream: true });
    const reading = push_stream(server, stream_id);
    await until(async () => {
      const { chunks } = await client.call('run', { stream_id, from_seq: 0, wait_ms: 1000 });
      return chunks.length > 0;
    }, 'the answer has begun');
    await client.call(...wire.abort(stream_id));
    const chunks = await reading;
    assert.deepEqual([chunks[0].delta, chunks.at(-1).end], ['One.', true]);
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hello' })), npu_text);
    assert.deepEqual(children_of(server), workers);
    assert.match(server.calls(), /^abort$/m);
  });

  test(`an answer is cancelled before the runtime ${abi} has begun it`, async (t) => {
    const server = await start_npu(t, abi, `deaf\nblock\nturn\n${npu_script}`);
    const client = new HttpClient(server);
    const workers = children_of(server);
    const { stream_id } = await client.call('run', { prompt: 'Hello', stream: true });
    await until(() => /^run /m.test(server.calls()), 'the runtime is asked');
    await client.call(...wire.abort(stream_id));
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hello' })), npu_text);
    assert.deepEqual(children_of(server), workers);
  });
}

test('workers that are killed in mid-answer leave nothing behind, and each reader gets an end', async (t) => {
  const slots = 4;
  const server = await start_npu(t, '1.3.0', 'say One.\nblock\n', ['--slots', `${slots}`]);
  const client = new HttpClient(server);
  const has = async (name, value) => (await server.metric(name)) === value;
  const rings = () => readFileSync(`/proc/${server.pid}/maps`, 'utf8').match(/memfd:tokens/g).length;
  const descriptors = server.descriptors();
  for (let round = 0; round < 2; ++round) {
    const answers = Array.from({ length: slots }, () =>
      client.call('run', { prompt: 'Hello', stream: true }),
    );
    const ids = (await Promise.all(answers)).map(({ stream_id }) => stream_id);
    const [pushed, evented, curled, polled] = ids;
    const read = [
      push_stream(server, pushed),
      event_stream(server, evented),
      curl_stream(server, curled),
      poll_stream(client, polled, { wait_ms: 1000 }),
    ];
    await until(() => has(wire.metric.slots_busy, slots), 'all answer');
    assert.equal(rings(), slots);
    for (const worker of children_of(server)) process.kill(worker, 'SIGKILL');
    for (const chunks of await Promise.all(read)) {
      assert.equal(chunks.at(-1).end, true);
      assert.match(chunks.at(-1).error.message, /SIGKILL/);
    }
    await until(() => children_of(server).length === slots, 'others take their places');
  }
  server.agent.destroy();
  // The first count may have had a connection that was being closed.
  await until(() => server.descriptors() <= descriptors && rings() === slots, 'nothing is left');
});
