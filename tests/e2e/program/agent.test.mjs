// `sluice agent`: a model sees what a tool writes while the tool runs. The tools are those of the demo,
// the model is the built-in one, or one that a test scripts.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  agent,
  check_history,
  check_stream,
  events_of,
  of_type,
  output_of,
  scripted_model,
} from '../lib/agent.mjs';
import { calling_model } from '../lib/calling_model.mjs';
import { delta, kStop, start_api, words } from '../lib/remote_api.mjs';
import {
  clean_environment,
  program,
  start_example,
  start_server,
  temporary_folder,
  until,
} from '../lib/server.mjs';

test('a remote model sees updates, asks for the state, and stops a tool', async (t) => {
  const model = await scripted_model(t, (messages, turn) => {
    if (turn === 1) return { calls: [{ name: 'stream_numbers', arguments: { count: 500 } }] };
    const last = messages.at(-1).content;
    if (turn === 2) {
      assert.match(last, /"status":"running".*"so_far":"2 /);
      return { text: 'It began.' };
    }
    const call_id = messages.find((message) => message.tool_calls).tool_calls[0].id;
    if (turn === 3) {
      const mark = `\\[tool update call_id=${call_id} tool=stream_numbers seq=\\d+\\.\\.\\d+ interim`;
      assert.match(last, new RegExp(mark));
      return { calls: [{ name: 'tool_status', arguments: { call_id } }] };
    }
    if (turn === 4) {
      assert.match(last, /"status":"running"/);
      return { calls: [{ name: 'tool_cancel', arguments: { call_id } }] };
    }
    return { text: /cancelled/.test(last) ? 'I stopped it.' : '[[pass]]' };
  });
  const { code, events, stderr } = await events_of([
    ...['--model', model.url, '--policy', 'stream_numbers:every=3'],
    'count until I say stop',
  ]);
  assert.equal(code, 0, stderr);
  check_stream(events);
  for (const asked of model.asked) check_history(asked);
  assert.equal(events.at(-1).output_text, 'I stopped it.');
  assert.equal(of_type(events, 'sluice:tool.output.done')[0].status, 'cancelled');
  assert.ok(of_type(events, 'sluice:tool.detached').length === 1);
});

test('two calls of one tool are told apart, and a third that is the same is refused', async (t) => {
  const model = await scripted_model(t, (messages, turn) => {
    const stream = (count) => ({ name: 'stream_numbers', arguments: { count } });
    if (turn === 1) return { calls: [stream(2), stream(4), stream(4)] };
    return { text: 'Done.' };
  });
  const { code, events, stderr } = await events_of([
    ...['--model', model.url, '--policy', 'pass'],
    'stream twice',
  ]);
  assert.equal(code, 0, stderr);
  const ids = of_type(events, 'sluice:tool.output.started').map((event) => event.call_id);
  assert.equal(ids.length, 2);
  assert.equal(output_of(events, ids[0]), '2 4.');
  assert.equal(output_of(events, ids[1]), '2 4 6 8.');
  const results = model.asked[1].messages.filter((message) => message.role === 'tool');
  assert.deepEqual(
    results.map((message) => message.content),
    [
      '2 4.',
      '2 4 6 8.',
      `The call was not made: the same call is running as ${ids[1]}; its result will follow`,
    ],
  );
});

test('a tool that may change something is not called unless somebody agrees', async (t) => {
  const server = await start_example(t, 'hello');
  const script = (messages, turn) =>
    turn === 1
      ? { calls: [{ name: 'add', arguments: { a: 2, b: 3 } }] }
      : { text: messages.at(-1).content };
  const refused = await events_of([
    ...['--model', (await scripted_model(t, script)).url, '--server', server.mcp_url],
    'add',
  ]);
  assert.match(refused.stderr, /add is not called, because it may change something; --yes allows it/);
  assert.match(refused.events.at(-1).output_text, /rejected/);
  const agreed = await events_of([
    ...['--model', (await scripted_model(t, script)).url, '--server', server.mcp_url, '--yes'],
    'add',
  ]);
  assert.match(agreed.events.at(-1).output_text, /"sum":5/);
});

test('a run is recorded and shown again', async (t) => {
  const trace = join(temporary_folder(t), 'run.jsonl');
  const first = await agent(['--trace', trace, 'stream 3 numbers and tell me the last one']);
  assert.equal(first.code, 0, first.stderr);
  assert.equal(statSync(trace).mode & 0o777, 0o600);
  const again = await agent(['--replay', trace, '--speed', '0']);
  assert.equal(again.code, 0, again.stderr);
  assert.equal(again.stdout, first.stdout);
  const lines = readFileSync(trace, 'utf8').trim().split('\n');
  check_stream(lines.map((line) => JSON.parse(line).event));
  const taken = await agent(['--trace', trace, 'hello']);
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /File exists/);
  const wrong = await agent(['--replay', import.meta.filename]);
  assert.equal(wrong.code, 2);
});

