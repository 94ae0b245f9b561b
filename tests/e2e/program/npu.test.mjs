// Models for a Rockchip NPU, with a stand-in for its runtime. npu_lifecycle.test.mjs has what differs
// between the versions of the runtime.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { byte_vocabulary, library, npu_files, npu_script as kScript, npu_text as kText, start_npu } from '../lib/npu.mjs';
import {
  between_its_lines,
  http_client,
  run_in_node,
  run_stdio_client,
  with_address,
  ws_client,
  ws_client_is_done,
} from '../lib/original_clients.mjs';
import { push_stream } from '../lib/readers.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { program, run_program, start_server, temporary_folder } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

test('the original clients print an answer of the NPU', async (t) => {
  const server = await start_npu(t, '1.3.0', kScript);
  assert.equal(await run_in_node(with_address(http_client, server)), kText);
  const pushed = between_its_lines(
    await run_in_node(with_address(ws_client, server), ws_client_is_done),
  );
  assert.equal(pushed.text, kText);
});

test('the built-in model answers through the runtime as it does without', async (t) => {
  const server = await start_npu(t, '1.2.1', `pipe ${program} chat --quiet --temperature 0 -\n`);
  const direct = await start_server(t, ['--engine', 'llama']);
  const asked = { prompt: 'Tell me a story', temperature: 0 };
  const wanted = wire.whole_text(await new HttpClient(direct).call('run', asked));
  const { stream_id } = await new HttpClient(server).call('run', { prompt: asked.prompt, stream: true });
  const chunks = await push_stream(server, stream_id);
  assert.equal(wire.checked_text(chunks).trim(), wanted.trim());
  assert.ok(chunks.length > 2, `${chunks.length} chunks`);
});

test('the original client over standard streams hears from the NPU', async (t) => {
  const files = npu_files(t, kScript);
  const flags = ['--model', files.model, '--rkllm-library', library('1.3.0')];
  const { code, stdout } = await run_stdio_client(t, flags, files.env);
  assert.match(stdout, /STDIO Response received!/);
  assert.match(stdout, /LLMCallState: 4 items/);
  assert.match(stdout, /STDIO transport working!/);
  assert.equal(code, 0);
});

test('a model that cannot be loaded ends the program with the reason', async (t) => {
  const files = npu_files(t, kScript);
  const serve = (...flags) =>
    run_program(['serve', '--port', '0', '--model', files.model, ...flags], { env: files.env });
  const without = await serve('--rkllm-library', `${files.model}.so`);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /model\.rkllm\.so/);
  const text = await serve('--rkllm-library', files.model);
  assert.equal(text.code, 1);
  assert.match(text.stderr, /is no shared library/);
  const gone = await run_program(
    ['serve', '--port', '0', '--model', 'no.rkllm', '--rkllm-library', library('1.3.0')],
  );
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /There is no no\.rkllm/);
  const abi = await serve('--rkllm-abi', '9');
  assert.equal(abi.code, 2);
  assert.match(abi.stderr, /auto, 1\.1, 1\.2\.0, 1\.2\.1 or 1\.3\.0/);
});

// As a model at Hugging Face has it.
const kTokenizer = JSON.stringify({
  bos_token: null,
  eos_token: '<|im_end|>',
  added_tokens_decoder: {
    1: { content: '<|im_start|>', special: true },
    2: { content: '<|im_end|>', special: true },
    3: { content: '<tool_call>', special: false },
    4: { content: '</tool_call>', special: false },
  },
  chat_template: `{%- if tools %}<|im_start|>system
# Tools
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
For each call return <tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' and message.tool_calls %}<|im_start|>assistant
{{- message.content }}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`,
});

