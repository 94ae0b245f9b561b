// What the programs of clients share: the official client, and the counting of what they receive.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const kLongestUs = 60_000_000; // that the engine takes between two chunks

// A client of revision 2026-07-28.
export async function connect(url) {
  const client = new Client(
    { name: 'bench', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

// Calls the tool that streams, with chunks as often as that; 0: as fast as they are taken.
export function stream(client, { count, interval_us = kLongestUs }, onprogress, signal) {
  return client.callTool(
    { name: 'stream_numbers', arguments: { count, interval_us } },
    { onprogress, signal, timeout: 2 * (kLongestUs / 1000), resetTimeoutOnProgress: true },
  );
}

export function finish(report) {
  console.log(JSON.stringify(report));
  process.exit(0);
}

const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

// A function that counts a unit between the end of the warm-up and the end of the measured time,
// and then reports and ends the program. `more` are further figures of the report.
export function counter(warmup, seconds, more = () => ({})) {
  let units = 0;
  let begin = performance.now() + warmup * 1000;
  const end = begin + seconds * 1000;
  let cpu;
  // Returns whether the unit counts.
  return () => {
    const now = performance.now();
    if (cpu === undefined) {
      if (now < begin) return false;
      begin = now;
      cpu = cpuUs();
    }
    ++units;
    if (now < end) return true;
    const used = cpuUs() - cpu;
    return finish({
      units,
      per_second: (units * 1000) / (now - begin),
      ...more(),
      cpu_us_each: used / units,
      cores: used / 1000 / (now - begin),
    });
  };
}
