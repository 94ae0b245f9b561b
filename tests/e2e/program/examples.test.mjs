// Runs each example as a separate process.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'node:test';
import { delta, kStop, start_api, words } from '../lib/remote_api.mjs';
import { clean_environment, program, run_program } from '../lib/server.mjs';

const kModern = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  progressToken: 'p',
};

// Runs the example `name` while `work` runs, and expects it to end without an error.
async function with_example(name, work) {
  const child = spawn(path.join(path.dirname(program), `example-${name}`), ['--listen', '127.0.0.1:0'], {
    env: clean_environment(),
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const url = await new Promise((resolve, reject) => {
    let printed = '';
    child.stderr.on('data', (text) => {
      printed += text;
      const match = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(printed);
      if (match) resolve(match[0]);
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${name} ended:\n${printed}`)));
  });
  try {
    await work((method, params, headers) => request(url, method, params, headers), url);
  } finally {
    child.kill('SIGTERM');
    assert.equal(await exited, 0);
  }
}

// Sends a request of 2026-07-28. Returns {status, challenge, result, error, events}: the answer,
// and the messages that came before it.
async function request(url, method, params, headers = {}) {
  const named = params.name ?? params.uri;
  const reply = await fetch(url, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(named && { 'mcp-name': named }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, _meta: kModern },
    }),
  });
  const body = await reply.text();
  const messages = reply.headers.get('content-type').startsWith('text/event-stream')
    ? [...body.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data))
    : [JSON.parse(body)];
  const { status } = reply;
  const challenge = reply.headers.get('www-authenticate');
  return { status, challenge, ...messages.pop(), events: messages };
}

function call(ask, name, given) {
  return ask('tools/call', { name, arguments: given });
}

describe('the examples', () => {
  test('hello adds', () =>
    with_example('hello', async (ask) => {
      const { result } = await call(ask, 'add', { a: 2, b: 3 });
      assert.deepEqual(result.structuredContent, { sum: 5 });
    }));

  test('typed-tools takes an order, and refuses what is none', () =>
    with_example('typed-tools', async (ask) => {
      const order = { items: [{ name: 'soup', count: 2 }], size: 'large' };
      const { result } = await call(ask, 'order', order);
      assert.deepEqual(result.structuredContent, { pieces: 2, price: 7 });
      const wrong = await call(ask, 'order', { items: [{ name: 'soup', count: 0 }] });
      assert.match(wrong.result.content[0].text, /arguments\.items\[0\]\.count/);
      const gone = await call(ask, 'order', { items: [{ name: 'unicorn' }] });
      assert.equal(gone.result.isError, true);
    }));

  test('streaming-tool shows its work', () =>
    with_example('streaming-tool', async (ask) => {
      const counted = await call(ask, 'count', { to: 3 });
      assert.deepEqual(counted.events.map(({ params }) => params.message), ['1\n', '2\n', '3\n']);
      assert.deepEqual(counted.result.structuredContent, { sum: 6 });
      const ground = await call(ask, 'grind', { to: 4 });
      assert.deepEqual(ground.events.map(({ params }) => params.progress), [1, 2, 3, 4]);
      assert.deepEqual(ground.result.structuredContent, { sum: 10 });
    }));

  test('agent sees what its tool writes, and says so while it runs', async (t) => {
    const dive = { name: 'dive', arguments: '{"meters":5}' };
    const api = await start_api(t, (body, reply) => {
      if (api.asked.length === 1) {
        const call = { index: 0, id: 'c', type: 'function', function: dive };
        return reply.done(delta({ tool_calls: [call] }), delta({}, 'tool_calls'));
      }
      const last = body.messages.at(-1).content;
      reply.done(...words(last.includes('bottom') ? 'It was deep.' : 'It gets dark.'), ...kStop);
    });
    const command = path.join(path.dirname(program), 'example-agent');
    const { code, stdout, stderr } = await run_program([api.url, 'Dive'], { command });
    assert.equal(code, 0, stderr);
    assert.equal(stdout.match(/\| \d m/g).length, 5);
    assert.match(stdout, /4 m, dark[^]*It gets dark\.[^]*It was deep\.[^]*completed/);
  });

  test('resources reads what a tool has written', () =>
    with_example('resources', async (ask) => {
      await call(ask, 'write_note', { name: 'todo', text: 'sleep' });
      const { result } = await ask('resources/read', { uri: 'note://by-name/todo' });
      assert.equal(result.contents[0].text, 'sleep');
      const prompt = await ask('prompts/get', { name: 'summarise', arguments: { name: 'todo' } });
      assert.equal(prompt.result.messages[0].content.text, 'Summarise this: sleep');
      const completed = await ask('completion/complete', {
        ref: { type: 'ref/resource', uri: 'note://by-name/{name}' },
        argument: { name: 'name', value: 'g' },
      });
      assert.deepEqual(completed.result.completion.values, ['groceries']);
      const missing = await ask('resources/read', { uri: 'note://by-name/none' });
      assert.equal(missing.error.code, -32602);
    }));

  test('elicitation asks, and goes on with the answer', () =>
    with_example('elicitation', async (ask) => {
      const asked = await call(ask, 'book_table', { guests: 2 });
      assert.equal(asked.result.resultType, 'input_required');
      const [key] = Object.keys(asked.result.inputRequests);
      const { result } = await ask('tools/call', {
        name: 'book_table',
        arguments: { guests: 2 },
        requestState: asked.result.requestState,
        inputResponses: { [key]: { action: 'accept', content: { name: 'Ada' } } },
      });
      assert.equal(result.content[0].text, 'A table for 2 is booked for Ada.');
    }));

  test('long-task is an ordinary call for who knows no tasks', () =>
    with_example('long-task', async (ask) => {
      const { result, events } = await call(ask, 'render', { steps: 2 });
      assert.equal(events.length, 2);
      assert.equal(result.content[0].text, 'Rendered in 2 steps');
    }));

  test('concurrency asks at once, and leaves out what is late', () =>
    with_example('concurrency', async (ask) => {
      const { result } = await call(ask, 'look_out', { name: 'Rome' });
      assert.deepEqual(result.structuredContent, { weather: 'sunny in Rome', traffic: 'unknown' });
    }));

  test('middleware refuses the fourth, and nothing else', () =>
    with_example('middleware', async (ask) => {
      for (let i = 0; i < 3; ++i) {
        assert.equal((await call(ask, 'buy', {})).result.content[0].text, 'Here you are.');
      }
      assert.equal((await call(ask, 'buy', {})).error.code, 429);
      assert.equal((await ask('tools/list', {})).result.tools.length, 1);
    }));

  test('authenticator lets in who has a ticket, and tells who it is', () =>
    with_example('authenticator', async (ask, url) => {
      const greet = (headers) => ask('tools/call', { name: 'greet', arguments: {} }, headers);
      const nobody = await greet({});
      assert.deepEqual([nobody.status, nobody.challenge], [401, 'Ticket']);
      const stranger = await greet({ 'x-ticket': 'made up' });
      assert.deepEqual([stranger.status, stranger.challenge], [403, null]);
      for (const [ticket, said] of [
        ['ticket-of-ann', 'Hello, ann.'],
        ['ticket-for-guests', 'Hello, whoever you are.'],
      ]) {
        const { result } = await greet({ 'x-ticket': ticket });
        assert.equal(result.content[0].text, said);
      }
      assert.equal((await fetch(new URL('/metrics', url))).status, 401);
      assert.equal((await fetch(new URL('/healthz', url))).status, 200);
    }));

  test('embedding does its work on the loop of the program', () =>
    with_example('embedding', async (ask) => {
      await call(ask, 'move', { by: 4 });
      const { result } = await call(ask, 'move', { by: 3 });
      assert.deepEqual(result.structuredContent, { x: 7 });
    }));

  test('testing runs its tests', () => {
    const tests = spawnSync(path.join(path.dirname(program), 'example-testing'));
    assert.equal(tests.stderr.toString(), '');
    assert.equal(tests.stdout.toString(), 'all tests passed\n');
    assert.equal(tests.status, 0);
  });
});
