// Everything that the official TypeScript clients can do, over each of their transports, through
// `sluice proxy` to servers of both eras: sluice-everything, which speaks one era there, over each
// transport, and servers on SDKs that others wrote.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after } from 'node:test';
import { features } from '../lib/features.mjs';
import { features_of_questions } from '../lib/features_of_questions.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { accepting, all, clients, kAskable, named, test_features } from '../lib/interop.mjs';
import {
  everything,
  program,
  start_everything,
  start_proxy,
  temporary_folder,
  until,
} from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

// Only a configuration file can say that a URL means HTTP with SSE in every revision.
const kSse = 'over-sse';
const cwd = temporary_folder({ after });
const server = await start_everything({ after });
const mcpServers = { [kSse]: { type: 'sse', url: `${server.base}/sse` } };
writeFileSync(path.join(cwd, '.mcp.json'), JSON.stringify({ mcpServers }));

// What a client of this row connects to: a proxy to what these words say.
const proxied = (row, behind, title, words) => ({
  ...row,
  behind,
  is_started: words.includes('--'),
  title: `${row.title}, by proxy to ${title}`,
  start: async (t) =>
    row.kind === 'stdio'
      ? { command: [program, 'proxy', ...words], cwd }
      : { server: await start_proxy(t, words, { cwd }) },
});

const eras = { legacy: '2025-11-25', modern: '2026-07-28' };
const targets = {
  http: [server.mcp_url],
  sse: [kSse],
  stdio: ['--', everything, '--stdio'],
  websocket: [server.ws_url],
  unix: [`unix:${server.socket}`],
};
const kinds = Object.keys(targets);

// Each client meets a server of each era. The transports behind take turns, so that each transport in
// front meets each of them.
const rows = Object.entries(eras).flatMap(([era, revision], shift) =>
  clients.map((row, index) => {
    const kind = kinds[(index + Math.floor(index / kinds.length) + 2 * shift) % kinds.length];
    const words = ['--revision', revision, ...targets[kind]];
    return proxied(row, era, `${revision} over ${kind}`, words);
  }),
);

test_features(rows, [...features, ...features_of_questions]);

const foreign = {
  legacy: { script: 'typescript_v1.mjs', kinds: ['http', 'stdio'] },
  modern: { script: 'typescript_v2.mjs', kinds: ['http', 'stdio'] },
};
const listening = Object.fromEntries(
  await Promise.all(
    Object.values(foreign).map(async ({ script }) => [
      script,
      await start_foreign({ after }, foreign_command(script, 'http')),
    ]),
  ),
);
const foreign_rows = Object.entries(foreign).flatMap(([era, { script, kinds: offered }]) =>
  clients.map((row, index) => {
    const kind = offered[index % offered.length];
    const words =
      kind === 'http'
        ? [`${listening[script].base}/mcp`]
        : ['--', ...foreign_command(script, 'stdio')];
    return { ...proxied(row, era, `${script} over ${kind}`, words), script };
  }),
);

test_features(foreign_rows, [
  ['all that a server on another SDK offers', all, async ({ open }) => {
    const { client, call_tool, seen } = await open({
      client_options: { capabilities: kAskable },
      handlers: {
        'elicitation/create': accepting({ name: 'Mira' }),
        'sampling/createMessage': () => ({
          model: 'a model',
          role: 'assistant',
          content: { type: 'text', text: 'five' },
        }),
      },
    });
    const said = async (name, args, options) =>
      wire.tool_text(await call_tool(named(name, args), options));
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name), ['add', 'count', 'wait', 'greet', 'think']);
    assert.equal(await said('add', { a: 2, b: 3 }), '5');
    assert.equal(await said('count', { to: 3 }, { onprogress: () => {} }), 'counted to 3');
    const parts = seen.filter(({ method }) => method === 'notifications/progress');
    assert.deepEqual(parts.map(({ params }) => params.message), ['1 ', '2 ', '3 ']);
    assert.equal(await said('greet'), 'Hello, Mira!');
    assert.equal(await said('think'), 'five');
    const motto = await client.readResource({ uri: 'note://motto' });
    assert.equal(motto.contents[0].text, 'Keep going');
    const { messages } = await client.getPrompt({ name: 'paint', arguments: { color: 'red' } });
    assert.equal(messages[0].content.text, 'Paint it red');
    const ref = { type: 'ref/prompt', name: 'paint' };
    const { completion } = await client.complete({ ref, argument: { name: 'color', value: 'gr' } });
    assert.deepEqual(completion.values, ['green', 'grey']);
  }],

  ['cancellation reaches it', ({ is_started }) => !is_started, async ({ open, row }) => {
    const { call_tool } = await open();
    const at = listening[row.script];
    const from = at.output.length;
    const breaker = new AbortController();
    const left = call_tool(named('wait'), { signal: breaker.signal });
    await until(() => at.output.includes('it waits', from), 'the tool runs');
    breaker.abort(new Error('enough'));
    await assert.rejects(left);
    await until(() => at.output.includes('it was cancelled', from), 'the server hears of it');
  }],
]);
