// Runs the Inspector's command line many times in one process, because it takes long to start.
// Reads its arguments from lines with one JSON array each. Prints what the Inspector prints, then
// {"ended": {...}}.

import { createInterface } from 'node:readline';
import { runCli } from '@modelcontextprotocol/inspector/clients/cli/build/index.js';

for await (const line of createInterface({ input: process.stdin })) {
  const ended = { code: 0 };
  try {
    await runCli([process.execPath, 'inspector', ...JSON.parse(line)]);
  } catch (error) {
    ended.code = error.exitCode ?? 1;
    ended.error = error.message;
  }
  console.log(JSON.stringify({ ended }));
}
