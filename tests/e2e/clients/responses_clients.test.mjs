// The model's events of an agent are a stream of the Responses API: they fit the types of the npm
// package `openai`, and its client and that of `ai` with `@ai-sdk/openai` read them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { dynamicTool, jsonSchema, streamText } from 'ai';
import OpenAI from 'openai';
import { record_runs, responses_of } from '../lib/recorded_runs.mjs';
import { delta, kStop, start_api, words } from '../lib/remote_api.mjs';
import { clean_environment, program, root } from '../lib/server.mjs';
import { check_types } from '../lib/type_check.mjs';

// What ours have besides: what they are of, and a name that the API documents and the types lack.
const kWanted = `
import type OpenAI from 'openai';
type Event = OpenAI.Responses.ResponseStreamEvent;
type CallDone = OpenAI.Responses.ResponseFunctionCallArgumentsDoneEvent;
type Named = Exclude<Event, CallDone> | (CallDone & { name: string });
type Wanted = Named & { run_id: string; turn: number };
`;

const runs = await record_runs({ after });
const responses = Object.entries(runs).flatMap(([name, events]) =>
  responses_of(events).map((response, index) => ({
    name: `${name}, answer ${index + 1}`,
    response,
  })),
);

// What the events say, piece by piece.
function said_in(response) {
  const joined = (type) =>
    response
      .filter((event) => event.type === type)
      .map(({ delta }) => delta)
      .join('');
  const items = response
    .filter(({ type }) => type === 'response.output_item.done')
    .map(({ item }) => item);
  return {
    text: joined('response.output_text.delta'),
    reasoning: joined('response.reasoning_text.delta'),
    calls: items.filter(({ type }) => type === 'function_call'),
    response: response.at(-1).response,
  };
}

// A server that answers with the events of a response.
const serve = (t, response) =>
  start_api(t, (_, reply) => reply.done(...response), { path: '/responses' });

// What the stream of `openai` makes of a reply: {final, seen}, seen are the types of the events.
async function read_with_openai({ url }) {
  const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
  const stream = client.responses.stream({ model: 'any', input: 'Go on' });
  const seen = [];
  stream.on('event', ({ type }) => seen.push(type));
  return { final: await stream.finalResponse(), seen };
}

const any_tool = dynamicTool({ description: 'Any', inputSchema: jsonSchema({ type: 'object' }) });

// What `ai` makes of it: a function that returns the parts of a type.
async function read_with_ai({ url }) {
  const provider = createOpenAI({ baseURL: url, apiKey: 'none' });
  const { stream } = streamText({
    model: provider.responses('any'),
    prompt: 'Go on',
    tools: { add: any_tool, stream_numbers: any_tool },
    maxRetries: 0,
    onError: () => {}, // it prints them otherwise
  });
  const parts = [];
  for await (const part of stream) parts.push(part);
  return (type) => parts.filter((part) => part.type === type);
}

const text_of = (parts) => parts.map(({ text }) => text).join('');

test('the runs have what the clients are to read', () => {
  const types = new Set(Object.values(runs).flat().map(({ type }) => type));
  for (const type of [
    ...['reasoning_text.done', 'output_text.done', 'function_call_arguments.done'],
    ...['completed', 'incomplete', 'failed'],
  ]) {
    assert.ok(types.has(`response.${type}`), type);
  }
  assert.ok(types.has('sluice:tool.reaction.done'));
  const statuses = new Set(responses.map(({ response }) => response.at(-1).response.status));
  assert.deepEqual([...statuses].sort(), ['cancelled', 'completed', 'failed', 'incomplete']);
  const [asked] = responses_of(runs['reasoning, text and two calls']).map(said_in);
  assert.equal(asked.reasoning, 'Two things.');
  assert.equal(asked.text, 'Grüß dich 🌊 "\\"\n');
  assert.deepEqual(
    asked.calls.map(({ name, arguments: given }) => [name, given]),
    [
      ['add', '{"a":2,"b":3}'],
      ['stream_numbers', '{"count":2}'],
    ],
  );
});

