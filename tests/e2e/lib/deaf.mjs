// Peers that do not read what the server sends them, and what must hold beside them.

import assert from 'node:assert/strict';
import { Innocent } from './innocent.mjs';
import { RawConnection } from './raw.mjs';

export const MiB = 1024 * 1024;

// A connection whose peer reads nothing until read() is called. The options are those of
// RawConnection.open().
export async function deaf(t, server, options) {
  const connection = await RawConnection.open(server, options);
  t.after(() => connection.destroy());
  connection.socket.pause();
  connection.read = () => connection.socket.resume();
  return connection;
}

// Runs `misbehave` beside another client, which must not be affected. Returns what that client saw.
export async function beside_an_innocent(server, misbehave) {
  const innocent = await Innocent.beside(server);
  await misbehave();
  return innocent.was_not_disturbed();
}

// Checks for a while that the server holds at most `limit` bytes for its connections.
export async function stays_below(server, limit) {
  for (let look = 0; look < 10; ++look) {
    const held = await server.metric('sluice_buffer_memory_bytes');
    assert.ok(held <= limit, `${held} bytes of buffers`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
