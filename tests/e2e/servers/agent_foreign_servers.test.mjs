// `sluice agent` with tools of servers on SDKs that others wrote: the official TypeScript SDK of both
// generations and fastmcp, over each of their transports.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { calling_model } from '../lib/calling_model.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { run_program } from '../lib/server.mjs';

const kAtUrl = { http: '/mcp', sse: '/sse' };
const kScripts = ['typescript_v1.mjs', 'typescript_v2.mjs', 'fast_mcp.mjs'];
const rows = [
  { script: 'typescript_v1.mjs', kind: 'http' },
  { script: 'typescript_v1.mjs', kind: 'stdio' },
  { script: 'typescript_v2.mjs', kind: 'http' },
  { script: 'typescript_v2.mjs', kind: 'stdio' },
  { script: 'fast_mcp.mjs', kind: 'http' },
  { script: 'fast_mcp.mjs', kind: 'sse' },
  { script: 'fast_mcp.mjs', kind: 'stdio' },
];

const servers = Object.fromEntries(
  await Promise.all(
    kScripts.map(async (script) => [
      script,
      await start_foreign({ after }, foreign_command(script, 'http')),
    ]),
  ),
);

describe('agents and foreign servers', { concurrency: 2 }, () => {
  for (const { script, kind } of rows) {
    test(`${script} over ${kind}`, async (t) => {
      const model = await calling_model(t, ['count', { to: 5 }], ['add', { a: 2, b: 3 }]);
      const is_stdio = kind === 'stdio';
      const { code, stdout, stderr } = await run_program([
        ...['agent', '--json', '--yes', '--policy', 'pass', '--model', model.url],
        ...(is_stdio ? [] : ['--server', servers[script].base + kAtUrl[kind]]),
        'Count to five',
        ...(is_stdio ? ['--', ...foreign_command(script, 'stdio')] : []),
      ]);
      assert.equal(code, 0, stderr);
      const events = stdout.trim().split('\n').map((line) => JSON.parse(line));
      const of_type = (type) => events.filter((event) => event.type === type);
      const started = of_type('sluice:tool.output.started');
      assert.deepEqual(started.map(({ tool }) => tool).sort(), ['add', 'count']);
      const count = started.find(({ tool }) => tool === 'count').call_id;
      const output = of_type('sluice:tool.output.delta').filter(({ call_id }) => call_id === count);
      assert.equal(output.map(({ delta }) => delta).join(''), '1 2 3 4 5 ');
      assert.equal(events.at(-1).status, 'completed');
      assert.match(events.at(-1).output_text, /^\(counted to 5\) \(5\) ?$/);
    });
  }
});
