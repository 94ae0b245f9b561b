// A program on a terminal of its own, as a person sees and types it.

import { spawn } from 'node:child_process';
import { clean_environment, root } from './server.mjs';

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

export class Terminal {
  // script(1) makes the terminal; what is typed goes through its standard input.
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

  // What has been seen from `from` on, once `probe(text)` answers something true about it.
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

  // What the program ended with.
  async exit_code() {
    await this.until(() => this.gone, 'it ended');
    return this.exited;
  }
}
