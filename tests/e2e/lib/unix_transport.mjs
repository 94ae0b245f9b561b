// A transport of the official TypeScript clients, of either generation, to a Unix socket with messages as lines.

import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';

export class UnixTransport {
  constructor(path) {
    this.path = path;
  }

  async start() {
    this.socket = net.connect(this.path);
    this.socket.on('error', (error) => this.onerror?.(error));
    this.socket.on('close', () => this.onclose?.());
    const lines = createInterface({ input: this.socket });
    lines.on('line', (line) => this.onmessage?.(JSON.parse(line)));
    // It repeats the errors of the socket, and would throw one that nobody hears.
    lines.on('error', () => {});
    await once(this.socket, 'connect');
  }

  async send(message) {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }

  async close() {
    this.socket.destroy();
  }
}
