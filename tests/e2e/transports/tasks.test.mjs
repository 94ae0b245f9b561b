// Tool calls that continue as tasks: with the official client of 2025-11-25, and with the extension
// of 2026-07-28.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { connect } from '../lib/mcp.mjs';
import { start_server, until } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const v1 = 'v1 (2025-11-25)';
const kExtension = 'io.modelcontextprotocol/tasks';
const kMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { extensions: { [kExtension]: {} } },
};
const kKey = { flags: ['--api-key', 'alice=alice-key-0123456789', '--api-key', 'bob=bob-key-0123456789'] };
const as = (name) => ({ headers: { Authorization: `Bearer ${name}-key-0123456789` } });

const numbers = (count, interval_ms) => ({ name: 'stream_numbers', arguments: { count, interval_ms } });

async function begin(client, params, task = {}, options = {}) {
  for await (const message of client.experimental.tasks.callToolStream(params, CallToolResultSchema, {
    task,
    ...options,
  })) {
    if (message.type === 'taskCreated') return message.task;
    assert.fail(JSON.stringify(message));
  }
  return assert.fail('no task');
}

test('v1: a call runs as a task to its result, with progress on the way', async (t) => {
  const server = await start_server(t, ['--task-poll-interval', '20ms']);
  const { client } = await connect(t, server, v1);
  const { tools } = await client.listTools();
  const offered = tools.find(({ name }) => name === 'stream_numbers');
  assert.equal(offered.execution.taskSupport, 'optional');
  const types = [];
  const progress = [];
  let result;
  for await (const message of client.experimental.tasks.callToolStream(
    numbers(20, 10),
    CallToolResultSchema,
    { task: { ttl: 60_000 }, onprogress: (event) => progress.push(event) },
  )) {
    types.push(message.type);
    if (message.type === 'taskCreated') assert.equal(message.task.ttl, 60_000);
    if (message.type === 'result') result = message.result;
  }
  assert.deepEqual([...new Set(types)], ['taskCreated', 'taskStatus', 'result']);
  assert.ok(result._meta['io.modelcontextprotocol/related-task'].taskId);
  assert.ok(Array.isArray(result.content));
  assert.ok(progress.length > 0, 'progress came over the session');
});

test('v1: tasks/result waits, and the task outlives the session that began it', async (t) => {
  const server = await start_server(t);
  const first = await connect(t, server, v1);
  const { taskId } = await begin(first.client, numbers(50, 10));
  await first.transport.terminateSession();
  await first.client.close();
  const second = await connect(t, server, v1);
  const tasks = second.client.experimental.tasks;
  assert.equal((await tasks.getTask(taskId)).status, 'working');
  const result = await tasks.getTaskResult(taskId, CallToolResultSchema);
  assert.equal(result._meta['io.modelcontextprotocol/related-task'].taskId, taskId);
  assert.equal((await tasks.getTask(taskId)).status, 'completed');
});

test('v1: cancelling frees the slot and is final', async (t) => {
  const server = await start_server(t);
  const { client } = await connect(t, server, v1);
  const { taskId } = await begin(client, numbers(1_000_000, 1));
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 1, 'a slot is busy');
  assert.equal((await client.experimental.tasks.cancelTask(taskId)).status, 'cancelled');
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');
  await assert.rejects(client.experimental.tasks.cancelTask(taskId), (error) => {
    assert.equal(error.code, wire.codes.invalid_params);
    return true;
  });
  assert.equal((await client.experimental.tasks.getTask(taskId)).status, 'cancelled');
});

test('v1: with keys each client lists its own tasks and finds no other', async (t) => {
  const server = await start_server(t, kKey.flags);
  const alice = await connect(t, server, v1, as('alice'));
  const bob = await connect(t, server, v1, as('bob'));
  const { taskId } = await begin(alice.client, numbers(3, 1));
  const listed = await alice.client.experimental.tasks.listTasks();
  assert.deepEqual(
    listed.tasks.map((task) => task.taskId),
    [taskId],
  );
  assert.deepEqual((await bob.client.experimental.tasks.listTasks()).tasks, []);
  await assert.rejects(bob.client.experimental.tasks.getTask(taskId), /Task not found/);
  await assert.rejects(bob.client.experimental.tasks.cancelTask(taskId), /Task not found/);
});

test('v1: limits and expiry', async (t) => {
  const server = await start_server(t, ['--tasks-per-client', '2', '--max-task-ttl', '1s']);
  const { client } = await connect(t, server, v1);
  const { taskId, ttl } = await begin(client, numbers(1_000_000, 1), { ttl: 600_000 });
  assert.equal(ttl, 1000);
  await begin(client, numbers(1_000_000, 1));
  await assert.rejects(
    client.request(
      { method: 'tools/call', params: { ...numbers(1, 1), task: {} } },
      CallToolResultSchema,
    ),
    /You have 2 tasks/,
  );
  await until(async () => (await server.metric('sluice_tasks')) === 0, 'the tasks are gone');
  await until(async () => (await server.metric(wire.metric.slots_busy)) === 0, 'no slot is busy');
  await assert.rejects(client.experimental.tasks.getTask(taskId), /expired/);
});

// Sends a request of 2026-07-28 with plain fetch.
async function modern(server, method, params, meta = kMeta) {
  const name = params.name ?? params.taskId;
  const reply = await fetch(server.mcp_url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(name === undefined ? {} : { 'Mcp-Name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  });
  return reply;
}

test('2026-07-28: the server decides, and tasks/get has the result', async (t) => {
  const server = await start_server(t);
  const capabilities = (await (await modern(server, 'server/discover', {})).json()).result.capabilities;
  assert.ok(capabilities.extensions[kExtension]);
  assert.equal(capabilities.tasks, undefined);
  const { result: created } = await (await modern(server, 'tools/call', numbers(20, 5))).json();
  assert.equal(created.resultType, 'task');
  let state;
  await until(async () => {
    state = (await (await modern(server, 'tasks/get', { taskId: created.taskId })).json()).result;
    return state.status !== 'working';
  }, 'the task ends');
  assert.equal(state.status, 'completed');
  assert.equal(state.resultType, 'complete');
  assert.ok(Array.isArray(state.result.content));

  const plain = { ...kMeta, 'io.modelcontextprotocol/clientCapabilities': {} };
  const refused = await modern(server, 'tasks/get', { taskId: created.taskId }, plain);
  assert.equal(refused.status, 400);
  assert.equal((await refused.json()).error.code, -32021);
  const misled = await fetch(server.mcp_url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tasks/get',
      'Mcp-Name': 'another',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tasks/get',
      params: { taskId: created.taskId, _meta: kMeta },
    }),
  });
  assert.equal((await misled.json()).error.code, -32020);
});

test('2026-07-28: who listens hears of the end', async (t) => {
  const server = await start_server(t);
  const { result: created } = await (await modern(server, 'tools/call', numbers(30, 10))).json();
  const reply = await modern(server, 'subscriptions/listen', {
    notifications: { taskIds: [created.taskId] },
  });
  let text = '';
  const decoder = new TextDecoder();
  for await (const bytes of reply.body) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes('"status":"completed"') && text.endsWith('\n\n')) break;
  }
  const messages = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)));
  assert.deepEqual(messages[0].params.notifications.taskIds, [created.taskId]);
  assert.equal(messages[1].method, 'notifications/tasks');
  assert.equal(messages[1].params.status, 'working');
  const last = messages.at(-1).params;
  assert.equal(last.status, 'completed');
  assert.ok(last.result.content);
});
