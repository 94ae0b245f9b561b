// npm's `ws`: answers a `run` and pushes its chunks, one message per chunk. It does only what the
// specification of sluice's stream methods requires: no limits, no resumption.
//   node ws.mjs PORT
import { WebSocketServer } from 'ws';
import { chunk, runReply, streamId } from './chunks.mjs';

const kBatch = 16; // chunks before it is other connections' turn
const kHighWater = 1 << 20; // bytes waiting in one socket

function push(socket, n, count) {
  const params = { stream_id: streamId, ...chunk(n, count) };
  socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'run', params }));
}

function saturate(socket, n, count, batch) {
  if (socket.readyState !== socket.OPEN) return;
  for (let i = 0; i < batch && n <= count && socket.bufferedAmount < kHighWater; ++i) {
    push(socket, n++, count);
  }
  if (n <= count) setImmediate(saturate, socket, n, count, batch);
}

function paced(socket, start, n, count, intervalMs) {
  if (socket.readyState !== socket.OPEN) return;
  push(socket, n++, count);
  if (n > count) return;
  const due = start + n * intervalMs - performance.now();
  setTimeout(paced, Math.max(due, 0), socket, start, n, count, intervalMs);
}

const server = new WebSocketServer({
  port: Number(process.argv[2]),
  host: '127.0.0.1',
  backlog: 4096,
  perMessageDeflate: false,
});
server.on('connection', (socket) => {
  socket.on('message', (data) => {
    const { params } = JSON.parse(data);
    socket.send(runReply);
    if (params.interval_us > 0) {
      paced(socket, performance.now(), 0, params.count, params.interval_us / 1000);
    } else {
      saturate(socket, 0, params.count, params.interval_us < 0 ? 1 : kBatch);
    }
  });
});
