// A long-poll server written by hand on node:http: every poll returns the next K chunks.
//   node poll.mjs PORT K
import { createServer } from 'node:http';
import { chunk, runReply, streamId } from './chunks.mjs';

const perReply = Number(process.argv[3]);

function answer(request, params) {
  if (params.stream_id === undefined) {
    request.socket.count = params.count; // one stream per connection
    return runReply;
  }
  const count = request.socket.count;
  const until = Math.min(params.from_seq + perReply, count + 1);
  const chunks = [];
  for (let n = params.from_seq; n < until; ++n) chunks.push(chunk(n, count));
  const result = { stream_id: streamId, chunks, has_more: until <= count };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, result });
}

createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const body = answer(request, JSON.parse(Buffer.concat(parts)).params);
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  });
}).listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 });
