// Generates a language model of a few hundred kilobytes: a small llama whose vocabulary has words,
// characters of several bytes and single bytes. After each word it is certain of the next one,
// whatever the temperature and however its arithmetic is batched, so that answers can be compared.
// It never ends an answer by itself.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const kWidth = 64;
const kHeads = 4;
const kInner = 64;
const kLayers = 2;
const kContext = 65536;
// Weights so small that the last word matters more than attention and everything else.
const kNoise = 0.001;

// The text that the model repeats. No word occurs twice, otherwise the next word would be
// ambiguous.
const kSentence = 'the stream of water runs down from a hill past stones to sea and never ends ;';
const kCharacters = 'éßøжю世界流🌊🏞';

const kType = { u32: 4, i32: 5, f32: 6, string: 8, array: 9 };
const kTokenType = { normal: 1, unknown: 2, control: 3, byte: 6 };

class Writer {
  parts = [];
  u32(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.parts.push(bytes);
  }
  u64(value) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    this.parts.push(bytes);
  }
  f32(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeFloatLE(value);
    this.parts.push(bytes);
  }
  string(text) {
    const bytes = Buffer.from(text);
    this.u64(bytes.length);
    this.parts.push(bytes);
  }
  value(type, value) {
    if (type === 'string') this.string(value);
    else if (type === 'f32') this.f32(value);
    else this.u32(value);
  }
  pair(key, type, value) {
    this.string(key);
    if (Array.isArray(value)) {
      this.u32(kType.array);
      this.u32(kType[type]);
      this.u64(value.length);
      for (const one of value) this.value(type, one);
    } else {
      this.u32(kType[type]);
      this.value(type, value);
    }
  }
  bytes() {
    return Buffer.concat(this.parts);
  }
}

function random_floats(seed) {
  let state = seed;
  return (count, scale) => {
    const values = new Float32Array(count);
    for (let index = 0; index < count; ++index) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      values[index] = (state / 2 ** 31 - 1) * scale;
    }
    return values;
  };
}

function vocabulary() {
  const tokens = [
    ['<unk>', kTokenType.unknown],
    ['<s>', kTokenType.control],
    ['</s>', kTokenType.control],
  ];
  for (let byte = 0; byte < 256; ++byte) {
    tokens.push([`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, kTokenType.byte]);
  }
  const space = '\u2581';
  tokens.push([space, kTokenType.normal]);
  for (const word of kSentence.split(' ')) tokens.push([space + word, kTokenType.normal]);
  for (const character of kCharacters) tokens.push([character, kTokenType.normal]);
  return tokens;
}

export function make_model() {
  const tokens = vocabulary();
  const random = random_floats(20260728);
  const first_word = 3 + 256;

  const tensors = [];
  const add = (name, dimensions, values) => tensors.push({ name, dimensions, values });
  const matrix = (name, columns, rows) =>
    add(name, [columns, rows], random(columns * rows, kNoise));
  const norm = (name) => add(name, [kWidth], new Float32Array(kWidth).fill(1));
  // Each word has its own direction, and the output weights of the word that follows it have the
  // same direction.
  const said = tokens.length - first_word;
  const embedding = new Float32Array(kWidth * tokens.length);
  const output = new Float32Array(kWidth * tokens.length);
  for (let token = 0; token < tokens.length; ++token) {
    const word = token < first_word ? token % said : token - first_word;
    embedding[token * kWidth + word] = 1;
  }
  for (let word = 0; word < said; ++word) {
    output[(first_word + ((word + 1) % said)) * kWidth + word] = 10;
  }
  add('token_embd.weight', [kWidth, tokens.length], embedding);
  norm('output_norm.weight');
  add('output.weight', [kWidth, tokens.length], output);
  for (let layer = 0; layer < kLayers; ++layer) {
    const name = (part) => `blk.${layer}.${part}.weight`;
    norm(name('attn_norm'));
    for (const part of ['attn_q', 'attn_k', 'attn_v', 'attn_output'])
      matrix(name(part), kWidth, kWidth);
    norm(name('ffn_norm'));
    matrix(name('ffn_gate'), kWidth, kInner);
    matrix(name('ffn_up'), kWidth, kInner);
    matrix(name('ffn_down'), kInner, kWidth);
  }

  const pairs = [
    ['general.architecture', 'string', 'llama'],
    ['general.name', 'string', 'sluice-e2e'],
    ['llama.context_length', 'u32', kContext],
    ['llama.embedding_length', 'u32', kWidth],
    ['llama.block_count', 'u32', kLayers],
    ['llama.feed_forward_length', 'u32', kInner],
    ['llama.attention.head_count', 'u32', kHeads],
    ['llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5],
    ['llama.rope.dimension_count', 'u32', kWidth / kHeads],
    ['tokenizer.ggml.model', 'string', 'llama'],
    ['tokenizer.ggml.tokens', 'string', tokens.map(([text]) => text)],
    ['tokenizer.ggml.scores', 'f32', tokens.map((_, index) => -index)],
    ['tokenizer.ggml.token_type', 'i32', tokens.map(([, type]) => type)],
    ['tokenizer.ggml.unknown_token_id', 'u32', 0],
    ['tokenizer.ggml.bos_token_id', 'u32', 1],
    ['tokenizer.ggml.eos_token_id', 'u32', 2],
  ];

  const kAlignment = 32;
  const aligned = (size) => Math.ceil(size / kAlignment) * kAlignment;
  const head = new Writer();
  head.parts.push(Buffer.from('GGUF'));
  head.u32(3);
  head.u64(tensors.length);
  head.u64(pairs.length);
  for (const [key, type, value] of pairs) head.pair(key, type, value);
  let offset = 0;
  for (const { name, dimensions, values } of tensors) {
    head.string(name);
    head.u32(dimensions.length);
    for (const dimension of dimensions) head.u64(dimension);
    head.u32(0); // F32
    head.u64(offset);
    offset += aligned(values.byteLength);
  }
  const before = head.bytes();
  const file = Buffer.alloc(aligned(before.length) + offset);
  before.copy(file);
  let at = aligned(before.length);
  for (const { values } of tensors) {
    Buffer.from(values.buffer).copy(file, at);
    at += aligned(values.byteLength);
  }
  return file;
}

// Writes the model to a new file, which is removed when the test `t` is over.
export function model_file(t) {
  const directory = mkdtempSync(path.join(tmpdir(), 'sluice-e2e-model-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = path.join(directory, 'tiny.gguf');
  writeFileSync(file, make_model());
  return file;
}
