// The ways to read a stream. Each reads to the end and returns the chunks, {seq, delta, end}.

import { spawn } from 'node:child_process';
import { EventSource } from 'eventsource';
import { clean_environment } from './server.mjs';
import { WsClient } from './rpc.mjs';
import * as wire from './wire.mjs';

// `pace` is awaited between two polls. Without `acknowledge`, every poll asks for the whole stream
// again, until it is complete.
export async function poll_stream(
  client,
  stream_id,
  { from = 0, wait_ms, pace = () => {}, acknowledge = true } = {},
) {
  let chunks = [];
  for (let seq = from; ;) {
    const result = await client.call(...wire.poll(stream_id, seq, wait_ms));
    chunks = acknowledge ? chunks.concat(result.chunks) : result.chunks;
    if (!result.has_more) return chunks;
    if (acknowledge) seq += result.chunks.length;
    await pace();
  }
}

export async function push_stream(server, stream_id, { from = 0, window, options, on_chunk } = {}) {
  const client = await WsClient.connect(server, options);
  try {
    await client.call(...wire.subscribe(stream_id, from, window));
    if (on_chunk) client.when(() => client.chunks(stream_id).length > 0, 'a chunk').then(on_chunk);
    return [...(await client.whole(stream_id))];
  } finally {
    await client.close();
  }
}

// Reads like a browser's EventSource. `drop_after` breaks the connection once after that many
// events, so that the rest is requested with Last-Event-ID.
export function event_stream(server, stream_id, { drop_after, on_chunk = () => {} } = {}) {
  const chunks = [];
  let drop = null;
  return new Promise((resolve, reject) => {
    const source = new EventSource(server.base + wire.path.stream(stream_id), {
      fetch: (url, init) => {
        const breaker = new AbortController();
        if (drop === null) drop = () => breaker.abort(new TypeError('dropped by the test'));
        return fetch(url, { ...init, signal: AbortSignal.any([init.signal, breaker.signal]) });
      },
    });
    source.onerror = (event) => {
      if (source.readyState === EventSource.CLOSED) reject(new Error(event.message ?? 'closed'));
    };
    source.onmessage = (event) => {
      const chunk = wire.chunk_of_event(event);
      if (event.lastEventId !== String(chunk.seq)) {
        reject(new Error(`event ${event.lastEventId} holds chunk ${chunk.seq}`));
      }
      chunks.push(chunk);
      on_chunk(chunk);
      if (chunk.end) {
        source.close();
        resolve(chunks);
      } else if (chunks.length === drop_after) {
        drop();
      }
    };
  });
}

// The events of an SSE body.
export function parse_events(text) {
  return text
    .split('\n\n')
    .map((block) => {
      const event = { data: [] };
      for (const line of block.split('\n')) {
        const match = /^(\w+): ?(.*)$/.exec(line);
        if (match?.[1] === 'data') event.data.push(match[2]);
        else if (match) event[match[1]] = match[2];
      }
      return event;
    })
    .filter((event) => event.data.length > 0)
    .map((event) => ({ ...event, data: event.data.join('\n') }));
}

export function curl_stream(server, stream_id, { on_chunk = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    const curl = spawn('curl', ['-sSN', '-k', server.base + wire.path.stream(stream_id)], {
      env: clean_environment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let body = '';
    curl.stdout.setEncoding('utf8');
    curl.stdout.on('data', (text) => {
      body += text;
      on_chunk();
    });
    curl.once('error', reject);
    curl.once('close', (code) => {
      if (code !== 0) reject(new Error(`curl ended with ${code}`));
      else resolve(parse_events(body).map(wire.chunk_of_event));
    });
  });
}
