// A pipe that is read only when the test says so. Node's own pipes to programs are sockets, and it
// can neither fill them nor tell that they are full.

import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

// Calls `step` until it has moved nothing or would have to wait.
function while_possible(step) {
  try {
    while (step() > 0);
  } catch (error) {
    if (error.code !== 'EAGAIN') throw error;
  }
}

export class FullPipe {
  // The test `t` closes the pipe.
  constructor(t) {
    const folder = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-pipe-'));
    const place = path.join(folder, 'pipe');
    execFileSync('mkfifo', [place]);
    // With its own flags, so that the program's end still waits when it is full.
    this.own = openSync(place, constants.O_RDWR | constants.O_NONBLOCK);
    // The end for the program.
    this.end = openSync(place, constants.O_WRONLY);
    t.after(() => {
      closeSync(this.own);
      closeSync(this.end);
      rmSync(folder, { recursive: true });
    });
  }

  // Writes until it takes not one more byte.
  fill() {
    for (const size of [4096, 1]) {
      const part = Buffer.alloc(size, '\n');
      while_possible(() => writeSync(this.own, part));
    }
  }

  // All that is in it now.
  read() {
    const parts = [];
    const part = Buffer.alloc(65_536);
    while_possible(() => {
      const length = readSync(this.own, part);
      parts.push(part.toString('utf8', 0, length));
      return length;
    });
    return parts.join('');
  }
}
