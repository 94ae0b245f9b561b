// How an idle event stream is kept open, and what it costs.

import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { RawConnection } from '../lib/raw.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server, until } from '../lib/server.mjs';
import { StreamableClient, initialize } from '../lib/streamable.mjs';
import * as wire from '../lib/wire.mjs';

const kStreams = 1000;
const kBytesPerStream = 2048;

async function begin_session(server) {
  const client = new HttpClient(server);
  const { headers } = await client.exchange(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {} },
    }),
  );
  return headers['mcp-session-id'];
}

const listen = (session) =>
  `GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${session}\r\n\r\n`;

test('every event stream gets comments while it is silent, and is not held back', async (t) => {
  const server = await start_server(t, ['--event-keep-alive', '50ms']);
  const { stream_id } = await new HttpClient(server).call(
    ...wire.start({ count: 1e6, interval_us: 1e6 }),
  );
  const session = await begin_session(server);
  for (const request of [
    `GET ${wire.path.stream(stream_id)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    listen(session),
  ]) {
    const connection = await RawConnection.open(server);
    t.after(() => connection.destroy());
    connection.write(request);
    const text = () => connection.received.toString('latin1');
    await connection.until(() => text().split(': keep-alive\n\n').length > 3, 'comments came');
    assert.match(text(), /\r\nX-Accel-Buffering: no\r\n/i);
    assert.match(text(), /\r\nCache-Control: no-store\r\n/i);
  }
});

// Opens the event stream of each session and waits for the comment that confirms it.
async function open_streams(server, agent, sessions) {
  for (const session of sessions) {
    await new Promise((resolve, reject) => {
      http
        .get(server.mcp_url, {
          agent,
          headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': session },
        })
        .on('response', (response) => {
          response.on('error', () => {});
          response.once('data', resolve);
        })
        .on('error', reject);
    });
  }
}

test('an idle event stream and its connection take at most 2 KiB', async (t) => {
  const server = await start_server(t, ['--threads', '1', '--event-keep-alive', '100ms']);
  const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
  t.after(() => agent.destroy());
  const sessions = [];
  while (sessions.length < kStreams + 200) sessions.push(await begin_session(server));
  // Everything that is allocated only once has been allocated by now.
  await open_streams(server, agent, sessions.slice(kStreams));
  const before = server.memory();
  await open_streams(server, agent, sessions.slice(0, kStreams));
  const each = (server.memory() - before) / kStreams;
  t.diagnostic(`${Math.round(each)} bytes for each idle stream`);
  assert.ok(each <= kBytesPerStream, `${each} bytes`);
});

// Calls a tool in a session, breaks the connection after every few messages, and resumes the stream until
// the answer is there. Returns the progress that came.
async function call_with_breaks(client, count) {
  const seen = [];
  const params = {
    name: 'stream_numbers',
    arguments: { count, interval_ms: 5 },
    _meta: { progressToken: `p${client.last_id}` },
  };
  let stream = client.post({ method: 'tools/call', params });
  for (;;) {
    const { value, done } = await stream.next();
    assert.ok(!done, 'it is whole');
    if (value.result) return seen;
    seen.push(value.params.progress);
    if (seen.length % 10 === 0) {
      await stream.return();
      stream = client.get({ last_event_id: client.last_event_id });
    }
  }
}

test('the streams of a session do not end each other, however often they are resumed', async (t) => {
  const server = await start_server(t);
  const session = new StreamableClient(server, '2025-11-25');
  await session.ask(initialize('2025-11-25'));
  await session.ask({ method: 'notifications/initialized' });
  let standalone_ended = false;
  const standalone = session.get();
  const ended = () => {
    standalone_ended = true;
  };
  standalone.next().then(ended, ended);
  await until(() => session.arrows.at(-1) === '<- 200 text/event-stream', 'its own stream is open');

  const kCount = 50;
  const all = Array.from({ length: kCount }, (_, index) => index + 1);
  const callers = Array.from({ length: 4 }, (_, index) => {
    const caller = new StreamableClient(server, '2025-11-25');
    return Object.assign(caller, { session: session.session, last_id: 1000 * (index + 1) });
  });
  for (const seen of await Promise.all(callers.map((each) => call_with_breaks(each, kCount)))) {
    assert.deepEqual(seen, all);
  }
  // A browser's EventSource asks once more for a stream that has ended.
  for (const caller of callers) {
    for await (const message of caller.get({ last_event_id: caller.last_event_id })) {
      assert.fail(`it comes twice: ${JSON.stringify(message)}`);
    }
  }
  assert.ok(!standalone_ended);
  assert.equal(await session.end(), 204);
  await until(() => standalone_ended, 'it ends with its session');
});
