// A model that another server runs: `sluice serve --model URL` and `sluice chat --model URL`, with a
// server that has the API of OpenAI and says what the test tells it to.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { delta, kStop, start_api, words } from '../lib/remote_api.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { run_program, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

test('chat prints the answer of a remote model', async (t) => {
  const api = await start_api(t, (_, reply) => reply.done(...words('Grüß ', 'dich'), ...kStop));
  const { code, stdout } = await run_program(['chat', '--model', api.url, '--max-tokens', '9', 'Hello']);
  assert.equal(code, 0);
  assert.match(stdout, /Grüß dich/);
  const [asked] = api.asked;
  assert.equal(asked.model, 'small');
  assert.equal(asked.max_tokens, 9);
  assert.deepEqual(asked.messages.at(-1), { role: 'user', content: 'Hello' });
});

test('serve passes on tokens as they come, with reasoning, calls and usage', async (t) => {
  let go_on;
  const api = await start_api(t, async (_, reply) => {
    reply.send(delta({ reasoning_content: 'Hm.' }), ...words('Let me '));
    await new Promise((resolve) => {
      go_on = resolve;
    });
    reply.done(
      ...words('see'),
      delta({ tool_calls: [{ index: 0, id: 'x', function: { name: 'add', arguments: '{"a"' } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
      delta({}, 'tool_calls'),
      kStop[1],
    );
  });
  const server = await start_server(t, ['--engine', 'llama', '--model', `${api.url}#small`]);
  const client = new HttpClient(server);
  const tools = [{ name: 'add', inputSchema: { type: 'object' } }];
  const { stream_id } = await client.call('run', { prompt: 'Add', tools, stream: true });
  const chunks = [];
  const read = async () => {
    const reply = await client.call(...wire.poll(stream_id, chunks.length, 5000));
    chunks.push(...reply.chunks);
    return reply;
  };
  // The beginning comes while the server still works on the rest.
  while (!chunks.some(({ delta: text }) => text?.includes('Let me'))) await read();
  go_on();
  let reply;
  do reply = await read();
  while (reply.has_more);
  const text = chunks.map(({ delta: said }) => said ?? '').join('');
  assert.equal(text, 'Let me see');
  const last = chunks.at(-1);
  assert.equal(last.finish_reason, 'tool_calls');
  assert.equal(last.usage.prompt_tokens, 7);
  assert.deepEqual(
    chunks.flatMap(({ tool_call }) => tool_call ?? []),
    [{ name: 'add', arguments: { a: 1 } }],
  );
  assert.deepEqual(api.asked[0].tools[0].function.name, 'add');
});

test('who goes away is not answered by the other server either', async (t) => {
  const api = await start_api(t, (_, reply) => reply.send(...words('a')));
  const server = await start_server(t, ['--engine', 'llama', '--model', api.url]);
  const client = new HttpClient(server);
  const { stream_id } = await client.call('run', { prompt: 'x', stream: true });
  await until(() => api.asked.length === 1, 'the model is asked');
  await client.call(...wire.abort(stream_id));
  await until(() => api.gone === 1, 'its server is told');
});

test('a key goes to the server; without it, what to set is said, with exit code 3', async (t) => {
  const api = await start_api(t, (_, reply) => reply.done(...words('Yes'), ...kStop), {
    key: 'secret-1',
  });
  const refused = await run_program(['chat', '--model', api.url, 'Hello']);
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, /HTTP 401: Incorrect API key provided. Set SLUICE_MODEL_KEY/);
  const answered = await run_program(['chat', '--model', api.url, 'Hello'], {
    env: { SLUICE_MODEL_KEY: 'secret-1', OPENAI_API_KEY: 'other' },
  });
  assert.equal(answered.code, 0, answered.stderr);
  // That of another service is not tried.
  const other = await run_program(['chat', '--model', api.url, 'Hello'], {
    env: { OPENAI_API_KEY: 'secret-1' },
  });
  assert.equal(other.code, 3);
});

test('errors of the other server are errors of the answer', async (t) => {
  const answers = [
    (reply) => reply.writeHead(400).end('{"error":{"message":"the context is full"}}'),
    (reply) => reply.done(...words('a'), { error: { message: 'out of memory' } }),
    (reply) => {
      reply.send(...words('a'));
      setImmediate(() => reply.destroy());
    },
  ];
  const api = await start_api(t, (_, reply) => answers.shift()(reply));
  const server = await start_server(t, ['--engine', 'llama', '--model', api.url]);
  const client = new HttpClient(server);
  const fails = (pattern) => assert.rejects(client.call('run', { prompt: 'x' }), pattern);
  await fails(/HTTP 400: the context is full/);
  await fails(/out of memory/);
  await fails(/before it was whole/);
});

test('a server that is busy is asked again', async (t) => {
  const api = await start_api(t, (_, reply) => {
    if (api.asked.length === 1) return reply.writeHead(503, { 'Retry-After': '0' }).end();
    return reply.done(...words('Yes'), ...kStop);
  });
  const { code, stdout } = await run_program(['chat', '--model', api.url, 'Hello']);
  assert.equal(code, 0);
  assert.match(stdout, /Yes/);
  assert.equal(api.asked.length, 2);
});

test('mistakes name what to do', async (t) => {
  const several = await start_api(t, () => {}, { models: [{ id: 'a' }, { id: 'b' }] });
  const unnamed = await run_program(['chat', '--model', several.url, 'Hello']);
  assert.equal(unnamed.code, 2);
  assert.match(unnamed.stderr, /several models; name one, as in .*\/v1#a\. It has a, b/);
  const unknown = await run_program(['chat', '--model', `${several.url}#c`, 'Hello']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /has no model "c", but a, b/);
  const nobody = await run_program(['chat', '--model', 'http://127.0.0.1:1/v1', 'Hello']);
  assert.equal(nobody.code, 4);
  const in_clear = await run_program(['chat', '--model', 'http://example.invalid/v1', 'Hello'], {
    env: { SLUICE_MODEL_KEY: 'secret-1' },
  });
  assert.equal(in_clear.code, 2);
  assert.match(in_clear.stderr, /a key is sent only over https/);
  assert.doesNotMatch(in_clear.stderr, /secret-1/);
  const query = '?key=secret-2';
  const keyed = await start_api(t, () => {}, { models: [{ id: 'a' }, { id: 'b' }], query });
  for (const url of ['https://me:secret-2@host.invalid/v1', `${keyed.url}${query}`]) {
    const { code, stderr, stdout } = await run_program(['chat', '--model', url, 'Hello']);
    assert.equal(code, 2);
    assert.doesNotMatch(stderr + stdout, /secret-2/);
  }
});

test('a key that is refused later on ends with 3, and what to set is said', async (t) => {
  const api = await start_api(t, (_, reply) => {
    reply.writeHead(401, { 'Content-Type': 'application/json' });
    reply.end(JSON.stringify({ error: { message: 'Incorrect API key provided' } }));
  });
  for (const via of ['poll', 'sse', 'ws', 'mcp']) {
    const { code, stderr } = await run_program(['chat', '--via', via, '--model', api.url, 'Hello']);
    assert.equal(code, 3, stderr);
    assert.match(stderr, /HTTP 401: Incorrect API key provided \(set SLUICE_MODEL_KEY, /);
    assert.doesNotMatch(stderr, /--key/);
  }
  const json = await run_program(['chat', '--json', '--model', api.url, 'Hello']);
  assert.equal(json.code, 3);
  assert.match(JSON.parse(json.stdout).error.message, /HTTP 401/);
  const wrong = await start_api(t, () => {}, { key: 'secret-4' });
  const env = { SLUICE_MODEL_KEY: 'secret-5' };
  const refused = await run_program(['chat', '--model', wrong.url, 'Hello'], { env });
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, /It refuses the key in SLUICE_MODEL_KEY/);
});

test('what the server repeats of the key is masked', async (t) => {
  const env = { SLUICE_MODEL_KEY: 'secret-3' };
  const refuse = (reply) => {
    reply.writeHead(401, { 'Content-Type': 'application/json' });
    reply.end(JSON.stringify({ error: { message: 'Not the key secret-3 again' } }));
  };
  const api = await start_api(t, (_, reply) => refuse(reply));
  const refused = await run_program(['chat', '--model', api.url, 'Hello'], { env });
  assert.match(refused.stderr + refused.stdout, /Not the key \*\*\* again/);
  const broken = await start_api(t, (_, reply) =>
    reply.done({ error: { message: 'secret-3 is wrong' } }),
  );
  const failed = await run_program(['chat', '--model', broken.url, 'Hello'], { env });
  assert.match(failed.stderr + failed.stdout, /\*\*\* is wrong/);
  for (const { stderr, stdout } of [refused, failed]) assert.doesNotMatch(stderr + stdout, /secret-3/);
});

test('what the server repeats of the query of its URL is masked', async (t) => {
  const query = '?key=secret-4711';
  const api = await start_api(
    t,
    (_, reply) => {
      reply.writeHead(400, { 'Content-Type': 'application/json' });
      reply.end(JSON.stringify({ error: { message: `not /v1/chat/completions${query}` } }));
    },
    { query },
  );
  const refused = await run_program(['agent', '--json', '--model', api.url + query, 'Hello']);
  assert.match(refused.stderr, /not \/v1\/chat\/completions\?key=\*\*\*/);
  assert.doesNotMatch(refused.stderr + refused.stdout, /secret-4711/);
});

test('an answer that is too long for the result of generate ends', async (t) => {
  const api = await start_api(t, (_, reply) => {
    const piece = words('x'.repeat(100_000));
    const go_on = () => {
      if (reply.destroyed) return;
      reply.send(...piece);
      setTimeout(go_on, 1);
    };
    go_on();
  });
  const server = await start_server(t, ['--engine', 'llama', '--model', api.url]);
  const words_ = ['call', server.mcp_url, 'generate', 'prompt=Hello', 'max_tokens=5'];
  const { code, stderr } = await run_program(words_);
  assert.equal(code, 1);
  assert.match(stderr, /too long for a tool's result/);
  await until(() => api.gone === 1, 'the request to the model ends');
});

test('a long call of a tool reaches chat over event streams', async (t) => {
  const text = 'y'.repeat(3 << 20);
  const call = { index: 0, id: 'a', function: { name: 'add', arguments: JSON.stringify({ text }) } };
  const api = await start_api(t, (_, reply) =>
    reply.done(delta({ tool_calls: [call] }), delta({}, 'tool_calls')),
  );
  const words_ = ['chat', '--json', '--model', api.url, 'Hello'];
  const { code, stdout, stderr } = await run_program(words_);
  assert.equal(code, 0, stderr.slice(0, 500));
  assert.ok(stdout.includes(text));
});

test('serve says which model it has without the key in its URL', async (t) => {
  const api = await start_api(t, () => {}, { query: '?api_key=secret-4' });
  const server = await start_server(t, ['--engine', 'llama', '--model', `${api.url}?api_key=secret-4`]);
  await until(() => /^model .*\/v1\?api_key=\*\*\*$/m.test(server.output), 'the model is named');
  assert.doesNotMatch(server.output, /secret-4/);
});

test('a query of the URL stays behind its path', async (t) => {
  const api = await start_api(t, (_, reply) => reply.done(...words('Yes'), ...kStop), { query: '?v=1' });
  const { code } = await run_program(['chat', '--model', `${api.url}?v=1`, 'Hello']);
  assert.equal(code, 0);
});

test('a server that drips the list of its models is given up', async (t) => {
  const server = createServer((_, reply) => {
    reply.write('{');
    const timer = setInterval(() => reply.write(' '), 500);
    reply.once('close', () => clearInterval(timer));
  });
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${server.address().port}/v1`;
  const { code, stderr } = await run_program(['chat', '--model', url, 'Hello']);
  assert.equal(code, 4);
  assert.match(stderr, /takes too long to list its models/);
});

test('the doctor examines a remote model', async (t) => {
  const api = await start_api(t, () => {});
  const { stdout } = await run_program(['doctor', '--model', api.url, '--port', '0']);
  assert.match(stdout, /small, 4096 tokens, run by another server/);
});
