// The official conformance suite against sluice-everything, over HTTP and without the network. How
// many checks of each scenario pass is compared with fixtures/conformance.json, because the suite
// also calls a scenario passed that checked nothing.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { clean_environment, root, start_everything } from './lib/server.mjs';

const suite = path.join(
  root,
  'tests/node_modules/@modelcontextprotocol/conformance/dist/index.js',
);
const golden = JSON.parse(
  readFileSync(path.join(root, 'tests/e2e/fixtures/conformance.json'), 'utf8'),
);
const kDeadline = 120_000;

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-conformance-'));
after(() => rmSync(folder, { recursive: true }));
const { port } = await start_everything({ after });
const url = `http://localhost:${port}/mcp`;

// {status, output} of the suite with these arguments.
function run(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [suite, 'server', '--url', url, ...args, '-o', folder], {
      env: clean_environment(),
      timeout: kDeadline,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        output += text;
      });
    }
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, output }));
  });
}

// The passed checks of each scenario, from the summary. Of those of ignore-extra-params one is a
// warning: its client answers a question that it was not asked, without a requestState, and is asked.
function passed(output) {
  const counts = {};
  for (const [, name, count, failed] of output.matchAll(
    /^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm,
  )) {
    counts[name] = Number(count);
    assert.equal(Number(failed), 0, `${name} failed:\n${output}`);
  }
  return counts;
}

describe('the conformance suite', () => {
  for (const [name, args] of [
    ['2025-11-25', ['--requirements', '2025-11-25']],
    ['2026-07-28', ['--requirements', '2026-07-28']],
    ['all', ['--suite', 'all']],
  ]) {
    test(`passes whole: ${name}`, { timeout: kDeadline }, async () => {
      const { status, output } = await run(...args);
      assert.equal(status, 0, output);
      assert.deepEqual(passed(output), golden[name]);
    });
  }
});
