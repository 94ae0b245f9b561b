// Runs the Inspector's command line again and again in one process, for it takes long to start: reads
// lines with its arguments, a JSON array each, and prints what it prints, then {"ended": {...}}.

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
