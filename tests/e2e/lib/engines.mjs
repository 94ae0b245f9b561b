// The engines of `sluice serve` whose answers have as many numbered pieces as a client asks for.

import assert from 'node:assert/strict';
import { npu_files, npu_flags } from './npu.mjs';
import * as wire from './wire.mjs';

// The runtime of the NPU says these at a pace, and then nothing until it is told to end.
const kNumbers = 1000;
const kCounting = `${Array.from({ length: kNumbers }, (_, n) => `say ${n}\\n\ndelay 1\n`).join('')}block\n`;

// settings(t): what `sluice serve` is started with for the test `t`. asking(pieces, interval_us): the
// arguments of `generate`. count(text): how many pieces there are, which are checked.
export const engines = {
  'synthetic engine': {
    settings: () => ({ flags: ['--engine', 'synthetic'], env: {} }),
    asking: (count, interval_us) => ({ prompt: 'Hello', count, interval_us }),
    count: wire.count_numbers,
  },
  NPU: {
    settings: (t) => {
      const files = npu_files(t, kCounting);
      return { flags: npu_flags(files, '1.3.0'), env: files.env };
    },
    asking: (max_tokens) => ({ prompt: 'Hello', max_tokens }),
    count: (text) => {
      const lines = text.split('\n').slice(0, -1);
      lines.forEach((line, index) => assert.equal(line, `${index}`, 'numbers have no gap'));
      return lines.length;
    },
  },
};
