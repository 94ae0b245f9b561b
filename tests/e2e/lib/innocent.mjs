// A client that runs beside an attack. On its own thread, it reads a stream with a chunk every 20
// ms and records the longest time between two chunks. A model makes no chunks at such a pace; beside
// one, the client asks GET /healthz every 20 ms instead, and each answer counts as a chunk.

import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';

// The most milliseconds allowed between two chunks. Sanitizer builds need more.
export const longest_gap = Number(process.env.SLUICE_LONGEST_GAP ?? 200);

export class Innocent {
  static beside(server) {
    return Innocent.#start(server, false);
  }
  static beside_model(server) {
    return Innocent.#start(server, true);
  }
  static async #start(server, asks) {
    const innocent = new Innocent();
    innocent.worker = new Worker(new URL('./innocent_reader.mjs', import.meta.url), {
      workerData: { host: server.host, port: server.port, tls: server.tls, asks },
    });
    innocent.answer = new Promise((resolve, reject) => {
      innocent.worker.on('message', (message) => message.gap !== undefined && resolve(message));
      innocent.worker.on('error', reject);
    });
    await new Promise((resolve) => innocent.worker.once('message', resolve));
    return innocent;
  }

  // Ends the client. Checks that its sequence of chunks was complete and no gap was too long.
  async was_not_disturbed() {
    this.worker.postMessage('end');
    const { gap, chunks, whole } = await this.answer;
    assert.ok(whole, 'a chunk was lost or doubled');
    assert.ok(chunks > 5, `${chunks} chunks`);
    assert.ok(gap < longest_gap, `${gap} ms without a chunk`);
    return { gap, chunks };
  }
}
