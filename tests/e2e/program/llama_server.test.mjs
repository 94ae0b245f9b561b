// A real llama-server with the built-in model as the remote model, by each of its APIs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { check_stream, events_of, kDemo, of_type, output_of } from '../lib/agent.mjs';
import { start_llama_server } from '../lib/llama_server.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { run_program, start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const kTools = [
  {
    name: 'get_weather',
    description: 'Gets the weather of a city',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
];
const kQuestion = 'What is the weather in Paris?';

let llama;
const to_do = [];
before(async () => {
  llama = await start_llama_server({ after: (what) => to_do.push(what) });
});
after(async () => {
  for (const each of to_do) await each();
});

// A server of the program with the model behind `api`, and a client of it.
async function start(t, api) {
  const server = await start_server(t, ['--engine', 'llama', '--model', llama.url, '--model-api', api]);
  return { server, client: new HttpClient(server) };
}

async function busy_slots() {
  const slots = await (await fetch(`${llama.base}/slots`)).json();
  return slots.filter(({ is_processing }) => is_processing).length;
}

for (const api of ['chat', 'responses']) {
  test(`${api}: chat prints what the model of this machine says too`, async () => {
    const words = ['chat', '--json', '--temperature', '0', '--max-tokens', '60'];
    const remote = await run_program([...words, '--model', llama.url, '--model-api', api, 'Hello']);
    assert.equal(remote.code, 0, remote.stderr);
    const local = await run_program([...words, 'Hello']);
    const said = JSON.parse(remote.stdout);
    assert.equal(said.text, JSON.parse(local.stdout).text);
    assert.equal(said.finish_reason, 'stop');
    assert.ok(said.usage.prompt_tokens > 0 && said.usage.completion_tokens > 0);
  });

  test(`${api}: tokens come one by one, and the limit is told`, async (t) => {
    const { server, client } = await start(t, api);
    const { stream_id } = await client.call('run', {
      prompt: 'Hello',
      max_tokens: 6,
      temperature: 0,
      stream: true,
    });
    const chunks = [];
    let reply;
    do {
      reply = await client.call(...wire.poll(stream_id, chunks.length, 5000));
      chunks.push(...reply.chunks);
    } while (reply.has_more);
    const last = chunks.at(-1);
    assert.ok(chunks.length > 3, `${chunks.length} chunks`);
    assert.equal(last.finish_reason, 'length');
    assert.equal(last.usage.completion_tokens, 6);
    // Its Responses API says that such an answer is complete.
    const is_said = () => server.output.includes('answers that do not say why they end');
    if (api === 'responses') await until(is_said, 'that is logged');
    else assert.ok(!is_said());
  });

  test(`${api}: a call of a tool, and an answer with its result`, async (t) => {
    const { server, client } = await start(t, api);
    const options = { tools: kTools, temperature: 0 };
    const asked = await client.call('run', { prompt: kQuestion, ...options });
    assert.equal(asked.finish_reason, 'tool_calls');
    const [call] = asked.tool_calls;
    assert.deepEqual(asked.tool_calls, [{ name: 'get_weather', arguments: { city: 'Paris' } }]);
    const answered = await client.call('run', {
      messages: [
        { role: 'user', content: kQuestion },
        { role: 'assistant', content: asked.text, tool_calls: [call] },
        { role: 'tool', content: '{"temperature": "17 degrees", "sky": "sunny"}' },
      ],
      ...options,
    });
    assert.equal(answered.finish_reason, 'stop');
    assert.match(answered.text, /sunny|17/);
    assert.doesNotMatch(server.output, /made up for/);
  });

  test(`${api}: an agent calls a tool, and has its result`, async () => {
    const words = ['--model', llama.url, '--model-api', api, '--temperature', '0', kDemo];
    const { code, events, stderr } = await events_of(['--policy', 'pass', ...words]);
    assert.equal(code, 0, stderr);
    check_stream(events);
    const [{ model }] = of_type(events, 'sluice:run.started');
    assert.match(model, /sluice-tiny\.gguf$/);
    const [{ tool, arguments: given, call_id }] = of_type(events, 'sluice:tool.output.started');
    assert.deepEqual([tool, given], ['stream_numbers', { count: 10 }]);
    assert.equal(output_of(events, call_id), '2 4 6 8 10 12 14 16 18 20.');
    assert.equal(events.at(-1).output_text, 'The last number is 20.');
    assert.ok(events.at(-1).usage.output_tokens > 0);
  });

  test(`${api}: an agent shows it what a running tool has written`, async () => {
    const words = ['--model', llama.url, '--model-api', api, '--temperature', '0'];
    const prompt = 'stream up to 14 numbers, and tell me the last number of the sequence';
    const { code, events, stderr } = await events_of(['--policy', 'every=3', ...words, prompt]);
    assert.equal(code, 0, stderr);
    check_stream(events);
    assert.equal(of_type(events, 'sluice:tool.output.started').length, 1, 'it calls once');
    const shown = events.findIndex(({ type }) => type === 'sluice:tool.reaction.started');
    const done = events.findIndex(({ type }) => type === 'sluice:tool.output.done');
    assert.ok(shown > 0 && shown < done, 'the tool still ran');
    // How much it is shown at a time decides whether so small a model finds the last one.
    assert.match(events.at(-1).output_text, /number is \d/);
  });

  test(`${api}: schemas, grammars, stops and seeds reach it`, async (t) => {
    const { client } = await start(t, api);
    const schema = { type: 'object', properties: { n: { enum: [7] } }, required: ['n'] };
    const by_schema = await client.call('run', {
      prompt: 'Hello',
      json_schema: { ...schema, additionalProperties: false },
    });
    assert.deepEqual(JSON.parse(by_schema.text), { n: 7 });
    const by_grammar = await client.call('run', { prompt: 'Hello', grammar: 'root ::= "abcabc"' });
    assert.equal(by_grammar.text, 'abcabc');
    const stopped = await client.call('run', {
      prompt: 'Hello',
      grammar: 'root ::= "abcabc"',
      stop: 'c',
    });
    assert.equal(stopped.text, 'ab');
    const hot = { prompt: 'Tell me a story', temperature: 1.5, top_k: 100, max_tokens: 12 };
    const first = await client.call('run', { ...hot, seed: 1 });
    const again = await client.call('run', { ...hot, seed: 1 });
    assert.equal(again.text, first.text);
  });

  test(`${api}: what it refuses is said`, async (t) => {
    const { client } = await start(t, api);
    const long = 'word '.repeat(5000);
    await assert.rejects(client.call('run', { prompt: long }), /HTTP 400: .*context/);
  });

  test(`${api}: who goes away frees its slot`, async (t) => {
    const { client } = await start(t, api);
    const grammar = 'root ::= ("a" | "b")+';
    const { stream_id } = await client.call('run', { prompt: 'Hello', grammar, stream: true });
    await until(async () => (await busy_slots()) === 1, 'it answers');
    await client.call(...wire.abort(stream_id));
    await until(async () => (await busy_slots()) === 0, 'it has stopped');
  });
}

test('the doctor examines it', async () => {
  const { stdout } = await run_program(['doctor', '--model', llama.url, '--port', '0']);
  assert.match(stdout, /sluice-tiny\.gguf, \d+ tokens, run by another server/);
});

test('it offers no WebSocket, and what to do is said', async () => {
  const words = ['chat', '--model', llama.url, '--model-api', 'websocket', 'Hello'];
  const { code, stderr } = await run_program(words);
  assert.equal(code, 1);
  assert.match(stderr, /offers no WebSocket, ask it with --model-api responses, or chat/);
});
