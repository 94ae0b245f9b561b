// The demo of `sluice agent`: the server of the example, in each way to reach it, and its tools.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { check_stream, events_of, kDemo, of_type, output_of } from '../lib/agent.mjs';
import { calling_model } from '../lib/calling_model.mjs';
import {
  clean_environment,
  example,
  program,
  root,
  start_example,
  temporary_folder,
} from '../lib/server.mjs';

const kTenNumbers = '2 4 6 8 10 12 14 16 18 20.';

// Stands before a server, and tells what was asked for, and in which revisions.
async function start_witness(t, server) {
  const seen = { revisions: new Set(), requests: new Set() };
  const witness = http.createServer((request, reply) => {
    seen.revisions.add(request.headers['mcp-protocol-version']);
    const { method, url, headers } = request;
    seen.requests.add(`${method} ${url}`);
    const host = `${server.host}:${server.port}`;
    const on = http.request(`http://${host}${url}`, { method, headers: { ...headers, host } });
    on.on('response', (answer) => {
      reply.writeHead(answer.statusCode, answer.headers).flushHeaders();
      answer.pipe(reply);
    });
    reply.on('close', () => on.destroy());
    on.on('error', () => reply.destroy());
    request.pipe(on);
  });
  await once(witness.listen(0, '127.0.0.1'), 'listening');
  t.after(() => witness.close());
  t.after(() => witness.closeAllConnections());
  return { ...seen, base: `http://127.0.0.1:${witness.address().port}` };
}

// Ways to reach the server; at a `path`, a witness stands before it.
const kWays = {
  'Streamable HTTP, 2026-07-28': { path: '/mcp', seen: 'POST /mcp', revision: '2026-07-28' },
  'Streamable HTTP, 2025-11-25': { path: '/mcp', seen: 'POST /mcp', revision: '2025-11-25' },
  'HTTP with SSE': { path: '/sse', seen: 'GET /sse' },
  'a WebSocket': { words: ({ ws_url }) => ['--server', ws_url] },
  'a Unix socket': { words: ({ socket }) => ['--server', `unix:${socket}`] },
  'stdio, 2026-07-28': { revision: '2026-07-28', command: [example('relay'), '--stdio'] },
  'stdio, 2025-11-25': { revision: '2025-11-25', command: [example('relay'), '--stdio'] },
};

let server;
const to_do = [];
before(async () => {
  const later = { after: (what) => to_do.push(what) };
  const socket = path.join(temporary_folder(later), 'socket');
  server = Object.assign(await start_example(later, 'relay', ['--unix', socket]), { socket });
});
after(async () => {
  for (const each of to_do.reverse()) await each();
});

// What reaches the server in one of the ways: words of `sluice agent` before a prompt and after it, and
// a function that looks at what was asked for over HTTP.
async function reach(t, way) {
  const revision = way.revision ? ['--revision', way.revision] : [];
  if (!way.path) {
    const last = way.command ? ['--', ...way.command] : [];
    return { first: [...revision, ...(way.words?.(server) ?? [])], last, check: () => {} };
  }
  const { base, requests, revisions } = await start_witness(t, server);
  const check = () => {
    assert.ok(requests.has(way.seen), [...requests].join());
    revisions.delete(undefined); // as in `initialize`
    if (way.revision) assert.deepEqual([...revisions], [way.revision]);
  };
  return { first: [...revision, '--server', base + way.path], last: [], check };
}

async function run_over(t, way, args) {
  const { first, last, check } = await reach(t, way);
  const { code, events, stderr } = await events_of([...first, ...args, ...last]);
  assert.equal(code, 0, stderr);
  check_stream(events);
  check();
  return events;
}

describe('the demo over', { concurrency: 3 }, () => {
  for (const [name, way] of Object.entries({ 'the program itself': {}, ...kWays })) {
    describe(name, () => {
      test('the numbers are shown, and the model names the last one', async (t) => {
        const events = await run_over(t, way, [kDemo]);
        const output = of_type(events, 'sluice:tool.output.delta');
        assert.equal(output.map((event) => event.delta).join(''), kTenNumbers);
        assert.match(events.at(-1).output_text, /\b20\b/);
      });

      test('each tool answers', async (t) => {
        const model = await calling_model(
          t,
          ['stream_numbers', { count: 3 }],
          ['add', { a: 2, b: 3 }],
          ['get_secret_word', {}],
          ['get_current_weather', { city: 'Oslo' }],
          ['get_current_weather', { city: 'Atlantis' }],
        );
        const events = await run_over(t, way, ['--model', model.url, '--policy', 'pass', 'Go on']);
        const done = of_type(events, 'sluice:tool.output.done');
        const [numbers, ...others] = of_type(events, 'sluice:tool.output.started').map(
          ({ call_id }) => done.find((event) => event.call_id === call_id),
        );
        assert.deepEqual([numbers.status, numbers.text], ['completed', '2 4 6.']);
        assert.equal(output_of(events, numbers.call_id), '2 4 6.');
        assert.deepEqual(
          others.map(({ status, text }) => [status, text]),
          [
            ['completed', '{"sum":5}'],
            ['completed', 'sluice'],
            ['completed', 'Oslo: snowy, -3 degrees Celsius'],
            [
              'failed',
              'The tool failed: The table has these cities: ' +
                'Berlin, Cairo, Lima, London, New York, Oslo, Sydney, Tokyo',
            ],
          ],
        );
      });

      test('a number comes each 100 ms, not all at the end', async (t) => {
        const kSeen = 6;
        // All of them take 100 s, which is longer than the test may.
        const model = await calling_model(t, ['stream_numbers', { count: 1000 }]);
        const { first, last } = await reach(t, way);
        const words = ['--json', '--policy', 'pass', '--model', model.url, ...first, 'Go', ...last];
        const begun = performance.now();
        const child = spawn(program, ['agent', ...words], {
          cwd: root,
          env: clean_environment(),
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        t.after(() => child.kill('SIGKILL'));
        const exited = once(child, 'exit');
        const events = [];
        for await (const line of createInterface({ input: child.stdout })) {
          const event = JSON.parse(line);
          events.push(event);
          if (event.type !== 'sluice:tool.output.delta') continue;
          const shown = event.last + 1;
          assert.ok(performance.now() - begun >= 100 * shown, `number ${shown} came too early`);
          if (shown >= kSeen) child.kill('SIGINT');
        }
        assert.deepEqual(await exited, [130, null]);
        const [done] = of_type(events, 'sluice:tool.output.done');
        assert.equal(done.status, 'cancelled');
        const said = output_of(events, done.call_id).trim().split(' ').map(Number);
        assert.ok(said.length >= kSeen && said.length < 1000, `${said.length}`);
        assert.deepEqual(said, said.map((_, index) => 2 * (index + 1)));
      });
    });
  }
});

test('the model comments on numbers while more of them come', async (t) => {
  // Word for word what the original's demo asks.
  const events = await run_over(t, {}, [`${kDemo}.`]);
  const comment = events.findIndex((event) => event.type === 'response.output_text.delta');
  const last = events.findLastIndex((event) => event.type === 'sluice:tool.output.delta');
  assert.ok(comment > 0 && comment < last, 'it spoke meanwhile');
  assert.match(events.at(-1).output_text, /\b20\b/);
});
