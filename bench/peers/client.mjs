// The official TypeScript client, revision 2026-07-28, with the loads of bench/client:
//   node client.mjs calls|streams|open URL CALLS [WARMUP SECONDS]
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const kLongestUs = 60_000_000; // that the engine takes
const kIntervalUs = 20_000; // 50 chunks a second
const kAtATime = 16; // calls that are opened at a time, the first of them before memory is measured

const [mode, url, calls, warmup, seconds] = process.argv.slice(2);
const count = Number(calls);
const client = new Client(
  { name: 'bench', version: '1' },
  { versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
function residentBytes() {
  globalThis.gc?.(); // with --expose-gc
  const rollup = readFileSync('/proc/self/smaps_rollup', 'utf8');
  return Number(/^Rss:\s+(\d+) kB/m.exec(rollup)[1]) * 1024;
}

function finish(report) {
  console.log(JSON.stringify(report));
  process.exit(0);
}

// Counts units between the end of the warm-up and the end of the measured time.
let units = 0;
let begin = performance.now() + Number(warmup) * 1000;
const end = begin + Number(seconds) * 1000;
let cpu;
function add() {
  const now = performance.now();
  if (cpu === undefined) {
    if (now < begin) return;
    begin = now;
    cpu = cpuUs();
  }
  ++units;
  if (now < end) return;
  const used = cpuUs() - cpu;
  finish({
    units,
    per_second: (units * 1000) / (now - begin),
    cpu_us_each: used / units,
    cores: used / 1000 / (now - begin),
  });
}

function stream(intervalUs, onprogress) {
  return client.callTool(
    { name: 'stream_numbers', arguments: { count: 1_000_000, interval_us: intervalUs } },
    { onprogress, timeout: 2 * (kLongestUs / 1000), resetTimeoutOnProgress: true },
  );
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
  return stream(kIntervalUs, ({ progress }) => {
    if (progress !== ++expected) throw new Error('a wrong chunk');
    add();
  });
}

// Resolves when each of `size` more calls has had its first chunk.
async function open(size) {
  for (let left = size; left > 0; left -= kAtATime) {
    const some = Array.from({ length: Math.min(left, kAtATime) });
    await Promise.all(some.map(() => new Promise((resolve) => stream(kLongestUs, resolve))));
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
