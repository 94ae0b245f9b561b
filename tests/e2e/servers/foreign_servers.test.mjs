// The commands of the client against servers on SDKs that others wrote: the official TypeScript SDK of
// both generations and fastmcp, over each of their transports, with the same tools on each.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, describe, test } from 'node:test';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { clean_environment, program, run_program, until } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';

const kAtUrl = { http: '/mcp', sse: '/sse' };
// `with` is what is tested besides. Listing takes many commands, each of which would start a server on
// stdio anew, and fastmcp takes a second to begin a session over HTTP. SDK v2 serves legacy clients
// without sessions, so it cannot ask them. The server on fastmcp does not sample.
const rows = [
  { script: 'typescript_v1.mjs', kind: 'http', with: ['lists', 'greet', 'think'] },
  { script: 'typescript_v1.mjs', kind: 'stdio', with: ['greet', 'think'] },
  { script: 'typescript_v2.mjs', kind: 'http', with: ['lists', 'greet', 'think'], modern: true },
  { script: 'typescript_v2.mjs', kind: 'http', with: ['lists'], pinned: true },
  { script: 'typescript_v2.mjs', kind: 'stdio', with: ['greet', 'think'], modern: true },
  { script: 'fast_mcp.mjs', kind: 'http', with: ['greet'] },
  { script: 'fast_mcp.mjs', kind: 'sse', with: ['lists', 'greet'] },
  { script: 'fast_mcp.mjs', kind: 'stdio', with: ['greet'] },
];

const scripts = [...new Set(rows.map(({ script }) => script))];
const servers = Object.fromEntries(
  await Promise.all(
    scripts.map(async (script) => [
      script,
      await start_foreign({ after }, foreign_command(script, 'http')),
    ]),
  ),
);

for (const { script, kind, modern, pinned, with: features } of rows) {
  const revision = modern ? '2026-07-28' : '2025-11-25';
  const lacks = (feature) => ({ skip: !features.includes(feature) });
  describe(`${script} over ${kind}, ${revision}`, () => {
    // The target is the first operand, or a command behind everything else.
    const is_stdio = kind === 'stdio';
    const before = is_stdio ? [] : [servers[script].base + kAtUrl[kind]];
    const behind = is_stdio ? ['--', ...foreign_command(script, 'stdio')] : [];
    const words = (command, ...rest) => [
      command,
      ...before,
      ...rest,
      ...(pinned ? ['--revision', revision] : []),
      ...behind,
    ];
    const prints = async (command, ...rest) => {
      const outcome = await run_program(words(command, ...rest));
      assert.equal(outcome.code, 0, outcome.stderr);
      return outcome.stdout;
    };

    test('it says what it is', async () => {
      assert.match(await prints('info'), new RegExp(`\\nrevision  ${revision}\\n`));
      assert.match(await prints('ping'), /^The server answered in/);
    });

    test('its tools are listed and called', async () => {
      assert.match(await prints('tools'), /^add\(a: number, b: number\) {2}Adds two numbers$/m);
      assert.equal(await prints('call', 'add', 'a=2', 'b=3'), '5\n');
    });

    test('output comes while the tool runs', async () => {
      assert.equal(await prints('call', 'count', 'to=5'), '1 2 3 4 5 \ncounted to 5\n');
    });

    test('resources and prompts are listed, read and completed', lacks('lists'), async () => {
      assert.match(await prints('resources'), /^note:\/\/motto {2}motto\nnote:\/\/\{color\}/);
      assert.equal(await prints('read', 'note://motto'), 'Keep going\n');
      assert.equal(await prints('read', 'note://red'), 'red\n');
      assert.match(await prints('prompts'), /^paint\(color\)/);
      assert.equal(await prints('prompt', 'paint', 'color=red'), 'user: Paint it red\n');
      assert.equal(await prints('complete', 'paint', 'color=gr'), 'green\ngrey\n');
      assert.equal(await prints('complete', 'note://{color}', 'color=r'), 'red\n');
    });

    test('its question is answered on the terminal', lacks('greet'), async (t) => {
      const terminal = new Terminal(t, [program, ...words('call', 'greet')]);
      const shows = (text) => terminal.until((seen) => seen.includes(text), `it shows ${text}`);
      await shows('Who are you?');
      terminal.type('Mira\n');
      await shows('[yes or no]');
      terminal.type('yes\n');
      await shows('Hello, Mira!');
      assert.equal(await terminal.exit_code(), 0);
    });

    test('sampling is refused without a model', lacks('think'), async () => {
      const outcome = await run_program(words('call', 'think'));
      assert.notEqual(outcome.code, 0);
      assert.match(outcome.stderr, /This client cannot be asked that|client capabilities do not/);
    });

    test('Ctrl-C cancels at the server', async (t) => {
      const child = spawn(program, words('call', 'wait'), {
        env: clean_environment(),
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      let heard = '';
      child.stderr.setEncoding('utf8').on('data', (text) => {
        heard += text;
      });
      const said = () => (is_stdio ? heard : servers[script].output);
      const from = said().length;
      await until(() => said().includes('it waits', from), 'the tool runs');
      const ended = new Promise((resolve) => {
        child.once('exit', resolve);
      });
      child.kill('SIGINT');
      assert.equal(await ended, 130);
      await until(() => said().includes('it was cancelled', from), 'the server hears of it');
    });
  });
}
