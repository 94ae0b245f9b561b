// A program on its own terminal, as a person sees and uses it.

import { spawn } from 'node:child_process';
import { clean_environment, root } from './server.mjs';

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

export class Terminal {
  // script(1) creates the terminal. What is typed is written to its standard input.
  constructor(t, words, { env = {}, cwd = root } = {}) {
    this.seen = '';
    this.child = spawn('script', ['-qefc', words.map(quoted).join(' '), '/dev/null'], {
      cwd,
      env: clean_environment({ TERM: 'xterm', COLUMNS: '100', LINES: '40', ...env }),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.watchers = new Set();
    this.child.stdin.on('error', () => {});
    this.child.stdout.setEncoding('utf8');
    this.child.stdout.on('data', (text) => {
      this.seen += text;
      for (const look of [...this.watchers]) look();
    });
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code) => {
        this.gone = true;
        for (const look of [...this.watchers]) look();
        resolve(code);
      });
    });
    t.after(() => {
      if (!this.gone) this.child.kill('SIGKILL');
    });
  }

  type(text) {
    this.child.stdin.write(text);
  }

  interrupt() {
    this.type('\x03');
  }

  // Resolves with the output from position `from` on, once `probe(text)` is true for it.
  until(probe, what, { from = 0, deadline = 60_000 } = {}) {
    return new Promise((resolve, reject) => {
      const settle = (how, value) => {
        clearTimeout(late);
        this.watchers.delete(look);
        how(value);
      };
      const look = () => {
        const text = this.seen.slice(from);
        if (probe(text)) settle(resolve, text);
        else if (this.gone) settle(reject, new Error(`it ended before ${what}:\n${this.seen}`));
      };
      const late = setTimeout(
        () => settle(reject, new Error(`waited in vain until ${what}:\n${this.seen}`)),
        deadline,
      );
      this.watchers.add(look);
      look();
    });
  }

  // Waits for the program to end and returns its exit code.
  async exit_code() {
    await this.until(() => this.gone, 'it ended');
    return this.exited;
  }
}
