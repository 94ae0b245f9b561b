// Servers of models for a Rockchip NPU, whose runtime is the stand-in of tests/fake_rkllm.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { program, start_server, temporary_folder } from './server.mjs';

export const abis = ['1.1', '1.2.0', '1.2.1', '1.3.0'];

// An answer in which a token has a part of a character.
const kWords = ['Water ', 'is ', 'w\\xc3', '\\xa4rmer ', 'here', '.'];
export const npu_script = `${kWords.map((word) => `say ${word}`).join('\n')}\n`;
export const npu_text = 'Water is wärmer here.';

// The files of a tokenizer whose tokens are the bytes, and 256, which ends an answer. With
// `words 257` the stand-in has the same.
export function byte_vocabulary() {
  const is_own = (byte) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  const vocab = {};
  for (let byte = 0; byte < 256; ++byte) {
    vocab[String.fromCharCode(is_own(byte) ? byte : next++)] = byte;
  }
  return {
    'tokenizer.json': JSON.stringify({
      added_tokens: [{ id: 256, content: '<|end|>', special: true }],
      decoder: { type: 'ByteLevel' },
      model: { type: 'BPE', vocab, merges: [] },
    }),
    'generation_config.json': JSON.stringify({ eos_token_id: 256 }),
  };
}

export const library = (abi) =>
  path.join(path.dirname(program), `../lib/fake_rkllm/${abi}/librkllmrt.so`);

// A model, and what the runtime does with it: `script` has the steps of the stand-in's README.md.
// `beside`: texts of more files in its folder, by their names.
export function npu_files(t, script, beside = {}) {
  const folder = temporary_folder(t);
  for (const [name, text] of Object.entries(beside)) writeFileSync(path.join(folder, name), text);
  const files = {
    model: path.join(folder, 'model.rkllm'),
    script: path.join(folder, 'script'),
    log: path.join(folder, 'log'),
  };
  writeFileSync(files.model, 'no real model');
  writeFileSync(files.script, script);
  writeFileSync(files.log, '');
  return {
    ...files,
    env: { FAKE_RKLLM_SCRIPT: files.script, FAKE_RKLLM_LOG: files.log },
    calls: () => readFileSync(files.log, 'utf8'),
  };
}

// With these, `sluice serve` serves such a model.
export const npu_flags = ({ model }, abi) => [
  ...['--engine', 'llama', '--model', model],
  ...['--rkllm-library', library(abi)],
];

// Starts `sluice serve` with such a model.
export async function start_npu(t, abi, script, flags = [], beside = {}) {
  const files = npu_files(t, script, beside);
  const server = await start_server(t, [...npu_flags(files, abi), ...flags], { env: files.env });
  return Object.assign(server, { calls: files.calls, script: files.script });
}
