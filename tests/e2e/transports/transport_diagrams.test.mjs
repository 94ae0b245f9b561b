// The sequence diagrams on the specification's pages about transports, arrow by arrow: what the
// client sends and what it receives, in this order and nothing else. HTTP is also tested behind an
// nginx that only forwards a path.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { LineClient } from '../lib/lines.mjs';
import { behind, start_nginx } from '../lib/nginx.mjs';
import { check_message } from '../lib/schemas.mjs';
import { clean_environment, everything, start_everything } from '../lib/server.mjs';
import { StreamableClient, events, initialize } from '../lib/streamable.mjs';

const call = (name, params = {}) => ({ method: 'tools/call', params: { name, ...params } });
const count = call('count', { arguments: { to: 2 }, _meta: { progressToken: 1 } });

const counted = [
  '-> POST tools/call',
  '<- 200 text/event-stream',
  '<- notifications/progress',
  '<- notifications/progress',
  '<- result',
  '<- end',
];

const places = {
  'nothing between': start_everything,
  'behind nginx': async (t) => {
    const server = await start_everything(t);
    const location = `location /ai/ { proxy_pass ${server.base}/; }`;
    return behind(t, server, await start_nginx(t, location), '/ai');
  },
};

for (const [where, start] of Object.entries(places)) {
  for (const revision of ['2025-11-25', '2025-06-18', '2025-03-26']) {
    test(`${revision}: a session over Streamable HTTP, ${where}`, async (t) => {
      const client = new StreamableClient(await start(t), revision);
      const expect_arrows = (...arrows) => assert.deepEqual(client.arrows.splice(0), arrows);

      await client.ask(initialize(revision, { sampling: {} }));
      expect_arrows('-> POST initialize', '<- 200 application/json', '<- result');
      await client.ask({ method: 'notifications/initialized' });
      expect_arrows('-> POST notifications/initialized', '<- 202');

      await client.ask(call('test_simple_text'));
      expect_arrows('-> POST tools/call', '<- 200 application/json', '<- result');
      await client.ask(count);
      expect_arrows(...counted);

      await client.ask({ method: 'notifications/roots/list_changed' });
      expect_arrows('-> POST notifications/roots/list_changed', '<- 202');
      // The server asks on the call's stream. The client answers with a separate message.
      for await (const asked of client.post(call('test_sampling', { arguments: { prompt: 'Hi' } }))) {
        if (asked.method !== 'sampling/createMessage') continue;
        const content = { type: 'text', text: 'Hello' };
        const result = { role: 'assistant', content, model: 'a model' };
        await client.ask({ id: asked.id, result }, 'response');
      }
      expect_arrows(
        '-> POST tools/call',
        '<- 200 text/event-stream',
        '<- sampling/createMessage',
        '-> POST response',
        '<- 202',
        '<- result',
        '<- end',
      );

      const stream = client.get();
      const first = stream.next();
      while (client.arrows.length < 2) await new Promise(setImmediate);
      expect_arrows('-> GET', '<- 200 text/event-stream');
      await client.ask(call('test_trigger_tool_change'));
      await first;
      const arrows = client.arrows.splice(0);
      assert.deepEqual(arrows.toSorted(), [
        '-> POST tools/call',
        '<- 200 application/json',
        '<- notifications/tools/list_changed',
        '<- result',
      ]);
      await stream.return();
    });
  }

  test(`2026-07-28: a simple response, a streaming one, and a notification, ${where}`, async (t) => {
    const client = new StreamableClient(await start(t), '2026-07-28');
    await client.ask(call('test_simple_text'));
    await client.ask(count);
    await client.ask({ method: 'notifications/cancelled', params: { requestId: 'nothing' } });
    assert.deepEqual(client.arrows, [
      '-> POST tools/call',
      '<- 200 application/json',
      '<- result',
      ...counted,
      '-> POST notifications/cancelled',
      '<- 202',
    ]);
  });

  test(`2026-07-28: a request that needs input, ${where}`, async (t) => {
    const client = new StreamableClient(await start(t), '2026-07-28');
    const asked = await client.ask(call('test_input_required_result_elicitation'));
    assert.equal(asked.result.resultType, 'input_required');
    const [[key, request]] = Object.entries(asked.result.inputRequests);
    assert.equal(request.method, 'elicitation/create');
    const answered = await client.ask(
      call('test_input_required_result_elicitation', {
        inputResponses: { [key]: { action: 'accept', content: { name: 'Ada' } } },
        requestState: asked.result.requestState,
      }),
    );
    assert.match(answered.result.content[0].text, /Ada/);
    assert.equal(answered.id, asked.id + 1);
    assert.deepEqual(client.arrows, [
      ...['-> POST tools/call', '<- 200 application/json', '<- result'],
      ...['-> POST tools/call', '<- 200 application/json', '<- result'],
    ]);
  });

  test(`2026-07-28: a subscription, ${where}`, async (t) => {
    const client = new StreamableClient(await start(t), '2026-07-28');
    const other = new StreamableClient({ mcp_url: client.url }, '2026-07-28');
    const stream = client.post({
      method: 'subscriptions/listen',
      params: {
        notifications: {
          toolsListChanged: true,
          resourceSubscriptions: ['test://watched-resource'],
        },
      },
    });
    await stream.next();
    await other.ask(call('test_trigger_tool_change'));
    await stream.next();
    await other.ask(call('test_trigger_resource_update'));
    await stream.next();
    assert.deepEqual(client.arrows, [
      '-> POST subscriptions/listen',
      '<- 200 text/event-stream',
      '<- notifications/subscriptions/acknowledged',
      '<- notifications/tools/list_changed',
      '<- notifications/resources/updated',
    ]);
    await stream.return(); // the client closes the stream
  });

  test(`2024-11-05: HTTP with SSE, ${where}`, async (t) => {
    const server = await start(t);
    const closing = new AbortController();
    const reply = await fetch(`${server.base}/sse`, { signal: closing.signal });
    const stream = events(reply);
    const { endpoint } = (await stream.next()).value;
    const post = (message) =>
      fetch(new URL(endpoint, `${server.base}/sse`), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      });
    for (const [id, message] of [initialize('2024-11-05'), { method: 'tools/list' }].entries()) {
      assert.equal((await post({ id, ...message })).status, 202);
      const { value } = await stream.next();
      assert.equal(value.id, id);
      check_message(value, message.method, '2024-11-05');
    }
    closing.abort();
    await assert.rejects(stream.next());
    // The session ends with its connection.
    while ((await post({ id: 9, method: 'ping' })).status !== 404) await new Promise(setImmediate);
  });
}

test('all revisions: a subprocess', async (t) => {
  for (const revision of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
    const child = spawn(everything, ['--stdio'], { env: clean_environment() });
    t.after(() => child.kill('SIGKILL'));
    const exited = new Promise((resolve) => child.once('exit', resolve));
    const client = new LineClient(child.stdin, child.stdout);
    await client.call('initialize', initialize(revision).params);
    client.send({ method: 'notifications/initialized' });
    const { tools } = await client.call('tools/list', {});
    assert.ok(tools.length > 0);
    child.stdin.end();
    assert.equal(await exited, 0);
    assert.ok(client.ended);
  }
});
