// What a server can ask the official TypeScript clients, for test_features(): a message from their
// model, input from their user, and their roots.

import assert from 'node:assert/strict';
import {
  accepting,
  all,
  code_of,
  is_session,
  is_session_throughout,
  is_stateless,
  kAskable,
  named,
} from './interop.mjs';
import { until } from './server.mjs';
import * as wire from './wire.mjs';

const saying = (text) => () => ({
  model: 'a model',
  role: 'assistant',
  content: { type: 'text', text },
});

export const features_of_questions = [
  ['sampling', all, async ({ open }) => {
    let asked;
    const { call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: {
        'sampling/createMessage': ({ params }) => {
          asked = params;
          return saying('Paris')();
        },
      },
    });
    const { content } = await call_tool(named('test_sampling', { prompt: 'The capital?' }));
    assert.equal(content[0].text, 'LLM response: Paris');
    assert.equal(asked.maxTokens, 100);
    assert.deepEqual(asked.messages[0].content, { type: 'text', text: 'The capital?' });
  }],

  ['elicitation: accepted, declined, cancelled', all, async ({ open }) => {
    const contact = { username: 'ada', email: 'ada@example.com' };
    const answers = [
      { action: 'accept', content: contact },
      { action: 'decline' },
      { action: 'cancel' },
    ];
    const asked = [];
    const { call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: {
        'elicitation/create': ({ params }) => {
          asked.push(params);
          return answers[asked.length - 1];
        },
      },
    });
    for (const { action, content = {} } of answers) {
      const told = wire.tool_text(await call_tool(named('test_elicitation', { message: 'Who?' })));
      const [, name, json] = /^User response: action=(\w+), content=(.*)$/.exec(told);
      assert.deepEqual([name, JSON.parse(json)], [action, content]);
    }
    assert.equal(asked[0].message, 'Who?');
    assert.deepEqual(Object.keys(asked[0].requestedSchema.properties), ['username', 'email']);
  }],

  ['elicitation: defaults, which the client fills in', all, async ({ open }) => {
    const { call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: { 'elicitation/create': accepting({ name: 'Ada' }) },
    });
    const told = wire.tool_text(await call_tool(named('test_elicitation_sep1034_defaults')));
    assert.deepEqual(JSON.parse(told.slice(told.indexOf('{'))), {
      name: 'Ada',
      age: 30,
      score: 95.5,
      status: 'active',
      verified: true,
    });
  }],

  ['elicitation: choices', all, async ({ open }) => {
    const chosen = {
      untitledSingle: 'option2',
      titledSingle: 'value1',
      legacyEnum: 'opt3',
      untitledMulti: ['option1', 'option3'],
      titledMulti: ['value2'],
    };
    const { call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: { 'elicitation/create': accepting(chosen) },
    });
    const told = wire.tool_text(await call_tool(named('test_elicitation_sep1330_enums')));
    assert.deepEqual(JSON.parse(told.slice(told.indexOf('{'))), chosen);
  }],

  ['elicitation: a page', all, async ({ open }) => {
    let asked;
    const { call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: {
        'elicitation/create': ({ params }) => {
          asked = params;
          return { action: 'accept' };
        },
      },
    });
    const { content } = await call_tool(named('test_elicitation_url'));
    assert.equal(content[0].text, "The user's answer: accept");
    assert.deepEqual([asked.mode, asked.url], ['url', 'https://example.com/sign-in']);
  }],

  // Only 2025-11-25 has these two.
  ['elicitation: a page that is done with', is_session_throughout, async ({ open }) => {
    const done = [];
    const handlers = {
      'elicitation/create': () => ({ action: 'accept' }),
      'notifications/elicitation/complete': ({ params }) => void done.push(params.elicitationId),
    };
    const client_options = { capabilities: kAskable };
    const asked = await open({ client_options, handlers, hears: true });
    const others = [];
    await open({
      client_options,
      handlers: {
        'notifications/elicitation/complete': ({ params }) => void others.push(params),
      },
    });
    await asked.call_tool(named('test_elicitation_url'));
    await until(() => done.length > 0, 'the end is told');
    // Another test may have asked for the same page at the same server.
    assert.deepEqual([...new Set(done)], ['sign-in-1']);
    assert.deepEqual(others, [], 'who was not asked does not hear');
  }],
  ['elicitation: a page that is required', is_session_throughout, async ({ open }) => {
    const { call_tool } = await open({ client_options: { capabilities: kAskable } });
    const error = await call_tool(named('test_elicitation_url_required')).then(
      () => assert.fail('an error is expected'),
      (thrown) => thrown,
    );
    assert.equal(error.code, -32042);
    assert.deepEqual(error.elicitations ?? error.data?.elicitations, [
      {
        mode: 'url',
        message: 'Sign in, please',
        url: 'https://example.com/sign-in',
        elicitationId: 'sign-in-2',
      },
    ]);
  }],

  ['roots', all, async ({ open, row }) => {
    let roots = [{ uri: 'file:///one', name: 'One' }];
    const { client, call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: { 'roots/list': () => ({ roots }) },
    });
    const told = async () =>
      wire.tool_text(await call_tool(named('test_input_required_result_list_roots')));
    assert.equal(await told(), 'Roots: file:///one');
    roots = [...roots, { uri: 'file:///two' }];
    // In 2026-07-28 clients do not report changes.
    if (is_session(row)) await client.sendRootsListChanged();
    assert.equal(await told(), 'Roots: file:///one file:///two');
  }],

  ['several questions, at once and one after the other', all, async ({ open }) => {
    const { client, call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: {
        'elicitation/create': ({ params }) => {
          const [field] = Object.keys(params.requestedSchema.properties);
          return { action: 'accept', content: { [field]: `my ${field}` } };
        },
        'sampling/createMessage': saying('Hi'),
        'roots/list': () => ({ roots: [] }),
      },
    });
    const told = async (name) =>
      wire.tool_text(await call_tool(named(`test_input_required_result_${name}`)));
    assert.equal(await told('multiple_inputs'), 'Got 3 answers');
    assert.equal(await told('multi_round'), 'my name likes my color');
    const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' });
    assert.equal(messages[0].content.text, 'Context: my context');
  }],

  ['questions that the application answers itself', is_stateless, async ({ open }) => {
    const { call_tool } = await open({
      client_options: { capabilities: kAskable, inputRequired: { autoFulfill: false } },
    });
    const call = named('test_input_required_result_elicitation');
    const asked = await call_tool(call, { allowInputRequired: true });
    const [key] = Object.keys(asked.inputRequests);
    const answered = await call_tool({
      ...call,
      requestState: asked.requestState,
      inputResponses: { [key]: { action: 'accept', content: { name: 'Ada' } } },
    });
    assert.equal(answered.content[0].text, 'Hello, Ada!');
  }],

  ['clients that cannot be asked', all, async ({ open, row }) => {
    const { call_tool } = await open();
    const call = call_tool(named('test_missing_capability'));
    if (is_stateless(row)) assert.equal(await code_of(call), -32021);
    else assert.equal(await code_of(call), wire.codes.invalid_request);
  }],

  // In 2026-07-28 nothing runs on the server while a client answers.
  ['a question is taken back with its call', is_session, async ({ open }) => {
    const breaker = new AbortController();
    let taken_back;
    const { client, call_tool } = await open({
      client_options: { capabilities: kAskable },
      handlers: {
        'sampling/createMessage': (request, { signal, mcpReq }) => {
          taken_back = new Promise((resolve) => {
            (signal ?? mcpReq.signal).addEventListener('abort', resolve);
          });
          breaker.abort(new Error('enough'));
          return taken_back;
        },
      },
    });
    await assert.rejects(
      call_tool(named('test_sampling', { prompt: 'Hello' }), { signal: breaker.signal }),
    );
    await taken_back;
    await client.ping();
  }],
];
