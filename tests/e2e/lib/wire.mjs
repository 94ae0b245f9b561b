// The parts of the protocol that the tests rely on, in one place: stream methods, their errors, the
// synthetic engine's text, and the names of metrics and limits. docs/streaming.md describes them.

import assert from 'node:assert/strict';

export const codes = {
  parse: -32700,
  invalid_request: -32600,
  method_not_found: -32601,
  invalid_params: -32602,
  not_found: -32001,
  expired: -32005,
  invalid_state: -32006,
  limit: -31010,
  busy: -31000,
};

export const metric = {
  connections: 'sluice_connections',
  streams: 'sluice_streams_open',
  streams_active: 'sluice_streams_active',
  stream_bytes: 'sluice_stream_memory_bytes',
  slots_busy: 'sluice_engine_slots_busy',
  requests_queued: 'sluice_engine_requests_queued',
  output_bytes: 'sluice_output_queued_bytes',
  pauses: 'sluice_stream_pauses_total',
  stalled: 'sluice_readers_stalled_total',
};

export const flag = {
  max_chunks: '--max-chunks',
  max_bytes: '--max-stream-bytes',
  max_total_bytes: '--max-total-bytes',
  per_client: '--streams-per-client',
  expiry: '--stream-expiry',
  tombstone: '--stream-tombstone',
  stall_limit: '--stall-limit',
  max_body: '--max-body',
  max_header: '--max-header',
  request_timeout: '--request-timeout',
  shutdown_deadline: '--shutdown-deadline',
  compression_threshold: '--compression-threshold',
  max_connections: '--max-connections',
};

export const path = {
  stream: (stream_id) => `/streams/${stream_id}`,
};

export const start = (params) => ['run', { prompt: 'Hello', ...params, stream: true }];
export const whole = (params) => ['run', { prompt: 'Hello', ...params }];
export const poll = (stream_id, from_seq, wait_ms) => [
  'run',
  wait_ms === undefined ? { stream_id, from_seq } : { stream_id, from_seq, wait_ms },
];
export const subscribe = (stream_id, from_seq, window) => [
  'subscribe',
  JSON.parse(JSON.stringify({ stream_id, from_seq, window })),
];
export const ack = (stream_id, seq) => ['ack', { stream_id, seq }];
export const abort = (stream_id) => ['abort', { stream_id }];
export const is_running = (stream_id) => ['is_running', { stream_id }];
export const streams = () => ['streams', {}];

// The arguments with which the tool `generate` attaches to a stream that already runs.
export const attach_arguments = (stream_id) => ({ stream_id });

// The text of a whole (not streamed) `run` result.
export function whole_text(result) {
  assert.equal(typeof result.text, 'string', `no text in ${JSON.stringify(result)}`);
  return result.text;
}

// The chunk in an event of an event stream. The event holds the same message that a WebSocket gets.
export const chunk_of_event = (event) => JSON.parse(event.data).params;

// The text of a tool's result.
export function tool_text(result) {
  return result.content.map((part) => part.text).join('');
}

// Checks a list of {seq, delta, end} that one reader received: they are numbered from `first`
// without a gap, and only the last one is an end. Returns the text.
export function checked_text(chunks, first = 0) {
  chunks.forEach((chunk, index) => {
    assert.equal(chunk.seq, first + index, 'sequence numbers have no gap');
    assert.equal(typeof chunk.delta, 'string');
    assert.equal(chunk.end, index === chunks.length - 1, `end at ${index} of ${chunks.length}`);
  });
  return chunks.map((chunk) => chunk.delta).join('');
}

// Checks that the numbers in the synthetic engine's text are 0, 1, 2, ... Returns how many there
// are.
export function count_numbers(text, first = 0) {
  const numbers = numbers_in(text);
  numbers.forEach((number, index) => assert.equal(number, first + index, 'numbers have no gap'));
  return numbers.length;
}

function numbers_in(text) {
  const pieces = text.split(/(?<=\})\n?/).filter((piece) => piece !== '');
  return pieces.map((piece) => {
    const value = JSON.parse(piece);
    assert.equal(typeof value.t_ns, 'number');
    return value.n;
  });
}

// The text without its clock readings, so that two runs can be compared.
export const without_clock = (text) => text.replace(/"t_ns":\d+/g, '"t_ns":0');

// The messages in the text of an event stream. Comments and events without data hold none.
export function event_messages(text) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && line !== 'data: ')
    .map((line) => JSON.parse(line.slice('data: '.length)));
}
