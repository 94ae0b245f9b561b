// Runs `sluice doctor`.

import assert from 'node:assert/strict';
import { run_program } from './server.mjs';

// What it finds at a target.
export async function examine(words) {
  const outcome = await run_program(['doctor', '--json', ...words]);
  assert.equal(outcome.stderr, '');
  const { ok, checks } = JSON.parse(outcome.stdout);
  const bad = checks.filter(({ status }) => status === 'fail');
  const found = (subject) => {
    const check = checks.find((each) => each.subject === subject);
    assert.ok(check, `${subject} in ${JSON.stringify(checks, null, 1)}`);
    return check;
  };
  return { code: outcome.code, ok, checks, bad, found };
}
