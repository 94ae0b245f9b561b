// Debian packages of which the tests need only the files, and services that run from them.

import net from 'node:net';
import { homedir } from 'node:os';
import path from 'node:path';

const kCache =
  process.env.SLUICE_CACHE ??
  path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'sluice');

// The folder with the files of a package, where scripts/setup unpacks it.
export function unpacked(name) {
  return path.join(kCache, 'unpacked', name);
}

// A port of this machine for a service that cannot choose one itself.
export function free_port() {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
