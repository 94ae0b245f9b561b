// `sluice import-config`: the settings of an earlier server as a sluice.toml.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { socket_client } from '../lib/lines.mjs';
import { npu_files, library } from '../lib/npu.mjs';
import { root, run_program, start_server, temporary_folder } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

const generated = readFileSync(path.join(root, 'fuzz/corpus/legacy_settings/generated'), 'utf8');

test('a server with the settings serves the clients of the earlier one', async (t) => {
  const npu = npu_files(t, 'say Hello.\n');
  const folder = temporary_folder(t);
  const settings = path.join(folder, 'settings.json');
  const toml = path.join(folder, 'sluice.toml');
  const local = JSON.parse(generated);
  local.rkllm.default_model_path = npu.model;
  for (const name of ['tcp', 'http', 'websocket']) local.transports[name].host = '127.0.0.1';
  writeFileSync(settings, JSON.stringify(local));

  const imported = await run_program(['import-config', settings, '-o', toml]);
  assert.deepEqual([imported.code, imported.stdout], [0, '']);
  const notes = imported.stderr.trimEnd().split('\n');
  assert.ok(notes.length > 40);
  for (const note of notes) assert.ok(note.startsWith(`sluice: ${settings}: `), note);
  assert.match(imported.stderr, /transports\.udp\.port is left out: UDP is not served/);
  const text = readFileSync(toml, 'utf8');
  assert.match(text, /^listen = \["127\.0\.0\.1:8082", "127\.0\.0\.1:8083"\] {2}# transports$/m);
  assert.match(text, /^legacy_listen = "127\.0\.0\.1:8080" {2}# transports\.tcp$/m);

  // On ports that are free, for other tests run beside this one.
  const flags = ['--config', toml, '--legacy-listen', '127.0.0.1:0', '--engine', 'llama'];
  const server = await start_server(t, [...flags, '--rkllm-library', library('1.3.0')], { env: npu.env });
  const [, port] = /^TCP lines {4}127\.0\.0\.1:(\d+)$/m.exec(server.output);
  const client = await socket_client(t, { host: '127.0.0.1', port: Number(port) });
  assert.equal(wire.whole_text(await client.call('rkllm_run', { prompt_input: 'Hi' })), 'Hello.');
});

test('what cannot be read or written says why, and writes nothing', async (t) => {
  const folder = temporary_folder(t);
  const settings = path.join(folder, 'settings.json');
  const toml = path.join(folder, 'sluice.toml');
  const importing = (...words) => run_program(['import-config', settings, ...words]);
  assert.match((await importing()).stderr, /settings\.json: No such file/);
  writeFileSync(settings, '{"transports":{"tcp":{"port":"80"}}}');
  const wrong = await importing('-o', toml);
  assert.deepEqual([wrong.code, wrong.stdout], [2, '']);
  assert.match(wrong.stderr, /settings\.json: transports\.tcp\.port: give an integer/);
  assert.equal(existsSync(toml), false);
  writeFileSync(settings, '{"limits":{"max_concurrent_connections":7}}');
  const shown = await importing();
  assert.deepEqual(
    [shown.code, shown.stdout, shown.stderr],
    [0, '[http]\nmax_connections = 7  # limits.max_concurrent_connections\n', ''],
  );
  writeFileSync(toml, 'mine');
  const kept = await importing('-o', toml);
  assert.equal(kept.code, 1);
  assert.match(kept.stderr, /sluice\.toml exists; nothing is overwritten/);
  assert.equal(readFileSync(toml, 'utf8'), 'mine');
});
