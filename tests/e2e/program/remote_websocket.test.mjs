// A model that another server runs, asked over a WebSocket: `--model-api websocket`. The stand-in
// follows what OpenAI documents of the WebSocket mode of its Responses API.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { HttpClient } from '../lib/rpc.mjs';
import { run_program, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kFlags = ['--model-api', 'websocket'];
const kModels = { data: [{ id: 'small', owned_by: 'somebody' }] };
const text = (delta) => ({ type: 'response.output_text.delta', item_id: 'm', delta });

// `answer(request, say)` answers a response.create; it has the last response's id of its connection
// as `request.known`, the only one that such a server remembers.
async function start_socket_api(t, answer, { key } = {}) {
  const api = { asked: [], connections: 0, open: 0 };
  const is_allowed = ({ headers }) => key === undefined || headers.authorization === `Bearer ${key}`;
  const server = createServer((request, reply) => {
    assert.equal(request.url, '/v1/models');
    reply.end(JSON.stringify(kModels));
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    assert.equal(request.url, '/v1/responses');
    if (!is_allowed(request)) return socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
    return sockets.handleUpgrade(request, socket, head, (client) => {
      ++api.connections;
      ++api.open;
      let known;
      const say = (...events) => {
        for (const event of events) client.send(JSON.stringify(event));
      };
      client.on('close', () => --api.open);
      client.on('message', async (message) => {
        const body = JSON.parse(message);
        assert.equal(body.type, 'response.create');
        api.asked.push(body);
        const { previous_response_id: previous } = body;
        if (previous !== undefined && previous !== known) {
          const error = { code: 'previous_response_not_found', message: 'It is not known' };
          return say({ type: 'error', status: 400, error });
        }
        const id = `r${api.asked.length}`;
        say({ type: 'response.created', response: { id, status: 'in_progress', error: null } });
        if ((await answer(body, say)) === false) return undefined;
        known = id;
        return say({
          type: 'response.completed',
          response: { id, status: 'completed', usage: { input_tokens: 7, output_tokens: 3 } },
        });
      });
    });
  });
  t.after(() => {
    for (const client of sockets.clients) client.terminate();
    server.close();
    server.closeAllConnections();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  api.url = `http://127.0.0.1:${server.address().port}/v1`;
  return api;
}

test('chat prints an answer over a WebSocket', async (t) => {
  const api = await start_socket_api(t, (_, say) => say(text('Grüß '), text('dich')), {
    key: 'secret-1',
  });
  const words = ['chat', '--json', ...kFlags, '--model', api.url, '--max-tokens', '9', 'Hello'];
  const env = { SLUICE_MODEL_KEY: 'secret-1' };
  const { code, stdout, stderr } = await run_program(words, { env });
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).text, 'Grüß dich');
  assert.equal(JSON.parse(stdout).usage.prompt_tokens, 7);
  const [asked] = api.asked;
  assert.equal(asked.stream, undefined);
  assert.equal(asked.store, false);
  assert.equal(asked.max_output_tokens, 9);
  const refused = await run_program(words);
  assert.equal(refused.code, 3, refused.stderr);
  assert.match(JSON.parse(refused.stdout).error.message, /HTTP 401/);
});

test('a conversation goes on over its connection with what is new', async (t) => {
  const item = { id: 'fc', type: 'function_call', call_id: 'call_7', name: 'add', arguments: '' };
  const api = await start_socket_api(t, ({ input }, say) => {
    const last = input.at(-1);
    if (last.type === 'function_call_output') return say(text(`It is ${last.output}`));
    return say(
      text('Let me see'),
      { type: 'response.output_item.added', output_index: 1, item },
      { type: 'response.function_call_arguments.delta', item_id: 'fc', delta: '{"a":1}' },
      { type: 'response.output_item.done', item: { ...item, arguments: '{"a":1}' } },
    );
  });
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  const tools = [{ name: 'add', inputSchema: { type: 'object' } }];
  const messages = [{ role: 'user', content: 'Add' }];
  const asked = await client.call('run', { messages, tools });
  assert.equal(asked.finish_reason, 'tool_calls');
  messages.push({ role: 'assistant', content: asked.text, tool_calls: asked.tool_calls });
  messages.push({ role: 'tool', content: '2' });
  const answered = await client.call('run', { messages, tools });
  assert.equal(answered.text, 'It is 2');
  messages.push({ role: 'assistant', content: answered.text });
  messages.push({ role: 'user', content: 'Again' });
  await client.call('run', { messages, tools });
  assert.equal(api.connections, 1);
  assert.deepEqual(
    api.asked.map(({ previous_response_id }) => previous_response_id),
    [undefined, 'r1', 'r2'],
  );
  // The client was told no id, but the server is told its own one.
  const result = { type: 'function_call_output', call_id: 'call_7', output: '2' };
  assert.deepEqual(api.asked[1].input, [result]);
  assert.deepEqual(api.asked[2].input, [{ type: 'message', role: 'user', content: 'Again' }]);
  // A conversation that began otherwise is told as a whole, over another connection.
  await client.call('run', { messages: [{ role: 'system', content: 'x' }, ...messages], tools });
  assert.equal(api.connections, 2);
  assert.equal(api.asked.at(-1).previous_response_id, undefined);
});

test('who goes away closes the connection of the answer', async (t) => {
  const api = await start_socket_api(t, (_, say) => {
    say(text('a'));
    return false;
  });
  const server = await start_server(t, ['--engine', 'llama', ...kFlags, '--model', api.url]);
  const client = new HttpClient(server);
  const { stream_id } = await client.call('run', { prompt: 'x', stream: true });
  await until(() => api.asked.length === 1, 'the model is asked');
  await client.call(...wire.abort(stream_id));
  await until(() => api.open === 0, 'its server is told');
});
