// The official TypeScript client, revision 2026-07-28, with the loads of bench/client:
//   node client.mjs calls|streams|open URL CALLS [WARMUP SECONDS]
import { readFileSync } from 'node:fs';
import { connect, counter, finish, stream } from './counting.mjs';

const kCount = 1_000_000; // more chunks than are taken
const kIntervalUs = 20_000; // 50 chunks a second
const kAtATime = 16; // calls that are opened at a time, the first of them before memory is measured

const [mode, url, calls, warmup, seconds] = process.argv.slice(2);
const count = Number(calls);
const client = await connect(url);
const add = counter(Number(warmup), Number(seconds));

function residentBytes() {
  globalThis.gc?.(); // with --expose-gc
  const rollup = readFileSync('/proc/self/smaps_rollup', 'utf8');
  return Number(/^Rss:\s+(\d+) kB/m.exec(rollup)[1]) * 1024;
}

async function echo() {
  const text = 'x'.repeat(32);
  for (;;) {
    const { content } = await client.callTool({ name: 'echo', arguments: { text } });
    if (content[0].text !== text) throw new Error('a wrong answer');
    add();
  }
}

function follow() {
  let expected = 0;
  return stream(client, { count: kCount, interval_us: kIntervalUs }, ({ progress }) => {
    if (progress !== ++expected) throw new Error('a wrong chunk');
    add();
  });
}

// Resolves when each of `size` more calls has had its first chunk.
async function open(size) {
  for (let left = size; left > 0; left -= kAtATime) {
    const some = Array.from({ length: Math.min(left, kAtATime) });
    const begun = (resolve) => stream(client, { count: kCount }, resolve);
    await Promise.all(some.map(() => new Promise(begun)));
  }
}

switch (mode) {
  case 'calls':
    await Promise.all(Array.from({ length: count }, echo));
    break;
  case 'streams':
    await Promise.all(Array.from({ length: count }, follow));
    break;
  default: {
    await open(kAtATime);
    const before = residentBytes();
    await open(count);
    finish({ units: count, bytes_each: (residentBytes() - before) / count });
  }
}
