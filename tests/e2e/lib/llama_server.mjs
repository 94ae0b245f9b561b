// The llama-server of the pinned llama.cpp with the built-in model.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { clean_environment, root } from './server.mjs';

const kModel = path.join(root, 'models/sluice-tiny.gguf');
const kStartDeadline = 60_000;

// Starts it for the tests of a file; `url` is that of its API. `log()` is what it has said.
export async function start_llama_server(t, ...flags) {
  const script = path.join(root, 'scripts/llama-cpp');
  const program = execFileSync(script, ['test-server'], { encoding: 'utf8' }).trim();
  const words = ['--model', kModel, '--host', '127.0.0.1', '--port', '0', '--jinja', '--no-warmup'];
  const child = spawn(program, [...words, '--parallel', '2', '--threads', '1', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: clean_environment(),
  });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  let output = '';
  const port = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`llama-server is late:\n${output}`)), kStartDeadline);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        const said = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(output);
        if (said) resolve(said[1]);
      });
    }
    exited.then(() => reject(new Error(`llama-server ended:\n${output}`)));
    late.unref();
  });
  return { base: `http://127.0.0.1:${port}`, url: `http://127.0.0.1:${port}/v1`, log: () => output };
}
