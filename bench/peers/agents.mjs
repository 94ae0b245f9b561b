// What OpenAI's agents SDK can do of the relay of bench/agent: runs whose model calls a tool of an
// MCP server, whose chunks the user gets while it runs.
//   node agents.mjs callback|nested URL RUNS INTERVAL_US WARMUP SECONDS
// The SDK's own MCP servers ask for no progress, which is checked first. So the tool is a function
// that calls the server with the official client, and hands the chunks to a callback, beside the run;
// or it is an agent whose model says the chunks, which are then events of that agent's run.
import { Agent, MCPServerStreamableHttp, run, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';
import { connect, counter, stream } from './counting.mjs';

const kTool = 'stream_numbers';
const kAbout = 'Streams numbers';
const kStamp = '"t_ns":';
const kFew = { count: 3, interval_us: 1000 };
const kUsage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

const [mode, url, runs, intervalUs, warmup, seconds] = process.argv.slice(2);
const given = { count: 100_000_000, interval_us: Number(intervalUs) };
const parameters = z.object({ count: z.number().int(), interval_us: z.number().int() });

setTracingDisabled(true);
const client = await connect(url);

const ages = [];
const part = (of) => ages.toSorted((a, b) => a - b)[Math.floor(of * ages.length)] ?? 0;
const add = counter(Number(warmup), Number(seconds), () => ({
  p50_us: part(0.5),
  p99_us: part(0.99),
}));
function take(text) {
  const made = Number.parseInt(text.slice(text.indexOf(kStamp) + kStamp.length), 10);
  const now = Number(process.hrtime.bigint());
  if (add()) ages.push((now - made) / 1000);
}

const fromTool = tool({
  name: kTool,
  description: kAbout,
  parameters,
  execute: async (input) => {
    const { content } = await stream(client, input, ({ message }) => take(message));
    return content[0].text;
  },
});

// The chunks of a call, as they come.
async function* chunks(input) {
  let waiting = [];
  let wake = () => {};
  let isOver = false;
  const call = stream(client, input, ({ message }) => {
    waiting.push(message);
    wake();
  }).finally(() => {
    isOver = true;
    wake();
  });
  while (!isOver) {
    yield* waiting.splice(0);
    if (waiting.length === 0 && !isOver) await new Promise((resolve) => (wake = resolve));
  }
  await call;
  yield* waiting;
}

const answer = (output) => ({
  type: 'response_done',
  response: { id: 'response', usage: kUsage, output },
});

const answerText = (text) =>
  answer([
    {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text }],
    },
  ]);

const speaker = {
  async *getStreamedResponse() {
    let text = '';
    for await (const delta of chunks(given)) {
      text = delta;
      yield { type: 'output_text_delta', delta };
    }
    yield answerText(text);
  },
};
const fromAgent = () =>
  new Agent({ name: kTool, model: speaker }).asTool({
    toolName: kTool,
    toolDescription: kAbout,
    parameters,
    onStream: ({ event }) => {
      if (event.type !== 'raw_model_stream_event') return;
      if (event.data.type === 'output_text_delta') take(event.data.delta);
    },
  });

const answerCall = (callId, input) =>
  answer([
    {
      type: 'function_call',
      status: 'completed',
      callId,
      name: kTool,
      arguments: JSON.stringify(input),
    },
  ]);

function fail(error) {
  console.error(String(error));
  process.exit(1);
}

// Fails if a run shows anything of what a tool of the SDK's own MCP server writes.
async function checkOwnServer() {
  const server = new MCPServerStreamableHttp({ name: 'own', url });
  await server.connect();
  const answers = [answerCall('own', kFew), answerText('Done.')];
  const model = {
    async *getStreamedResponse() {
      yield answers.shift();
    },
  };
  const own = new Agent({ name: 'own', model, mcpServers: [server] });
  const names = [];
  for await (const event of await run(own, 'Go', { stream: true })) {
    if (JSON.stringify(event).includes(kStamp)) throw new Error('the SDK passes on progress');
    names.push(event.name);
  }
  if (!names.includes('tool_output')) throw new Error('the tool was not called');
  await server.close();
}

let asked = 0;
const caller = {
  async *getStreamedResponse() {
    // The SDK asks no model again before the tools of its answer have ended, and these do not end.
    if (++asked > Number(runs)) fail(new Error('a model was asked again'));
    yield answerCall(`call_${asked}`, given);
  },
};
const agent = new Agent({
  name: 'bench',
  model: caller,
  tools: [mode === 'nested' ? fromAgent() : fromTool],
});

async function relay() {
  for await (const event of await run(agent, 'Go', { stream: true })) {
    if (event.type === 'error') throw event.error;
  }
  throw new Error('it is over');
}

try {
  await checkOwnServer();
  await Promise.all(Array.from({ length: Number(runs) }, relay));
} catch (error) {
  fail(error);
}
