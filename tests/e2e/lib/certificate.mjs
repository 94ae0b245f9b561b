// A certificate for tests of TLS.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

// Makes a certificate for `names`, by default this machine, and its key: {certificate, key}, the paths
// of the files. The test `t` removes them.
export function make_certificate(t, names = 'DNS:localhost,IP:127.0.0.1') {
  const directory = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [certificate, key] = ['cert.pem', 'key.pem'].map((name) => path.join(directory, name));
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
      ...['-addext', `subjectAltName=${names}`],
      ...['-keyout', key, '-out', certificate],
    ],
    { stdio: 'ignore' },
  );
  return { certificate, key };
}