test('each event fits the types of openai', () => {
  const events = responses.flatMap(({ response }) => response);
  const done = responses[0].response.at(-1);
  const with_response = (changes) => ({ ...done, response: { ...done.response, ...changes } });
  // So that it shows if the compiler should not look.
  const unfit = [
    [with_response({ usage: null }), /'null' is not assignable to type 'ResponseUsage/],
    [with_response({ created_at: undefined }), /created_at/],
    [with_response({ incomplete_details: { reason: 'cancelled' } }), /"cancelled"' is not/],
    [{ ...done, surprise: 1 }, /surprise.* does not exist/],
  ];
  const wrong = check_types(kWanted, [...events, ...unfit.map(([event]) => event)]);
  events.forEach((event, index) => assert.equal(wrong[index], '', JSON.stringify(event)));
  unfit.forEach(([, message], index) => assert.match(wrong[events.length + index], message));
});

test('each event that ai reads fits the types of @ai-sdk/openai', () => {
  // The package keeps the type of a chunk to itself, so it is told to export it.
  const kChunk = 'OpenAIResponsesChunk';
  const dist = path.join(root, 'tests/node_modules/@ai-sdk/openai/dist');
  const own = readFileSync(path.join(dist, 'index.d.ts'), 'utf8');
  const files = { [path.join(dist, 'chunk.d.ts')]: `${own}\nexport type { ${kChunk} };\n` };
  const of_chunk = `import type { ${kChunk} as Chunk } from '${dist}/chunk.js';\n`;
  const events = responses.flatMap(({ response }) => response);

  const types = [...new Set(events.map(({ type }) => type))];
  const unknown = check_types(`${of_chunk}type Wanted = Chunk['type'];`, types, { files });
  const read = types.filter((_, index) => unknown[index] === '');
  assert.deepEqual(read.toSorted(), [
    'response.completed',
    'response.created',
    'response.failed',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.in_progress',
    'response.incomplete',
    'response.output_item.added',
    'response.output_item.done',
    'response.output_text.delta',
  ]);

  const seen = events.filter(({ type }) => read.includes(type));
  const done = responses[0].response.at(-1);
  const unfit = [
    [{ ...done, response: { ...done.response, usage: { input_tokens: '7' } } }, /'string' is not assignable/],
    [{ ...seen.find(({ type }) => type.endsWith('text.delta')), delta: 7 }, /'number' is not assignable/],
  ];
  const values = [...seen, ...unfit.map(([event]) => event)];
  const wrong = check_types(`${of_chunk}type Wanted = Chunk;`, values, { files, is_open: true });
  seen.forEach((event, index) => assert.equal(wrong[index], '', JSON.stringify(event)));
  unfit.forEach(([, message], index) => assert.match(wrong[seen.length + index], message));
});

describe('openai', { concurrency: true }, () => {
  for (const { name, response } of responses) {
    test(name, async (t) => {
      const { final, seen } = await read_with_openai(await serve(t, response));
      const said = said_in(response);
      assert.deepEqual(
        seen,
        response.map(({ type }) => type),
      );
      assert.equal(final.status, said.response.status);
      assert.equal(final.output_text, said.text);
      const of_type = (type) => final.output.filter((item) => item.type === type);
      assert.deepEqual(
        of_type('function_call').map(({ parsed_arguments: _, ...call }) => call),
        said.calls,
      );
      assert.equal(text_of(of_type('reasoning').flatMap(({ content }) => content)), said.reasoning);
      assert.deepEqual(final.usage, said.response.usage);
    });
  }
});

describe('ai', { concurrency: true }, () => {
  for (const { name, response } of responses) {
    test(name, async (t) => {
      const parts = await read_with_ai(await serve(t, response));
      const said = said_in(response);
      const { status } = said.response;
      assert.equal(text_of(parts('text-delta')), said.text);
      // Of reasoning it reads only summaries.
      assert.equal(parts('reasoning-delta').length, 0);
      // It does not ask whether a call was broken off, and finds that its arguments are no JSON.
      assert.deepEqual(
        parts('tool-call').map((part) => [
          ...[part.toolCallId, part.toolName, part.input, part.invalid ?? false],
        ]),
        said.calls.map(({ call_id, name: tool, arguments: given, status: how }) =>
          how === 'completed'
            ? [call_id, tool, JSON.parse(given), false]
            : [call_id, tool, given, true],
        ),
      );
      assert.equal(parts('error').length, status === 'failed' ? 1 : 0);
      // Of what was cancelled the API has no reason to tell.
      const reasons = {
        completed: said.calls.length > 0 ? 'tool-calls' : 'stop',
        incomplete: 'length',
        failed: 'error',
      };
      const [{ finishReason }] = parts('finish');
      if (status !== 'cancelled') assert.equal(finishReason, reasons[status]);
    });
  }
});

test('ai ignores the events with our prefix, and the stream of openai refuses them', async (t) => {
  const run = runs['the built-in model comments on a tool that runs'];
  const [, commented] = responses_of(run);
  const ours = run.filter(({ type }) => type.startsWith('sluice:'));
  const all = await serve(t, [commented[0], ...ours, ...commented.slice(1)]);
  const parts = await read_with_ai(all);
  assert.equal(text_of(parts('text-delta')), said_in(commented).text);
  assert.equal(parts('error').length, 0);
  await assert.rejects(read_with_openai(all), /Unhandled response stream event/);
});

test('openai reads each answer with what tools write meanwhile as messages', async (t) => {
  const kNotes = 'notif_';
  let heard;
  const wrote = new Promise((resolve) => (heard = resolve));
  const call = { index: 0, id: 'c1', function: { name: 'stream_numbers', arguments: '{"count":3}' } };
  const answers = [
    (reply) => reply.done(delta({ tool_calls: [call] }), delta({}, 'tool_calls')),
    async (reply) => {
      reply.send(...words('It '));
      await wrote;
      reply.done(...words('counts.'), ...kStop);
    },
  ];
  const last = (reply) => reply.done(...words('Done.'), ...kStop);
  const { url } = await start_api(t, (_, reply) => (answers.shift() ?? last)(reply));
  const child = spawn(program, ['agent', '--ui-events', '--policy', 'every=1', '--model', url, 'Go'], {
    cwd: root,
    env: clean_environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const events = [];
  for await (const line of createInterface({ input: child.stdout })) {
    events.push(JSON.parse(line));
    if (events.at(-1).item_id?.startsWith(kNotes) && events.at(-1).delta?.includes('6')) heard();
  }
  const is_end = ({ type }) => /^response\.(completed|incomplete|failed)$/.test(type);
  const with_notes = responses_of(events)
    .map((response) => response.slice(0, response.findIndex(is_end) + 1))
    .filter((response) => response.some(({ item_id }) => item_id?.startsWith(kNotes)));
  assert.ok(with_notes.length > 0);
  for (const response of with_notes) {
    const { final, seen } = await read_with_openai(await serve(t, response));
    assert.equal(final.output_text, response.at(-1).response.output_text);
    assert.equal(seen.length, response.length);
  }
});
