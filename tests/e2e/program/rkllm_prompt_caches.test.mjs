// Prompt caches of models for an NPU that are written and loaded by themselves.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { abis, npu_files, npu_flags } from '../lib/npu.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { parse_metrics, run_program, start_server, temporary_folder, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const keys = { alice: 'alice-key-0123456789', bob: 'bob-key-0123456789' };
const key_flags = Object.entries(keys).flatMap(([name, key]) => ['--api-key', `${name}=${key}`]);
const as = (server, name) => new HttpClient(server, { key: keys[name] });

// A byte of a prompt is a token of these models.
const script = 'count\nsay one\n';
const template = {
  'chat_template.jinja':
    '{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}<|assistant|>',
};
const said = (content, role = 'user') => ({ role, content });
const question = (word) => [said(`${word} `.repeat(700))];
const goes_on = (word) => [...question(word), said('one', 'assistant'), said('And then?')];
const prompt_bytes = (word) => `<|user|>${`${word} `.repeat(700)}\n<|assistant|>`.length;

const ask = async (client, messages) => {
  const result = await client.call('run', { messages });
  assert.equal(wire.whole_text(result), 'one');
  return result.usage;
};
const loads = (files) => files.calls().split('load_prompt_cache').length - 1;
const cache_files = (folder) => readdirSync(folder).filter((name) => name.endsWith('.cache'));
// What the metrics say of prompt caches.
const metric = async (server, name) => {
  const headers = { Authorization: `Bearer ${keys.alice}` };
  const { body } = await server.request({ path: '/metrics', headers });
  const samples = parse_metrics(body.toString());
  return samples.find((each) => each.name === `sluice_engine_prompt_cache_${name}`).value;
};
const hits = (server) => metric(server, 'hits_total');

for (const abi of abis) {
  test(`clients that take turns have their prompts read once: ABI ${abi}`, async (t) => {
    const folder = path.join(temporary_folder(t), 'caches');
    const files = npu_files(t, script, template);
    const flags = [...npu_flags(files, abi), ...key_flags, '--prompt-cache-dir', folder];
    const start = () => start_server(t, flags, { env: files.env });
    const first = await start();
    await ask(as(first, 'alice'), question('water'));
    await ask(as(first, 'bob'), question('fire'));
    assert.equal(loads(files), 0);
    const usage = await ask(as(first, 'alice'), goes_on('water'));
    assert.equal(loads(files), 1);
    const has_figures = abi === '1.2.1' || abi === '1.3.0';
    assert.equal(usage.cached_tokens, has_figures ? prompt_bytes('water') : 0);
    assert.equal(await hits(first), 1);
    assert.equal(await metric(first, 'misses_total'), 2);
    await until(() => cache_files(folder).length === 2, 'both are kept');
    const bytes = cache_files(folder).map((name) => statSync(path.join(folder, name)).size);
    await until(
      async () => (await metric(first, 'bytes')) === bytes[0] + bytes[1],
      'they are counted',
    );

    const second = await run_program(['serve', ...flags, '--listen', '127.0.0.1:0'], {
      env: files.env,
    });
    assert.equal(second.code, 1);
    assert.match(second.stderr, /another process keeps its prompt caches there/);

    await first.stop();
    writeFileSync(path.join(folder, `${'0'.repeat(64)}.3.new`), 'left by a worker that was killed');
    const again = await start();
    assert.ok(!readdirSync(folder).some((name) => name.endsWith('.new')));
    await ask(as(again, 'alice'), goes_on('fire'));
    assert.equal(await hits(again), 0, 'it belongs to bob');
    await ask(as(again, 'bob'), question('earth'));
    await ask(as(again, 'bob'), goes_on('fire'));
    assert.equal(await hits(again), 1);
  });
}

test('who shares a name with others has no prompt caches', async (t) => {
  const folder = path.join(temporary_folder(t), 'caches');
  const files = npu_files(t, script, template);
  const flags = [...npu_flags(files, '1.3.0'), '--prompt-cache-dir', folder];
  const server = await start_server(t, flags, { env: files.env });
  for (const word of ['water', 'fire', 'water']) await ask(new HttpClient(server), question(word));
  assert.doesNotMatch(files.calls(), / save|load_prompt_cache/);
  assert.deepEqual(cache_files(folder), []);
});

test('a folder that others can use is refused', async (t) => {
  const folder = path.join(temporary_folder(t), 'caches');
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const files = npu_files(t, script, template);
  const flags = [...npu_flags(files, '1.3.0'), '--prompt-cache-dir', folder];
  const { code, stderr } = await run_program(['serve', ...flags], { env: files.env });
  assert.equal(code, 1);
  assert.match(stderr, /caches: others may use it; forbid that with chmod go-rwx/);
});
