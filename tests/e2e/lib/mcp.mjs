// The official TypeScript clients, both generations, behind one shape: {client, call_generate}.

import assert from 'node:assert/strict';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import { checking_fetch } from './schemas.mjs';

const kInfo = { name: 'sluice-e2e', version: '1.0.0' };

// Every way in which the official clients speak to a server.
export const generations = {
  'v1 (2025-11-25)': { era: 'legacy', make: () => new ClientV1(kInfo), Transport: TransportV1 },
  'v2, legacy': {
    era: 'legacy',
    make: () => new ClientV2(kInfo, { versionNegotiation: { mode: 'legacy' } }),
    Transport: TransportV2,
  },
  'v2, auto': {
    era: 'modern',
    make: () => new ClientV2(kInfo, { versionNegotiation: { mode: 'auto' } }),
    Transport: TransportV2,
  },
  'v2, 2026-07-28': {
    era: 'modern',
    make: () => new ClientV2(kInfo, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    Transport: TransportV2,
  },
};

// Connects; the test `t` closes, and fails if a message of the server breaks its schema.
export async function connect(t, server, name, { headers = {} } = {}) {
  const { make, Transport } = generations[name];
  const client = make();
  const checking = checking_fetch();
  const transport = new Transport(new URL(server.mcp_url), {
    requestInit: { headers },
    fetch: checking.fetch,
  });
  t.after(async () => {
    await client.close();
    const messages = await checking.finish();
    assert.ok(messages > 0, 'messages were checked');
  });
  await client.connect(transport);
  // v1 takes the result's schema as its second argument.
  const call_tool =
    make === generations['v1 (2025-11-25)'].make
      ? (params, options) => client.callTool(params, undefined, options)
      : (params, options) => client.callTool(params, options);
  return { client, transport, call_tool };
}

// Calls the tool `generate`: {text, deltas, result}. `on_delta` sees each delta as it comes.
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
