// The commands of the client against the reference server of the specification's authors,
// server-everything, over each of its transports.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { program, run_program } from '../lib/server.mjs';
import { Terminal } from '../lib/terminal.mjs';

const kScript = '@modelcontextprotocol/server-everything/dist/index.js';
const [http, sse] = await Promise.all(
  ['streamableHttp', 'sse'].map((kind) =>
    start_foreign({ after }, foreign_command(kScript, kind)),
  ),
);

for (const [name, before, behind] of [
  ['Streamable HTTP', [`${http.base}/mcp`], []],
  ['HTTP with SSE', [`${sse.base}/sse`], []],
  ['stdio', [], ['--', ...foreign_command(kScript, 'stdio')]],
]) {
  describe(`server-everything over ${name}`, () => {
    const words = (command, ...rest) => [command, ...before, ...rest, ...behind];
    const run = async (command, ...rest) => {
      const outcome = await run_program(words(command, ...rest));
      assert.equal(outcome.code, 0, outcome.stderr);
      return outcome;
    };

    test('what it has', async () => {
      const { stdout } = await run('info');
      assert.match(stdout, /^mcp-servers\/everything .*\nrevision {2}2025-11-25\noffers .*tasks/);
      assert.match(stdout, /Use `get-roots-list`/);
      const { tools } = JSON.parse((await run('tools', '--json')).stdout);
      assert.ok(tools.some((tool) => tool.name === 'get-sum'));
      const { resourceTemplates } = JSON.parse((await run('resources', '--json')).stdout);
      assert.equal(resourceTemplates.length, 2);
    });

    test('tools with structured content and with images', async (t) => {
      const { stdout } = await run('call', 'get-sum', 'a=2', 'b=40');
      assert.equal(stdout, 'The sum of 2 and 40 is 42.\n');
      const weather = JSON.parse(
        (await run('call', 'get-structured-content', 'location=Chicago', '--json')).stdout,
      );
      assert.equal(typeof weather.structuredContent.temperature, 'number');
      const folder = mkdtempSync(path.join(tmpdir(), 'sluice-everything-'));
      t.after(() => rmSync(folder, { recursive: true }));
      await run('call', 'get-tiny-image', '--save', folder);
      assert.equal(
        readFileSync(path.join(folder, 'image.png')).subarray(1, 4).toString(),
        'PNG',
      );
    });

    test('resources, prompts and completion', { skip: behind.length > 0 }, async () => {
      const text = await run('read', 'demo://resource/dynamic/text/7');
      assert.match(text.stdout, /Resource 7/);
      const prompt = await run('prompt', 'args-prompt', 'city=Rome');
      assert.equal(prompt.stdout, "user: What's weather in Rome?\n");
      const completed = await run('complete', 'completable-prompt', 'department=E');
      assert.equal(completed.stdout, 'Engineering\n');
    });

    test('progress is on the terminal, and a form is filled there', async (t) => {
      const work = new Terminal(t, [
        program,
        ...words('call', 'trigger-long-running-operation', 'duration=0.4', 'steps=4'),
      ]);
      await work.until((seen) => seen.includes('50 %'), 'it shows progress');
      await work.until((seen) => seen.includes('completed'), 'it shows the result');
      const form = new Terminal(t, [program, ...words('call', 'trigger-elicitation-request')]);
      await form.until((seen) => seen.includes('full, legal name'), 'it asks');
      form.type(`Mira\n${'\n'.repeat(20)}`);
      await form.until((seen) => seen.includes('[yes or no]'), 'it asks for consent');
      form.type('yes\n');
      await form.until((seen) => seen.includes('- Name: Mira'), 'the server has the answers');
    });
  });
}