// A trace whose events come at these times, in milliseconds.
function trace_of(t, times) {
  const file = join(temporary_folder(t), 'run.jsonl');
  const lines = times.map((at, index) => {
    const event = { type: 'response.output_text.delta', sequence_number: index, delta: `${at} ` };
    return `${JSON.stringify({ at_us: at * 1000, event })}\n`;
  });
  writeFileSync(file, lines.join(''));
  return file;
}

test('a recorded run is shown as fast as it was, or at another speed', async (t) => {
  // How long it takes. No event comes before its time.
  const replay = async (times, ...speed) => {
    const factor = Number(speed.at(-1) ?? 1);
    const begun = performance.now();
    const early = [];
    let came = '';
    const on_stdout = (text) => {
      came += text;
      const at = Number(came.trim().split(' ').at(-1));
      if (factor > 0 && performance.now() - begun < at / factor) early.push(at);
    };
    const words = ['--replay', trace_of(t, times), ...speed];
    const { code, stdout, stderr } = await agent(words, { on_stdout });
    assert.equal(code, 0, stderr);
    assert.equal(stdout.trim(), times.join(' '));
    assert.deepEqual(early, [], `at speed ${factor}`);
    return performance.now() - begun;
  };
  const kFive = [0, 75_000, 150_000, 225_000, 300_000]; // longer than the program may run
  const slow = await replay(kFive, '--speed', '100');
  const fast = await replay(kFive, '--speed', '1000');
  assert.ok(slow >= 3000 && fast < slow, `${slow} ms at 100, ${fast} ms at 1000`);
  await replay([0, 400, 800]);
  await replay([0, 400, 800], '--speed', '0.5');
  await replay(kFive, '--speed', '0');
  const wrong = await agent(['--replay', trace_of(t, [0]), '--speed', '-1']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--speed: give a number; 0 is at once/);
});

test('an interrupt ends what is shown of a recorded run', async (t) => {
  const child = spawn(program, ['agent', '--replay', trace_of(t, [0, 300_000])], {
    env: clean_environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  child.kill('SIGINT');
  assert.deepEqual(await exited, [130, null]);
});

test('a signal cuts no line of the events, if their reader takes them', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    const trace = join(temporary_folder(t), 'run.jsonl');
    // More than waits between two programs, in an answer that does not end.
    const model = await start_api(t, (_, reply) => reply.send(...words('x'.repeat(900_000))));
    const child = spawn(
      program,
      ['agent', '--model', model.url, '--json', '--trace', trace, 'Go on'],
      { env: clean_environment(), stdio: ['ignore', 'pipe', 'inherit'] },
    );
    t.after(() => child.kill('SIGKILL'));
    const closed = once(child, 'close');
    let seen = '';
    let is_sent = false;
    child.stdout.setEncoding('utf8').on('data', (text) => {
      seen += text;
      if (!is_sent && text.includes('xxx')) is_sent = child.kill(signal);
    });
    assert.deepEqual(await closed, [130, null]);
    const events = seen.trimEnd().split('\n').map((line) => JSON.parse(line));
    check_stream(events);
    assert.equal(events.at(-1).status, 'cancelled');
    const recorded = readFileSync(trace, 'utf8').trimEnd().split('\n');
    assert.deepEqual(JSON.parse(recorded.at(-1)).event, events.at(-1));
  }
});

test('a trace has its end although nobody reads the events', async (t) => {
  const trace = join(temporary_folder(t), 'run.jsonl');
  const model = await start_api(t, (_, reply) => reply.send(...words('x'.repeat(900_000))));
  const child = spawn(
    program,
    ['agent', '--model', model.url, '--json', '--trace', trace, 'Go on'],
    { env: clean_environment(), stdio: ['ignore', 'pipe', 'inherit'] },
  );
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  await until(() => existsSync(trace) && readFileSync(trace, 'utf8').includes('xxx'), 'it says it');
  child.kill('SIGTERM');
  assert.deepEqual(await exited, [130, null]);
  const recorded = readFileSync(trace, 'utf8').trimEnd().split('\n');
  assert.equal(JSON.parse(recorded.at(-1)).event.type, 'sluice:run.done');
});

