// Both generations of the official TypeScript clients behind one interface.

import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SseV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport as WebSocketV1 } from '@modelcontextprotocol/sdk/client/websocket.js';
import * as types_v1 from '@modelcontextprotocol/sdk/types.js';
import {
  Client as ClientV2,
  SSEClientTransport as SseV2,
  StreamableHTTPClientTransport as HttpV2,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { check_transport } from './schemas.mjs';
import { clean_environment, root } from './server.mjs';
import { UnixTransport } from './unix_transport.mjs';

const kInfo = { name: 'sluice-e2e', version: '1.0.0' };

// v2 has no WebSocket, but the transport of v1 fits it. Neither has Unix sockets.
const shared_transports = { websocket: WebSocketV1, unix: UnixTransport };

const v1 = {
  make: (options) => new ClientV1(kInfo, options),
  transports: { http: HttpV1, sse: SseV1, stdio: StdioV1, ...shared_transports },
  // callTool() takes the result's schema as its second argument.
  call_tool: (client, params, options) => client.callTool(params, undefined, options),
  method_key: (method) => schemas_v1[method],
};
const v2 = (versionNegotiation) => ({
  make: (options) => new ClientV2(kInfo, { ...options, versionNegotiation }),
  transports: { http: HttpV2, sse: SseV2, stdio: StdioV2, ...shared_transports },
  call_tool: (client, params, options) => client.callTool(params, options),
  method_key: (method) => method,
});

// The schemas by which v1 registers handlers for methods.
const schemas_v1 = {
  'sampling/createMessage': types_v1.CreateMessageRequestSchema,
  'elicitation/create': types_v1.ElicitRequestSchema,
  'roots/list': types_v1.ListRootsRequestSchema,
  'notifications/message': types_v1.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types_v1.ResourceUpdatedNotificationSchema,
  'notifications/prompts/list_changed': types_v1.PromptListChangedNotificationSchema,
  'notifications/elicitation/complete': types_v1.ElicitationCompleteNotificationSchema,
};

// The official clients and their transports.
export const generations = {
  'v1 (2025-11-25)': { era: 'legacy', ...v1 },
  'v2, legacy': { era: 'legacy', ...v2({ mode: 'legacy' }) },
  'v2, auto': { era: 'modern', ...v2({ mode: 'auto' }) },
  'v2, 2026-07-28': { era: 'modern', ...v2({ mode: { pin: '2026-07-28' } }) },
};

// Makes a transport to `server`, or for stdio to the program `command`, a list of words, in `cwd` and
// with the variables of `env`.
function make_transport({ transports }, kind, settings) {
  const { server, command, cwd = root, env, transport_options } = settings;
  const Transport = transports[kind];
  switch (kind) {
    case 'http':
      return new Transport(new URL(server.mcp_url), transport_options);
    case 'sse':
      return new Transport(new URL(`${server.base}/sse`), transport_options);
    case 'websocket':
      return new Transport(new URL(server.ws_url));
    case 'unix':
      return new Transport(server.socket);
    default:
      return new Transport({
        command: command[0],
        args: command.slice(1),
        cwd,
        env: clean_environment(env),
        stderr: 'pipe',
      });
  }
}

// Connects over any transport to `server` or to the program `command`. `handlers` are called for
// the server's requests and notifications, by method. The test `t` closes the connection and fails
// if a message of the server violates its schema. `seen` holds the messages that arrived.
export async function connect_over(t, name, kind, settings) {
  const { client_options, connect_options, handlers = {} } = settings;
  const generation = generations[name];
  const client = generation.make(client_options);
  for (const [method, handler] of Object.entries(handlers)) {
    const key = generation.method_key(method);
    if (method.startsWith('notifications/')) client.setNotificationHandler(key, handler);
    else client.setRequestHandler(key, handler);
  }
  const transport = make_transport(generation, kind, settings);
  const { seen, problems } = check_transport(transport);
  t.after(async () => {
    await client.close();
    if (problems.length > 0) throw problems[0];
  });
  await client.connect(transport, connect_options);
  const call_tool = (params, call_options) => generation.call_tool(client, params, call_options);
  return { client, transport, call_tool, seen };
}

// Connects over Streamable HTTP, with additional `headers`.
export function connect(t, server, name, { headers = {} } = {}) {
  return connect_over(t, name, 'http', { server, transport_options: { requestInit: { headers } } });
}

// Calls the tool `generate`: {text, deltas, result}. `on_delta` is called with each delta as it
// arrives.
export async function generate(connection, args, { signal, on_delta = () => {} } = {}) {
  const deltas = [];
  const result = await connection.call_tool(
    { name: 'generate', arguments: args },
    {
      signal,
      onprogress: (progress) => {
        deltas.push(progress);
        on_delta(progress);
      },
    },
  );
  const text = result.content.map((part) => part.text).join('');
  return { text, deltas, result };
}
