// The features that the official TypeScript clients use of sluice-everything, for test_features(). What a
// server can ask them is in features_of_questions.mjs.

import assert from 'node:assert/strict';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import {
  accepting,
  all,
  code_of,
  hears_all,
  is_http_session,
  is_session,
  is_stateless,
  is_v1,
  is_v2,
  kAskable,
  named,
  tells_once,
} from './interop.mjs';
import { until } from './server.mjs';
import * as wire from './wire.mjs';

const kWatched = 'test://watched-resource';
const kLogLevel = 'io.modelcontextprotocol/logLevel';
const kSkill = 'skill://acme/refunds/SKILL.md';

export const features = [
  ['introduces itself', all, async ({ open, row }) => {
    const { client } = await open();
    assert.equal(client.getServerVersion().name, 'sluice-everything');
    assert.equal(client.getInstructions(), 'A server for tests of clients');
    const offered = client.getServerCapabilities();
    for (const one of ['tools', 'resources', 'prompts', 'logging', 'completions']) {
      assert.ok(offered[one], `${one} in ${JSON.stringify(offered)}`);
    }
    if (is_v2(row)) {
      const version = is_session(row) ? '2025-11-25' : '2026-07-28';
      assert.equal(client.getNegotiatedProtocolVersion(), version);
      assert.equal(client.getProtocolEra(), row.era);
    }
  }],

  // 2026-07-28 has no ping.
  ['ping', is_session, async ({ open }) => {
    const { client } = await open();
    assert.deepEqual(await client.ping(), {});
  }],

  ['discovery, and connecting with what was found before', is_stateless, async ({ open }) => {
    const { client } = await open();
    const found = await client.discover();
    assert.ok(found.supportedVersions.includes('2026-07-28'));
    assert.equal(found.instructions, 'A server for tests of clients');
    const later = await open({ connect_options: { prior: { kind: 'modern', discover: found } } });
    assert.equal(later.seen.length, 0, 'no round trip');
    assert.equal(wire.tool_text(await later.call_tool(named('greet', { name: 'Ada' }))), 'Hello, Ada!');
  }],

  ['tools are listed', all, async ({ open }) => {
    const { client } = await open();
    const { tools, nextCursor } = await client.listTools();
    assert.equal(nextCursor, undefined);
    const tool = (name) => tools.find((one) => one.name === name);
    assert.equal(tool('json_schema_2020_12_tool').inputSchema.$defs.address.$anchor, 'addressDef');
    assert.deepEqual(tool('count').outputSchema.required, ['sum']);
    assert.equal(await code_of(client.listTools({ cursor: 'none' })), wire.codes.invalid_params);
  }],

  ['tools return text, images, audio and resources', all, async ({ open }) => {
    const { call_tool } = await open();
    const content_of = async (name) => (await call_tool(named(name))).content;
    assert.deepEqual(await content_of('test_simple_text'), [
      { type: 'text', text: 'This is a simple text response for testing.' },
    ]);
    const [image] = await content_of('test_image_content');
    assert.deepEqual([image.type, image.mimeType], ['image', 'image/png']);
    assert.match(Buffer.from(image.data, 'base64').toString('latin1'), /^\x89PNG\r\n/);
    const [audio] = await content_of('test_audio_content');
    assert.deepEqual([audio.type, audio.mimeType], ['audio', 'audio/wav']);
    assert.match(Buffer.from(audio.data, 'base64').toString('latin1'), /^RIFF/);
    const [embedded] = await content_of('test_embedded_resource');
    assert.equal(embedded.resource.uri, 'test://embedded-resource');
    const mixed = await content_of('test_multiple_content_types');
    assert.deepEqual(mixed.map(({ type }) => type), ['text', 'image', 'resource']);
  }],

  ['tools take structs and return them', all, async ({ open }) => {
    const { client, call_tool } = await open();
    // The clients check results against the output schemas that they have listed.
    await client.listTools();
    assert.deepEqual((await call_tool(named('count', { to: 4 }))).structuredContent, { sum: 10 });
    assert.deepEqual((await call_tool(named('slow_sum', { to: 3 }))).structuredContent, { sum: 6 });
    const contact = { contactMethod: 'phone', phone: '1' };
    const told = wire.tool_text(await call_tool(named('json_schema_2020_12_tool', contact)));
    assert.deepEqual(JSON.parse(told.replace('Called with ', '')), contact);
    // v2 repeats this argument in an HTTP header, and the server compares the two.
    const looked = await call_tool(named('test_x_mcp_header', { region: 'n\u00f6rdlich' }));
    assert.equal(wire.tool_text(looked), 'Looked at n\u00f6rdlich');
  }],

  ['tools fail', all, async ({ open }) => {
    const { call_tool } = await open();
    const failed = await call_tool(named('test_error_handling'));
    assert.equal(failed.isError, true);
    assert.match(wire.tool_text(failed), /intentionally/);
    const wrong = await call_tool(named('greet', { name: 3 }));
    assert.equal(wrong.isError, true);
    assert.match(wire.tool_text(wrong), /name/);
    assert.equal(await code_of(call_tool(named('no_such_tool'))), wire.codes.invalid_params);
    assert.equal(await code_of(call_tool(named('protocol_error_job'))), -32603);
  }],

  ['progress', all, async ({ open }) => {
    const { call_tool, seen } = await open();
    const told = [];
    const note = ({ progress, total }) => told.push([progress, total]);
    await call_tool(named('test_tool_with_progress'), { onprogress: note });
    const sent = seen
      .filter(({ method }) => method === 'notifications/progress')
      .map(({ params }) => [params.progress, params.total]);
    assert.deepEqual(sent, [[0, 100], [50, 100], [100, 100]]);
    // These clients drop progress that they read together with the result.
    assert.deepEqual(told, sent.slice(0, told.length));
  }],

  ['partial output', all, async ({ open }) => {
    const { call_tool, seen } = await open();
    await call_tool(named('count', { to: 3 }), { onprogress: () => {} });
    const parts = seen.filter(({ method }) => method === 'notifications/progress');
    assert.deepEqual(parts.map(({ params }) => params.message), ['1\n', '2\n', '3\n']);
  }],

  ['log messages, from a level on', all, async ({ open, row }) => {
    const told = [];
    const { client, call_tool } = await open({
      handlers: { 'notifications/message': ({ params }) => void told.push(params.level) },
    });
    const log_from = async (level, tool) => {
      if (is_session(row)) await client.setLoggingLevel(level);
      await call_tool({ ...named(tool), ...(is_stateless(row) && { _meta: { [kLogLevel]: level } }) });
    };
    await log_from('warning', 'test_logging_tool');
    await log_from('info', 'test_tool_with_logging');
    await until(() => told.length === 5, 'all is told');
    assert.deepEqual(told, ['warning', 'error', 'info', 'info', 'info']);
  }],

  ['cancellation', all, async ({ open }) => {
    const { call_tool, seen } = await open();
    const compute = (seconds, label, options) =>
      call_tool(named('slow_compute', { seconds, label }), options);
    // If the answer was sent before the cancellation arrived, nothing is tested; then a longer call
    // is tried.
    for (const seconds of [0.1, 0.5, 3]) {
      const breaker = new AbortController();
      const left = compute(seconds, 'too much', { signal: breaker.signal }).catch(() => 'cancelled');
      await compute(0, 'nothing');
      breaker.abort(new Error('enough'));
      const outcome = await left;
      // This call ends after the cancelled one would have ended.
      await compute(seconds, 'enough');
      const answers = seen.splice(0).filter(({ result }) => result?.content);
      if (outcome === 'cancelled' && answers.length === 2) return;
    }
    assert.fail('what was cancelled has been answered');
  }],

  ['resources are listed and read', all, async ({ open, row }) => {
    const { client } = await open();
    const { resources } = await client.listResources();
    for (const uri of ['test://static-text', 'test://static-binary', kWatched]) {
      assert.ok(resources.some((one) => one.uri === uri), uri);
    }
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(
      resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      ['test://template/{id}/data'],
    );
    const read = async (uri) => (await client.readResource({ uri })).contents[0];
    assert.match((await read('test://static-text')).text, /^This is the content/);
    const binary = await read('test://static-binary');
    assert.equal(binary.mimeType, 'image/png');
    assert.match(Buffer.from(binary.blob, 'base64').toString('latin1'), /^\x89PNG\r\n/);
    assert.equal(JSON.parse((await read('test://template/a%20b/data')).text).id, 'a b');
    // v2 reports the old code as the new one.
    const missing = is_v1(row) ? -32002 : wire.codes.invalid_params;
    assert.equal(await code_of(read('test://nothing')), missing);
  }],

  ['updates of resources', hears_all, async ({ open, row }) => {
    const told = [];
    const { client, call_tool } = await open({
      handlers: {
        'notifications/resources/updated': ({ params }) => void told.push(params.uri),
        'notifications/prompts/list_changed': () => void told.push('prompts'),
      },
      hears: true,
    });
    const listen = (filter) => client.listen({ promptsListChanged: true, ...filter });
    const [subscribe, unsubscribe] = is_session(row)
      ? [
          () => client.subscribeResource({ uri: kWatched }),
          () => client.unsubscribeResource({ uri: kWatched }),
        ]
      : [() => listen({ resourceSubscriptions: [kWatched] }), (listening) => listening.close()];
    const listening = await subscribe();
    await call_tool(named('test_trigger_resource_update'));
    await until(() => told.includes(kWatched), 'the update is told');
    await unsubscribe(listening);
    if (is_stateless(row)) await listen({});
    told.length = 0;
    await call_tool(named('test_trigger_resource_update'));
    await call_tool(named('test_trigger_prompt_change'));
    await until(() => told.length > 0, 'the change is told');
    assert.deepEqual([...new Set(told)], ['prompts']);
  }],

  ['changes of the lists', hears_all, async ({ open, row }) => {
    const told = [];
    const listChanged = Object.fromEntries(
      ['tools', 'prompts', 'resources'].map((kind) => [
        kind,
        { debounceMs: 0, onChanged: (error, list) => told.push([kind, error, list?.length > 0]) },
      ]),
    );
    const { call_tool } = await open({ client_options: { listChanged }, hears: true });
    for (const [kind, what] of [
      ['tools', 'tool'],
      ['prompts', 'prompt'],
      ['resources', 'resource_list'],
    ]) {
      await call_tool(named(`test_trigger_${what}_change`));
      await until(() => told.some(([changed]) => changed === kind), 'the change is told');
      // The client has requested each list again.
      const lists = told.splice(0);
      assert.ok(lists.every(([, error, has_entries]) => error === null && has_entries));
      if (tells_once(row)) assert.deepEqual(lists.map(([changed]) => changed), [kind]);
    }
  }],

  ['prompts', all, async ({ open }) => {
    const { client } = await open();
    const { prompts } = await client.listPrompts();
    const prompt = prompts.find(({ name }) => name === 'test_prompt_with_arguments');
    assert.deepEqual(prompt.arguments.map(({ name }) => name), ['arg1', 'arg2']);
    const get = async (name, args) => {
      const { messages } = await client.getPrompt({ name, arguments: args });
      return messages.map(({ content }) => content);
    };
    assert.equal((await get('test_simple_prompt'))[0].text, 'This is a simple prompt for testing.');
    assert.equal(
      (await get('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' }))[0].text,
      "Prompt with arguments: arg1='a', arg2='b'",
    );
    const [embedded] = await get('test_prompt_with_embedded_resource', { resourceUri: 'test://x' });
    assert.equal(embedded.resource.uri, 'test://x');
    assert.equal((await get('test_prompt_with_image'))[0].mimeType, 'image/png');
    assert.equal(await code_of(get('test_prompt_with_arguments', {})), wire.codes.invalid_params);
  }],

  ['completion', all, async ({ open }) => {
    const { client } = await open();
    const complete = async (ref, name, more) =>
      (await client.complete({ ref, argument: { name, value: 'x' }, ...more })).completion.values;
    const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    const context = { context: { arguments: { arg2: 'b' } } };
    assert.deepEqual(await complete(prompt, 'arg1', context), ['xparis', 'xpark']);
    const template = { type: 'ref/resource', uri: 'test://template/{id}/data' };
    assert.deepEqual(await complete(template, 'id'), ['x1', 'x2']);
  }],

  // The v2 client does not support tasks.
  ['tasks: to the result', is_v1, async ({ open }) => {
    const { client } = await open({
      client_options: { capabilities: kAskable },
      handlers: { 'elicitation/create': accepting({ confirm: true }) },
    });
    await client.listTools(); // tells the client which calls become tasks
    const run = async (call, options) => {
      const types = [];
      const calls = client.experimental.tasks.callToolStream(call, CallToolResultSchema, options);
      for await (const message of calls) {
        types.push(message.type);
        if (message.type === 'result') return [types[0], message.result];
        if (message.type === 'error') return [types[0], message.error];
      }
      return assert.fail('no end');
    };
    const [[began, done], [, deleted], [, broken]] = await Promise.all([
      run(named('slow_compute', { seconds: 0.01, label: 'it' }), { task: { ttl: 60_000 } }),
      run(named('confirm_delete'), { task: {} }),
      run(named('protocol_error_job'), { task: {} }),
    ]);
    assert.equal(began, 'taskCreated');
    assert.equal(wire.tool_text(done), 'Computed it');
    assert.equal(wire.tool_text(deleted), 'Deleted');
    assert.match(broken.message, /The job broke|failed/);
  }],

  ['tasks: state, waiting, list and cancellation', is_v1, async ({ open, row }) => {
    const { client } = await open();
    const { tasks } = client.experimental;
    const begin = async (seconds) => {
      const calls = tasks.callToolStream(named('slow_compute', { seconds }), CallToolResultSchema, {
        task: {},
      });
      return (await calls.next()).value.task.taskId;
    };
    const short = await begin(0.05);
    const long = await begin(3600);
    const result = await tasks.getTaskResult(short, CallToolResultSchema);
    assert.equal(wire.tool_text(result), 'Computed something');
    assert.equal((await tasks.getTask(short)).status, 'completed');
    assert.equal((await tasks.getTask(long)).status, 'working');
    assert.equal((await tasks.cancelTask(long)).status, 'cancelled');
    // Tasks can be listed only where the server can tell clients apart.
    if (row.kind === 'stdio') {
      const listed = (await tasks.listTasks()).tasks.map(({ taskId }) => taskId);
      assert.deepEqual(listed.sort(), [short, long].sort());
    }
  }],

  ['a call survives its connection', is_http_session, async ({ open }) => {
    const { call_tool } = await open();
    const result = await call_tool(named('test_reconnection'));
    assert.equal(wire.tool_text(result), 'Delivered after the client came back');
  }],

  ['a call is resumed by another client', is_http_session, async ({ open, row }) => {
    const first = await open();
    const call = named('slow_compute', { seconds: 0.1 });
    const token = await new Promise((resolve) => {
      first.call_tool(call, { onresumptiontoken: resolve }).catch(() => {});
    });
    const { sessionId, protocolVersion } = first.transport;
    await first.client.close();
    const second = await open({ transport_options: { sessionId, protocolVersion } });
    const options = { resumptionToken: token, onresumptiontoken: () => {} };
    assert.equal(wire.tool_text(await second.call_tool(call, options)), 'Computed something');
    await second.transport.terminateSession();
  }],

  ['the end of a session', is_http_session, async ({ open }) => {
    const { client, transport } = await open();
    const { sessionId } = transport;
    await transport.terminateSession();
    assert.equal(transport.sessionId, undefined);
    const late = await open({ transport_options: { sessionId } });
    await assert.rejects(late.client.ping(), /404|not found/i);
    await client.close();
  }],

  // The v1 client does not support skills.
  ['skills', is_v2, async ({ open }) => {
    const { client } = await open();
    const skills = new SkillsClient(client);
    assert.ok(skills.supported && skills.directoryRead);
    const listing = await skills.list();
    assert.deepEqual(listing.skills.map(({ uri }) => uri), [kSkill]);
    const { skill } = await skills.get(kSkill);
    assert.equal((await skills.read(skill)).verified, true);
    const form = await skills.read(skill, 'references/FORMS.md');
    assert.match(form.text, /^# Forms/);
    const { resources } = await skills.readDirectory('skill://acme/refunds');
    assert.equal(resources.length, 2);
  }],
];
