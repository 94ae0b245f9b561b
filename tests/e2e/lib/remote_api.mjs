// A server that has the API of OpenAI and says what the test tells it to.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';

const kModels = [{ id: 'small', object: 'model', owned_by: 'llamacpp', meta: { n_ctx: 4096 } }];
export const delta = (members, finish_reason = null) => ({
  choices: [{ index: 0, delta: members, finish_reason }],
});
export const words = (...texts) => texts.map((content) => delta({ content }));
export const kStop = [
  delta({}, 'stop'),
  { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } },
];

// `answer(body, reply)` writes the reply to a request at `path`; `send` of the reply writes events.
export async function start_api(t, answer, { models = kModels, key, query = '', path = '/chat/completions' } = {}) {
  const api = { asked: [], gone: 0 };
  const server = createServer(async (request, reply) => {
    if (key !== undefined && request.headers.authorization !== `Bearer ${key}`) {
      reply.writeHead(401, { 'Content-Type': 'application/json' });
      return reply.end(JSON.stringify({ error: { message: 'Incorrect API key provided' } }));
    }
    if (request.url === `/v1/models${query}`) return reply.end(JSON.stringify({ data: models }));
    assert.equal(request.url, `/v1${path}${query}`);
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    api.asked.push(JSON.parse(body));
    reply.once('close', () => {
      if (!reply.writableFinished) ++api.gone;
    });
    reply.send = (...events) => {
      if (!reply.headersSent) reply.writeHead(200, { 'Content-Type': 'text/event-stream' });
      for (const event of events) {
        const name = event.type === undefined ? '' : `event: ${event.type}\n`;
        reply.write(`${name}data: ${JSON.stringify(event)}\n\n`);
      }
    };
    reply.done = (...events) => {
      reply.send(...events);
      reply.end('data: [DONE]\n\n');
    };
    await answer(JSON.parse(body), reply);
  });
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  api.url = `http://127.0.0.1:${server.address().port}/v1`;
  return api;
}
