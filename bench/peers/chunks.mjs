// The chunks that the two hand-written peers push and return, in sluice's form (docs/streaming.md).

export const streamId = 'abcdefghijklmnop';

export const runReply = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  result: { stream_id: streamId, status: 'streaming_started' },
});

/** Chunk `n` of `count`; the one after the last ends the stream. */
export function chunk(n, count) {
  return n < count
    ? { seq: n, delta: `{"n":${n},"t_ns":${process.hrtime.bigint()}}\n`, end: false }
    : { seq: n, delta: '', end: true };
}