test('limits and what goes wrong are said', async (t) => {
  const endless = await scripted_model(t, (messages, turn) =>
    turn > 3
      ? { text: 'That is all.' }
      : { calls: [{ name: 'add', arguments: { a: turn, b: 1 } }] },
  );
  const { code, events, stderr } = await events_of([
    ...['--model', endless.url, '--max-turns', '3'],
    'go on',
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /budget: turns/);
  assert.equal(of_type(events, 'sluice:run.budget').length, 1);
  assert.equal(events.at(-1).status, 'incomplete');
  assert.equal(events.at(-1).output_text, 'That is all.');
  assert.equal(endless.asked.at(-1).tools, undefined);

  for (const [args, text, status] of [
    [['--policy', 'sometimes', 'x'], /--policy: "sometimes": give pass, chunk/, 2],
    [['--policy', 'match=(', 'x'], /no regular expression/, 2],
    [['--policy', 'nothing{"n":1}:chunk', 'x'], /There is no tool nothing, which has a policy/, 2],
    [['--grace', 'soon', 'x'], /--grace: "soon": give \[TOOL:\]TIME/, 2],
    [['--grace', 'nothing:1s', 'x'], /There is no tool nothing, which has a grace/, 2],
    [['--max-turns', '0', 'x'], /--max-turns/, 2],
    [['--max-cost', '1', 'x'], /--max-cost needs --price/, 2],
    [['--max-cost', '', 'x'], /--max-cost/, 2],
    [['--max-cost', '-1', '--price', '1,1', 'x'], /--max-cost: give a number above 0/, 2],
    [['--max-cost', 'nan', '--price', '1,1', 'x'], /--max-cost/, 2],
    [['--price', '1,-1', 'x'], /--price: give PROMPT,COMPLETION/, 2],
    [['--reaction-price', '1,1', 'x'], /--reaction-price belongs to --reaction-model/, 2],
    [['--server', 'http://127.0.0.1:1/mcp', 'x'], /./, 4],
    [['--revision', '2020-01-01', '--server', 'http://127.0.0.1:1/mcp', 'x'], /--revision: give/, 2],
    [['--server', 'no-such-name', 'x'], /no-such-name/, 2],
    [[], /there is no prompt/, 2],
  ]) {
    const failed = await agent(args);
    assert.equal(failed.code, status, args.join(' '));
    assert.match(failed.stderr, text);
  }
});

test('a run ends when it has cost as much as it may', async (t) => {
  const add = (a) => ({
    index: 0,
    id: `call_${a}`,
    type: 'function',
    function: { name: 'add', arguments: JSON.stringify({ a, b: 1 }) },
  });
  const [, usage] = kStop; // 7 tokens are read, 3 written
  const model = await start_api(t, ({ messages, tools }, reply) =>
    tools === undefined
      ? reply.done(...words('That is all.'), ...kStop)
      : reply.done(
          delta({ tool_calls: [add(messages.length)] }),
          delta({}, 'tool_calls'),
          usage,
        ),
  );
  const { code, events, stderr } = await events_of([
    ...['--model', model.url, '--price', '1000000,2000000', '--max-cost', '20'],
    'go on',
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /budget: cost/);
  assert.deepEqual(
    of_type(events, 'sluice:run.budget').map(({ budget }) => budget),
    ['cost'],
  );
  assert.equal(model.asked.length, 3, 'two answers cost 26');
  assert.equal(events.at(-1).output_text, 'That is all.');
  assert.equal(events.at(-1).usage.cost, 39);
});

test('a session goes on, and can be forgotten', async (t) => {
  const env = { XDG_STATE_HOME: temporary_folder(t) };
  const model = await scripted_model(t, (messages) => ({ text: `Heard ${messages.length}.` }));
  const talk = (...args) =>
    agent(['--model', model.url, '--session', 'talk', ...args], { env });
  assert.equal((await talk('Hello')).stdout.trim(), 'Heard 2.');
  assert.equal((await talk('Again')).stdout.trim(), 'Heard 4.');
  assert.deepEqual(
    model.asked[1].messages.slice(1).map(({ content }) => content),
    ['Hello', 'Heard 2.', 'Again'],
  );
  assert.equal((await talk('--new', 'Hello')).stdout.trim(), 'Heard 2.');
  // What is kept goes only once there is something to take its place.
  assert.equal((await talk('--new')).code, 2, 'there is no prompt');
  const nowhere = ['--model', 'http://127.0.0.1:1/v1', '--session', 'talk', '--new', 'Hello'];
  assert.equal((await agent(nowhere, { env })).code, 4);
  const over = await talk();
  assert.equal(over.code, 0, over.stderr);
  assert.equal(model.asked.length, 3, JSON.stringify(model.asked[3]?.messages));
  assert.equal(statSync(join(env.XDG_STATE_HOME, 'sluice/agent.db')).mode & 0o777, 0o600);
  for (const name of ['../x', '']) {
    const wrong = await agent(['--session', name, 'Hello'], { env });
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /--session: a name has/);
  }
});

test('a session whose program was killed goes on without doing anything twice', async (t) => {
  const env = { XDG_STATE_HOME: temporary_folder(t) };
  const { mcp_url } = await start_example(t, 'streaming-tool');
  const model = await scripted_model(t, (messages, number) =>
    number === 1
      ? { calls: [{ name: 'count', arguments: { to: 100000 } }] }
      : { text: messages.at(-1).content },
  );
  const args = ['--model', model.url, '--server', mcp_url, '--policy', 'pass', '--session', 'work'];
  const child = spawn(program, ['agent', ...args, '--yes', 'Count'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const { code, stdout, stderr } = await agent(args, { env });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /not known whether the call was carried out/);
  assert.equal(model.asked.length, 2);
  check_history(model.asked[1]);
});

test('a call is taken up at its server, in whatever order servers are named', async (t) => {
  const env = { XDG_STATE_HOME: temporary_folder(t) };
  // Both have the same tools.
  const [one, two] = [await start_example(t, 'relay'), await start_example(t, 'relay')];
  const model = await scripted_model(t, (messages, number) =>
    number === 1
      ? { calls: [{ name: 'stream_numbers', arguments: { count: 20 } }] }
      : { text: messages.at(-1).content },
  );
  const args = (key, ...servers) => [
    ...['--model', model.url, '--policy', 'pass', '--session', 'work', '--revision', '2025-11-25'],
    ...servers.flatMap(({ mcp_url }) => ['--server', `${mcp_url}?key=${key}`]),
  ];
  const child = spawn(program, ['agent', ...args('old', one, two), 'Stream'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let seen = '';
  while (!/\| 2 /.test(seen)) seen += (await once(child.stdout, 'data'))[0];
  child.kill('SIGKILL');
  await once(child, 'exit');
  const { code, events, stderr } = await events_of(args('new', two, one), { env });
  assert.equal(code, 0, stderr);
  const [{ tool, server }] = of_type(events, 'sluice:tool.output.started');
  assert.deepEqual([tool, server], ['stream_numbers', new URL(one.mcp_url).host]);
  const [{ status, text }] = of_type(events, 'sluice:tool.output.done');
  assert.equal(status, 'completed', text);
  assert.match(text, /^2 4 .* 40\.$/);
  assert.ok(of_type(events, 'sluice:tool.output.delta').every(({ restart }) => !restart));
  check_history(model.asked[1]);
});

test('the spans of a run reach a collector of OpenTelemetry, in the trace of the environment', async (t) => {
  const got = [];
  const collector = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      got.push({ url: request.url, key: request.headers['api-key'], body: JSON.parse(body) });
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
  });
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  t.after(() => collector.close());
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const { code, stderr } = await agent(['stream up to 4 numbers, and tell me the last one'], {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address().port}`,
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key',
      OTEL_SERVICE_NAME: 'numbers',
      TRACEPARENT: `00-${trace}-b7ad6b7169203331-01`,
    },
  });
  assert.equal(code, 0, stderr);
  const spans = [];
  for (const { url, key, body } of got) {
    assert.equal(url, '/v1/traces');
    assert.equal(key, 'a key');
    const [of_resource] = body.resourceSpans;
    const name = of_resource.resource.attributes.find(({ key }) => key === 'service.name');
    assert.equal(name.value.stringValue, 'numbers');
    spans.push(...of_resource.scopeSpans[0].spans);
  }
  const run = spans.find((span) => span.name === 'invoke_agent agent');
  assert.equal(run.parentSpanId, 'b7ad6b7169203331');
  const call = spans.find((span) => span.name === 'execute_tool stream_numbers');
  assert.equal(call.parentSpanId, run.spanId);
  assert.ok(spans.some((span) => span.name.startsWith('chat ')));
  for (const span of spans) {
    assert.equal(span.traceId, trace);
    assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
  }
  const wrong = await agent(['Hello', '--otlp', 'localhost:4318']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--otlp: the URL of the collector/);
});

test('an interface that knows the Responses API alone sees what tools write', async (t) => {
  const { code, stdout, stderr } = await agent(['--ui-events', 'stream up to 4 numbers, and tell me the last one']);
  assert.equal(code, 0, stderr);
  const events = stdout.trim().split('\n').map((line) => JSON.parse(line));
  assert.ok(events.every(({ type }) => type.startsWith('response.')));
  const tool = events.filter(({ item_id }) => item_id?.startsWith('notif_'));
  const text = of_type(tool, 'response.output_text.delta').map(({ delta }) => delta).join('');
  assert.equal(text.trim(), '2 4 6 8.');
  const done = of_type(tool, 'response.output_text.done');
  assert.equal(done.map((event) => event.text).join(''), text);
});

test('spans that no collector takes are said to be dropped', async (t) => {
  const collector = createServer((request, response) => response.writeHead(400).end());
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  t.after(() => collector.close());
  const url = `http://127.0.0.1:${collector.address().port}/base?key=k`;
  const urls = [];
  collector.on('request', (request) => urls.push(request.url));
  const { code, stderr } = await agent(['--otlp', url, 'Hello']);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /spans were dropped.*status 400/);
  assert.deepEqual([...new Set(urls)], ['/base/v1/traces?key=k']);
});

test('the key of the model is not for the server of the one that reacts', async (t) => {
  const keys = [];
  const start = async (name) => {
    const server = createServer((request, response) => {
      keys.push([name, request.headers.authorization]);
      response.writeHead(404).end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    return `http://127.0.0.1:${server.address().port}/v1`;
  };
  const model = await scripted_model(t, () => ({ text: 'Hello' }));
  const env = { SLUICE_MODEL_KEY: 'one', SLUICE_REACTION_MODEL_KEY: '' };
  const refused = (url, more) =>
    agent(['--model', model.url, '--reaction-model', url, 'Hello'], { env: { ...env, ...more } });
  await refused(await start('other'), {});
  await refused(await start('its own'), { SLUICE_REACTION_MODEL_KEY: 'two' });
  assert.ok(keys.length >= 2);
  for (const [name, key] of keys) assert.equal(key, name === 'other' ? undefined : 'Bearer two');
  const nowhere = await refused('http://[', {});
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.stderr, /--reaction-model http:\/\/\[: /);
});

test('options that mean nothing together are refused', async () => {
  for (const args of [
    ['--replay', 'any', '--ui-events'],
    ['--engine', 'synthetic', '--reaction-model', 'any', 'Hello'],
  ]) {
    const { code, stderr } = await agent(args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /does not go with/);
  }
});

// What a process has used, in ticks.
const cpu_time = ({ pid }) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return Number(fields[11]) + Number(fields[12]);
};

// The program's reader does not read while the tool has written everything.
for (const [kind, words] of [
  ['stdio', () => ['--', program, 'serve', '--stdio', '--engine', 'synthetic']],
  ['HTTP', async (t) => ['--server', (await start_server(t)).mcp_url]],
]) {
  test(`a slow reader of an agent loses nothing of a tool, over ${kind}`, async (t) => {
    const kChunks = 60_000;
    const model = await calling_model(t, ['stream_numbers', { count: kChunks, interval_ms: -1 }]);
    const child = spawn(
      program,
      ['agent', '--json', '--yes', '--model', model.url, 'Count', ...(await words(t))],
      { env: clean_environment(), stdio: ['ignore', 'pipe', 'inherit'] },
    );
    t.after(() => child.kill('SIGKILL'));
    let used = [];
    await until(() => {
      used = [...used.slice(-9), cpu_time(child)];
      return used.length === 10 && used.every((time) => time === used[0] && time > 0);
    }, 'the agent waits for its reader');
    let text = '';
    child.stdout.setEncoding('utf8');
    for await (const part of child.stdout) text += part;
    const events = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    check_stream(events);
    const deltas = of_type(events, 'sluice:tool.output.delta');
    assert.ok(deltas.every(({ dropped }) => !dropped));
    assert.equal(deltas.at(-1).last + 1 - deltas[0].first, kChunks);
  });
}
