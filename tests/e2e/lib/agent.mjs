// Runs of `sluice agent`, their events, and models that a test scripts.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { run_program } from './server.mjs';

export const kDemo = 'stream up to 10 numbers, and tell me the last number of the sequence';

export const agent = (args, options) => run_program(['agent', ...args], options);

export async function events_of(args, options) {
  const { code, stdout, stderr } = await agent(['--json', ...args], options);
  return { code, stderr, events: stdout.trim().split('\n').map((line) => JSON.parse(line)) };
}

export const of_type = (events, type) => events.filter((event) => event.type === type);

// The text that a call has written.
export const output_of = (events, call_id) =>
  of_type(events, 'sluice:tool.output.delta')
    .filter((event) => event.call_id === call_id)
    .map((event) => event.delta)
    .join('');

// What holds for the events of each run.
export function check_stream(events) {
  events.forEach((event, index) => assert.equal(event.sequence_number, index));
  assert.equal(events[0].type, 'sluice:run.started');
  assert.equal(events.at(-1).type, 'sluice:run.done');
  let open = null;
  let items = 0;
  for (const event of events) {
    if (event.type === 'response.created') {
      assert.equal(open, null);
      open = event.response.id;
      items = 0;
    }
    if (event.type === 'response.output_item.added') assert.equal(event.output_index, items);
    if (event.type === 'response.output_item.done') assert.equal(event.output_index, items++);
    if (/^response\.(completed|incomplete|failed)$/.test(event.type)) {
      assert.equal(event.response.id, open);
      assert.equal(event.response.output.length, items);
      open = null;
    }
  }
  const started = of_type(events, 'sluice:tool.output.started').map((event) => event.call_id);
  const done = of_type(events, 'sluice:tool.output.done').map((event) => event.call_id);
  assert.deepEqual(done.sort(), started.sort());
}

// A model with the API of chat completions, whose answers are those of `script`: a function of the
// messages that returns {text} or {calls: [{name, arguments}]}.
export async function scripted_model(t, script) {
  const asked = [];
  const server = createServer((request, response) => {
    if (request.url.endsWith('/models')) {
      return response.end(JSON.stringify({ data: [{ id: 'scripted' }] }));
    }
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const { messages, tools } = JSON.parse(body);
      asked.push({ messages, tools });
      const answer = script(messages, asked.length);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const send = (delta, finish_reason = null) =>
        response.write(
          `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
        );
      if (answer.text) send({ role: 'assistant', content: answer.text });
      answer.calls?.forEach((call, index) =>
        send({
          tool_calls: [
            {
              index,
              id: `id_${asked.length}_${index}`,
              type: 'function',
              function: { name: call.name, arguments: JSON.stringify(call.arguments) },
            },
          ],
        }),
      );
      send({}, answer.calls ? 'tool_calls' : 'stop');
      response.end('data: [DONE]\n\n');
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}/v1`, asked };
}

// Each call of a tool is answered once, right behind it, as strict APIs demand.
export function check_history({ messages }) {
  for (let i = 0; i < messages.length; ++i) {
    if (messages[i].role === 'tool') assert.fail('a result without a call');
    for (const call of messages[i].tool_calls ?? []) {
      assert.equal(messages[++i].role, 'tool');
      assert.equal(messages[i].tool_call_id, call.id);
    }
  }
  assert.notEqual(messages.at(-1).role, 'assistant');
}