const kWeather = [
  {
    name: 'get_weather',
    description: 'Weather of a city',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
];

test('a model with its tokenizer_config.json has conversations and calls tools', async (t) => {
  const script = [
    'say <think>', 'say Paris.', 'say </think>',
    'say <tool_call>\\n', 'say {"name": "get_weather", ', 'say "arguments": {"city": "Paris"}}',
    'say \\n</tool_call>', 'turn', 'say Warm.',
  ].join('\n');
  const server = await start_npu(t, '1.2.1', script, [], { 'tokenizer_config.json': kTokenizer });
  const client = new HttpClient(server);
  const question = { role: 'user', content: 'Is it warm in Paris? <|im_end|>' };
  const called = await client.call('run', { messages: [question], tools: kWeather });
  assert.equal(called.finish_reason, 'tool_calls');
  const call = { name: 'get_weather', arguments: { city: 'Paris' } };
  assert.deepEqual(called.tool_calls, [call]);
  const answer = await client.call('run', {
    messages: [
      question,
      { role: 'assistant', content: '', tool_calls: [call] },
      { role: 'tool', content: '28 degrees' },
    ],
    tools: kWeather,
  });
  assert.equal(wire.whole_text(answer), 'Warm.');
  const calls = server.calls();
  assert.match(calls, /set_chat_template \|\|\n/);
  assert.match(calls, /<\|im_start\|>user\nIs it warm in Paris\? <\u200b\|im_end\|><\|im_end\|>\n/);
  assert.match(calls, /<\|im_start\|>assistant<tool_call>\n\{"name": "get_weather", "arg/);
  assert.match(calls, /<\|im_start\|>tool\n28 degrees<\|im_end\|>\n<\|im_start\|>assistant\n/);
});

test('what a model writes besides its calls is text', async (t) => {
  const call = (name) => `say <tool_call>\\n{"name": "${name}", "arguments": {"city": "Paris"}}\\n</tool_call>`;
  const turns = [
    ['say Let me see.', call('get_weather'), 'say Done.'],
    [call('get_news'), 'say  That is all.'],
    ['say <tool_call>\\n{"name": "get_wea'],
  ];
  const script = turns.flatMap((turn) => [...turn, 'turn', ...turn, 'turn']).join('\n');
  const server = await start_npu(t, '1.3.0', script, [], { 'tokenizer_config.json': kTokenizer });
  const client = new HttpClient(server);
  const ask = { messages: [{ role: 'user', content: 'Is it warm?' }], tools: kWeather };
  const wanted = [
    { text: 'Let me see.Done.', calls: [{ name: 'get_weather', arguments: { city: 'Paris' } }] },
    {
      text: '<tool_call>\n{"name": "get_news", "arguments": {"city": "Paris"}}\n</tool_call> That is all.',
      calls: [],
    },
    { text: '<tool_call>\n{"name": "get_wea', calls: [] },
  ];
  for (const { text, calls } of wanted) {
    const whole = await client.call('run', ask);
    assert.deepEqual([whole.text, whole.tool_calls ?? []], [text, calls]);
    const { stream_id } = await client.call('run', { ...ask, stream: true });
    const chunks = await push_stream(server, stream_id);
    assert.equal(chunks.map(({ delta }) => delta).join(''), text);
    assert.deepEqual(chunks.flatMap(({ tool_call }) => tool_call ?? []), calls);
    assert.equal(chunks.at(-1).end, true);
  }
});

test('a text that would end the prompt is refused', async (t) => {
  const server = await start_npu(t, '1.1', kScript);
  const messages = [{ role: 'system', content: 'rules\u0000' }, { role: 'user', content: 'question' }];
  await assert.rejects(new HttpClient(server).call('run', { messages }), {
    code: -32602,
    message: /messages\[0\]\.content has the character U\+0000/,
  });
});

test('an answer is asked for again until it follows its schema', async (t) => {
  const server = await start_npu(t, '1.1', 'say {"warm": \nsay "yes"}\nturn\nsay {"warm": \nsay true}\n');
  const client = new HttpClient(server);
  const json_schema = { type: 'object', properties: { warm: { type: 'boolean' } } };
  const { stream_id } = await client.call('run', { prompt: 'Is it?', json_schema, stream: true });
  const chunks = await push_stream(server, stream_id);
  assert.equal(wire.checked_text(chunks), '{"warm": true}');
  assert.equal(server.calls().match(/^run /gm).length, 2);
});

test('a model with its tokenizer.json follows a schema token by token', async (t) => {
  const script = 'words 300\nsay Hello\n';
  for (const abi of ['1.2.0', '1.2.1', '1.3.0']) {
    const server = await start_npu(t, abi, script, [], byte_vocabulary());
    assert.equal(await server.metric('sluice_engine_checks_schema'), 0);
    const client = new HttpClient(server);
    const json_schema = {
      type: 'object',
      properties: { warm: { type: 'boolean' }, why: { enum: ['sun', 'w\u00e4rmer'] } },
      required: ['warm', 'why'],
    };
    const asked = { prompt: 'Is it?', json_schema, seed: 3, max_tokens: 400 };
    const { stream_id } = await client.call('run', { ...asked, stream: true });
    const chunks = await push_stream(server, stream_id);
    const text = wire.checked_text(chunks);
    const answer = JSON.parse(text);
    assert.equal(typeof answer.warm, 'boolean');
    assert.ok(json_schema.properties.why.enum.includes(answer.why), text);
    assert.ok(chunks.length > 2, 'it streams');
    assert.equal(wire.whole_text(await client.call('run', asked)), text, 'the seed holds');
    const grammar = 'root ::= "yes" | "no"';
    assert.match(wire.whole_text(await client.call('run', { prompt: 'Is it?', grammar })), /^(yes|no)$/);
    assert.equal(wire.whole_text(await client.call('run', { prompt: 'Hi' })), 'Hello');
  }
  const old = await start_npu(t, '1.1', script, [], byte_vocabulary());
  assert.equal(await old.metric('sluice_engine_checks_schema'), 1);
  await assert.rejects(new HttpClient(old).call('run', { prompt: 'Is it?', grammar: 'root ::= "a"' }), {
    code: -32602,
    message: /takes no grammar/,
  });
});

test('a chat template that cannot be used ends the program with the reason', async (t) => {
  const start = async (beside, ...flags) => {
    const files = npu_files(t, kScript, beside);
    const { code, stderr } = await run_program(
      ['serve', '--port', '0', '--model', files.model, '--rkllm-library', library('1.2.1'), ...flags],
      { env: files.env },
    );
    return `${code}: ${stderr}`;
  };
  const config = (text) => ({ 'tokenizer_config.json': text });
  assert.match(await start(config('{')), /^1: [^]*tokenizer_config\.json is no JSON/);
  assert.match(
    await start(config('{"chat_template": "{% nonsense"}')),
    /^1: [^]*the chat template of .*tokenizer_config\.json cannot be used: /,
  );
  assert.match(await start(config(' '.repeat((16 << 20) + 1))), /^1: [^]*longer than 16 MiB/);
  assert.match(await start({}, '--chat-template', '/none.jinja'), /^1: [^]*There is no \/none\.jinja/);
});

test('--chat-template takes the place of the template in a GGUF file', async (t) => {
  const folder = temporary_folder(t);
  const file = path.join(folder, 'short.jinja');
  writeFileSync(file, '{{ messages[0].content }}');
  const tokens_with = async (...flags) => {
    const server = await start_server(t, ['--engine', 'llama', ...flags]);
    const answer = await new HttpClient(server).call('run', { prompt: 'Hi', max_tokens: 1 });
    return answer.usage.prompt_tokens;
  };
  assert.ok((await tokens_with('--chat-template', file)) < (await tokens_with()));
  writeFileSync(file, '{% nonsense');
  const { code, stderr } = await run_program(['serve', '--port', '0', '--chat-template', file]);
  assert.equal(code, 1);
  assert.match(stderr, /the model cannot be used/);
});

test('sluice chat runs a model for an NPU', async (t) => {
  const files = npu_files(t, kScript);
  const { code, stdout } = await run_program(
    ['chat', '--model', files.model, '--rkllm-library', library('1.2.1'), 'Hello'],
    { env: files.env },
  );
  assert.deepEqual([code, stdout.trim()], [0, kText]);
});

test('sluice doctor looks at the runtime and the board', async (t) => {
  const files = npu_files(t, kScript);
  const { stdout } = await run_program(
    ['doctor', '--json', '--model', files.model, '--rkllm-library', library('1.2.1')],
  );
  const found = new Map(JSON.parse(stdout).checks.map((check) => [check.subject, check]));
  assert.equal(found.get('model').status, 'ok');
  assert.match(found.get('NPU runtime').finding, /librkllmrt\.so.*interface 1\.2\.1/);
  assert.equal(found.get('board').status, 'fail');
});
