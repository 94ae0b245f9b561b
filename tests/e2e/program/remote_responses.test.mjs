// A model that another server runs, asked by its Responses API: `--model-api responses`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { start_api } from '../lib/remote_api.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { run_program, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kFlags = ['--model-api', 'responses'];
const text = (delta) => ({ type: 'response.output_text.delta', item_id: 'm', delta });
const completed = (response) => ({ type: 'response.completed', response: { id: 'r', ...response } });
const kUsage = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 2 },
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 20 },
};
const start_responses = (t, answer, options) =>
  start_api(t, answer, { path: '/responses', ...options });

test('chat prints the answer of a Responses API', async (t) => {
  const api = await start_responses(t, (_, reply) => {
    reply.send(text('Grüß '), text('dich'), completed({ usage: kUsage }));
    reply.end(); // without [DONE]
  });
  const words = ['chat', '--json', ...kFlags, '--model', api.url, '--max-tokens', '9', 'Hello'];
  const { code, stdout, stderr } = await run_program(words);
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).text, 'Grüß dich');
  const [asked] = api.asked;
  assert.equal(asked.stream, true);
  assert.equal(asked.store, false);
  assert.equal(asked.max_output_tokens, 9);
  assert.deepEqual(asked.input.at(-1), { type: 'message', role: 'user', content: 'Hello' });
});

test('serve passes on reasoning, calls and usage of a Responses API', async (t) => {
  const item = { id: 'fc', type: 'function_call', call_id: 'call_7', name: 'add' };
  const api = await start_responses(t, (_, reply) => {
    reply.send(
      { type: 'response.reasoning_text.delta', item_id: 'rs', delta: 'Hm.' },
      text('Let me see'),
      { type: 'response.output_item.added', output_index: 1, item: { ...item, arguments: '' } },
      { type: 'response.function_call_arguments.delta', item_id: 'fc', delta: '{"a"' },
      { type: 'response.function_call_arguments.delta', item_id: 'fc', delta: ':1}' },
      {
        type: 'response.output_item.done',
        output_index: 1,
        item: { ...item, arguments: '{"a":1}' },
      },
      completed({ usage: kUsage }),
    );
    reply.end();
  });
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  const tools = [{ name: 'add', inputSchema: { type: 'object' } }];
  const messages = [
    { role: 'user', content: 'Add' },
    { role: 'assistant', tool_calls: [{ id: 'c1', name: 'add', arguments: { a: 0 } }] },
    { role: 'tool', tool_call_id: 'c1', content: '0' },
  ];
  const result = await client.call('run', { messages, tools });
  assert.equal(result.text, 'Let me see');
  assert.equal(result.reasoning, 'Hm.');
  assert.deepEqual(result.tool_calls, [{ name: 'add', arguments: { a: 1 } }]);
  assert.equal(result.finish_reason, 'tool_calls');
  assert.deepEqual(result.usage, {
    prompt_tokens: 7,
    cached_tokens: 2,
    completion_tokens: 30,
    reasoning_tokens: 20,
  });
  const [asked] = api.asked;
  assert.equal(asked.tools[0].name, 'add');
  assert.deepEqual(asked.input.slice(1), [
    { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":0}' },
    { type: 'function_call_output', call_id: 'c1', output: '0' },
  ]);
  assert.doesNotMatch(server.output, /made up for/);
});

test('errors of a Responses API are errors of the answer', async (t) => {
  const failed = { type: 'response.failed', response: { error: { message: 'out of memory' } } };
  const answers = [
    (reply) => reply.writeHead(400).end('{"error":{"message":"the context is full"}}'),
    (reply) => reply.writeHead(404).end('{"error":{"message":"File Not Found"}}'),
    (reply) => reply.done(text('a'), failed),
    (reply) => reply.done(text('a'), { type: 'error', code: 'x', message: 'too hot' }),
    (reply) => {
      reply.send(text('a'));
      setImmediate(() => reply.destroy());
    },
  ];
  const api = await start_responses(t, (_, reply) => answers.shift()(reply));
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  const fails = (pattern, params) =>
    assert.rejects(client.call('run', { prompt: 'x', ...params }), pattern);
  await fails(/HTTP 400: the context is full/);
  await fails(/HTTP 404: File Not Found.*--model-api chat/);
  await fails(/out of memory/);
  await fails(/too hot/);
  await fails(/before it was whole/);
});

test('what a Responses API does not have is refused', async (t) => {
  const api = await start_responses(t, () => {}, { models: [{ id: 'a', owned_by: 'somebody' }] });
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  await assert.rejects(client.call('run', { prompt: 'x', seed: 1 }), /--model-api chat/);
  assert.equal(api.asked.length, 0);
});

test('repairs are logged, each kind once', async (t) => {
  const api = await start_responses(t, (_, reply) => {
    reply.send(
      { type: 'response.output_item.added', item: { type: 'function_call', name: 'now' } },
      { type: 'response.function_call_arguments.delta', delta: '{}' },
      completed({}),
    );
    reply.end();
  });
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  for (let i = 0; i < 3; ++i) {
    const { tool_calls } = await client.call('run', { prompt: 'x' });
    assert.deepEqual(tool_calls, [{ name: 'now', arguments: {} }]);
  }
  await until(() => server.output.includes('made up for'), 'they are logged');
  const said = server.output.split('\n').filter((line) => line.includes('made up for'));
  assert.equal(said.length, 1);
  assert.match(said[0], /calls without an id of their own, pieces of calls that are not/);
});

test('who goes away is not answered by a Responses API either', async (t) => {
  const api = await start_responses(t, (_, reply) => reply.send(text('a')));
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  const { stream_id } = await client.call('run', { prompt: 'x', stream: true });
  await until(() => api.asked.length === 1, 'the model is asked');
  await client.call(...wire.abort(stream_id));
  await until(() => api.gone === 1, 'its server is told');
});
