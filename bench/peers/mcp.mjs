// The official TypeScript SDK's server, stateless revision 2026-07-28, as its documentation writes
// it: a new McpServer for each POST. Its tools are those of sluice's synthetic engine.
//   node mcp.mjs PORT
import { createServer } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const nowUs = () => Number(process.hrtime.bigint() / 1000n);

// Above 0: chunk n is due at start + n * intervalUs. 0: as fast as notify() returns. -1: one per
// turn of the event loop.
async function pace(start, n, intervalUs) {
  if (intervalUs < 0) return setImmediate();
  if (intervalUs > 0 && n > 0) {
    const leftMs = (start + n * intervalUs - nowUs()) / 1000;
    if (leftMs > 0) return setTimeout(leftMs);
  }
}

async function streamNumbers({ count, interval_us: intervalUs }, { mcpReq }) {
  const start = nowUs();
  for (let n = 0; n < count && !mcpReq.signal.aborted; ++n) {
    await pace(start, n, intervalUs);
    await mcpReq.notify({
      method: 'notifications/progress',
      params: {
        progressToken: mcpReq._meta?.progressToken,
        progress: n + 1,
        total: count,
        message: `{"n":${n},"t_ns":${process.hrtime.bigint()}}\n`,
      },
    });
  }
  return { content: [{ type: 'text', text: 'done' }] };
}

const echoInput = z.object({ text: z.string() });
const streamInput = z.object({ count: z.number().int(), interval_us: z.number().int() });

function build() {
  const server = new McpServer({ name: 'bench', version: '1' });
  server.registerTool('echo', { inputSchema: echoInput }, ({ text }) => ({
    content: [{ type: 'text', text }],
  }));
  server.registerTool('stream_numbers', { inputSchema: streamInput }, streamNumbers);
  return server;
}

createServer(toNodeHandler(createMcpHandler(build))).listen({
  port: Number(process.argv[2]),
  host: '127.0.0.1',
  backlog: 4096,
});
