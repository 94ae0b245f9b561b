// Runs the official conformance suites, the newest one and the one that npm installs by default,
// against sluice-everything over HTTP, also through `sluice proxy`, the newest one against `sluice serve`
// with a model for an NPU, and its servers against sluice-conformance-client, without network access. The number of checks that pass in each scenario
// is compared with fixtures/conformance.json, because a suite also reports a scenario as passed if it
// checked nothing.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { start_npu } from '../lib/npu.mjs';
import {
  clean_environment,
  program,
  root,
  start_everything,
  start_proxy,
} from '../lib/server.mjs';

const kNewest = '@modelcontextprotocol/conformance';
const kDefault = 'conformance-0.1';
const golden = JSON.parse(
  readFileSync(path.join(root, 'tests/e2e/fixtures/conformance.json'), 'utf8'),
);
const kDeadline = 180_000;

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-conformance-'));
after(() => rmSync(folder, { recursive: true }));
const { port } = await start_everything({ after });
const url = `http://localhost:${port}/mcp`;

// Runs a suite with these arguments and returns {status, output}.
function run(suite, ...args) {
  const script = path.join(root, 'tests/node_modules', suite, 'dist/index.js');
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...args, '-o', folder], {
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

// It wants to be asked before there is a task. At a server of 2025-11-25 the task is there at once.
const kNotFromLegacy = /^tasks-mrtr-composition$/;

// The number of passed checks per scenario, from the summary. One check of ignore-extra-params is a
// warning: its client answers a question that it was not asked, without a requestState, and is then
// asked.
function passed(output, exempt = /^$/) {
  const counts = {};
  for (const [, name, count, failed] of output.matchAll(
    /^[✓✗] ([\w/-]+): (\d+) passed, (\d+) failed/gm,
  )) {
    if (exempt.test(name)) continue;
    counts[name] = Number(count);
    assert.equal(Number(failed), 0, `${name} failed:\n${output}`);
  }
  return counts;
}

describe('the conformance suites', () => {
  for (const [name, suite, args] of [
    ['2025-11-25', kNewest, ['--requirements', '2025-11-25']],
    ['2026-07-28', kNewest, ['--requirements', '2026-07-28']],
    ['all', kNewest, ['--suite', 'all']],
    ['all of 0.1', kDefault, ['--suite', 'all']],
  ]) {
    test(`pass whole: ${name}`, { timeout: kDeadline }, async () => {
      const { status, output } = await run(suite, 'server', '--url', url, ...args);
      assert.equal(status, 0, output);
      assert.deepEqual(passed(output), golden[name]);
    });
  }

  // Most scenarios want tools, prompts and resources of the suite, which `sluice serve` does not have.
  test('pass at a model for an NPU but where they want what it does not have', { timeout: kDeadline }, async (t) => {
    const npu = await start_npu(t, '1.3.0', 'say Hello.\n');
    const args = ['--url', `http://localhost:${npu.port}/mcp`, '--suite', 'all'];
    const { output } = await run(kNewest, 'server', ...args);
    const wanted = golden['all of a model'];
    const exempt = { test: (scenario) => !Object.hasOwn(wanted, scenario) };
    assert.deepEqual(passed(output, exempt), wanted);
  });

  // The suite's clients of both eras, and a server of both, which the proxy speaks to in one.
  for (const revision of ['2025-11-25', '2026-07-28']) {
    test(`pass through a proxy to a server of ${revision}`, { timeout: 2 * kDeadline }, async (t) => {
      const proxy = await start_proxy(t, ['--revision', revision, url]);
      for (const name of ['2025-11-25', '2026-07-28']) {
        const { output } = await run(
          kNewest,
          ...['server', '--url', `http://localhost:${proxy.port}/mcp`],
          ...['--requirements', name],
        );
        const wanted = golden[`${name} by proxy`];
        const exempt = revision === name ? /^$/ : kNotFromLegacy;
        const expected = Object.entries(wanted).filter(([scenario]) => !exempt.test(scenario));
        assert.deepEqual(passed(output, exempt), Object.fromEntries(expected));
      }
    });
  }

  for (const [name, args] of [
    ['client 2025-11-25', ['--requirements', '2025-11-25']],
    ['client 2026-07-28', ['--requirements', '2026-07-28']],
    // The two above, what servers of 2025-03-26 had instead of metadata, and skills.
    ['client all', ['--suite', 'all']],
  ]) {
    test(`are passed whole: ${name}`, { timeout: kDeadline }, async () => {
      const client = path.join(path.dirname(program), 'sluice-conformance-client');
      const { status, output } = await run(kNewest, 'client', '--command', client, ...args);
      assert.equal(status, 0, output);
      assert.deepEqual(passed(output), golden[name]);
    });
  }
});
