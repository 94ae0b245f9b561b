// A client beside an attack: it follows a stream that has a chunk each 20 ms, on a thread of its own,
// and says how long it had to wait for one.

import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';

// Milliseconds between two chunks, at most. A sanitizer's build is slower.
export const longest_gap = Number(process.env.SLUICE_LONGEST_GAP ?? 200);

export class Innocent {
  static async beside(server) {
    const innocent = new Innocent();
    innocent.worker = new Worker(new URL('./innocent_reader.mjs', import.meta.url), {
      workerData: { host: server.host, port: server.port },
    });
    innocent.answer = new Promise((resolve, reject) => {
      innocent.worker.on('message', (message) => message.gap !== undefined && resolve(message));
      innocent.worker.on('error', reject);
    });
    await new Promise((resolve) => innocent.worker.once('message', resolve));
    return innocent;
  }

  // Ends it, and checks that its sequence was whole and no gap too long.
  async was_not_disturbed() {
    this.worker.postMessage('end');
    const { gap, chunks, whole } = await this.answer;
    assert.ok(whole, 'a chunk was lost or doubled');
    assert.ok(chunks > 5, `${chunks} chunks`);
    assert.ok(gap < longest_gap, `${gap} ms without a chunk`);
    return { gap, chunks };
  }
}
