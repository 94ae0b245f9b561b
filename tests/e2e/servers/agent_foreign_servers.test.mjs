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

// The last request of a model whose tool, of server-everything, returns an image.
async function asked_with_image(t, ...options) {
  const model = await calling_model(t, ['get-tiny-image', {}]);
  const { code, stderr } = await run_program([
    ...['agent', '--policy', 'pass', '--model', model.url, ...options, 'Show the logo', '--'],
    ...foreign_command('@modelcontextprotocol/server-everything/dist/index.js', 'stdio'),
  ]);
  assert.equal(code, 0, stderr);
  return model.asked.at(-1).messages;
}

test('a model that sees is shown the image of server-everything', async (t) => {
  const seen = await asked_with_image(t, '--images', '1');
  assert.match(seen.at(-2).content, /Here's the image.*\n\[image: image\/png\]\n/);
  const [about, image] = seen.at(-1).content;
  assert.match(about.text, /^\[tool update call_id=call_0 images - untrusted/);
  const [head, base64] = image.image_url.url.split(',');
  assert.equal(head, 'data:image/png;base64');
  assert.equal(Buffer.from(base64, 'base64').subarray(1, 4).toString(), 'PNG');
});

test('other models are told what the image is', async (t) => {
  const told = await asked_with_image(t);
  assert.equal(told.at(-1).role, 'tool');
  assert.match(told.at(-1).content, /\[image: image\/png\]/);
  assert.doesNotMatch(JSON.stringify(told), /base64/);
});

test('the built-in model sees no images', async () => {
  const { code, stderr } = await run_program(['agent', '--images', '1', 'Hello']);
  assert.equal(code, 2);
  assert.match(stderr, /--images needs a model of a server/);
});

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
