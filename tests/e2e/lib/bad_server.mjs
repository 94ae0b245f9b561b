// A server that breaks the rules of both eras, so that `sluice doctor` has something to find.

import { once } from 'node:events';
import http from 'node:http';

const kTools = [
  { name: 'good', description: 'Is as it should be', inputSchema: { type: 'object' } },
  { name: 'has space', description: 'Is badly named', inputSchema: { type: 'object' } },
  { name: 'good', description: 'Comes twice', inputSchema: { type: 'object' } },
  {
    name: 'bad_input',
    description: 'Has a type that there is not',
    inputSchema: { type: 'object', properties: { a: { type: 'strnig' } } },
  },
  {
    name: 'bad_output',
    description: 'Has a schema that is none',
    inputSchema: { type: 'object' },
    outputSchema: { type: 'object', required: 'all' },
  },
  {
    name: 'bad_header',
    description: 'Mirrors a number',
    inputSchema: {
      type: 'object',
      properties: { a: { type: 'number', 'x-mcp-header': 'A' } },
    },
  },
];
const kCapabilities = { tools: {}, prompts: {}, resources: {} };

let order = 0;

function result_of({ method, params }) {
  switch (method) {
    case 'server/discover':
      return {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: kCapabilities,
      };
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: kCapabilities,
        serverInfo: { name: 'bad', version: '1' },
      };
    case 'tools/list':
      return { tools: order++ % 2 === 0 ? kTools : kTools.toReversed() };
    case 'resources/list':
      return { resources: [{ uri: 'no-scheme', name: 'a' }] };
    case 'resources/templates/list':
      return { resourceTemplates: [] };
    case 'resources/read':
      return { contents: [] };
    default:
      return {};
  }
}

function answer(response, status, message, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(message));
}

// Refuses nothing, whatever a request's headers say.
function on_message(response, body) {
  const message = JSON.parse(body); // throws for what is no JSON
  const headers = { 'Mcp-Session-Id': 'one id' };
  if (message.id === undefined) return answer(response, 200, { taken: true });
  const id = message.method === 'ping' ? 1 : message.id;
  if (message.method === 'prompts/list') {
    return answer(response, 200, { jsonrpc: '2.0', id, error: { code: -32603, message: 'no' } });
  }
  if (message.method === 'subscriptions/listen') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' });
    const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    return response.write(`data: ${JSON.stringify(changed)}\n\n`);
  }
  return answer(response, 200, { jsonrpc: '2.0', id, result: result_of(message) }, headers);
}

async function serve(t, handler) {
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      try {
        handler(request, response, body);
      } catch {
        response.writeHead(500);
        response.end();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

export async function start_bad_server(t) {
  const origin = await serve(t, (request, response, body) => {
    if (request.method === 'GET') return answer(response, 404, {});
    if (request.method === 'DELETE') return answer(response, 200, {});
    return on_message(response, body);
  });
  return `${origin}/mcp`;
}

// A server behind a login, whose documents lead nowhere.
export async function start_bad_login(t) {
  const origin = await serve(t, (request, response) => {
    const here = `http://${request.headers.host}`;
    if (request.url === '/.well-known/oauth-protected-resource/mcp') {
      return answer(response, 200, {
        resource: 'https://another.example/mcp',
        authorization_servers: [here],
      });
    }
    if (request.url === '/.well-known/oauth-authorization-server') {
      return answer(response, 200, {
        issuer: 'https://another.example',
        authorization_endpoint: `${here}/authorize`,
        token_endpoint: `${here}/token`,
      });
    }
    return answer(response, request.headers.authorization ? 400 : 401, {});
  });
  return `${origin}/mcp`;
}

// Sends a request on to `target`. `on_reply` gets the reply.
function pass_on(target, request, response, body, on_reply) {
  const url = new URL(request.url, target);
  const through = http.request(
    url,
    { method: request.method, headers: { ...request.headers, host: url.host } },
    (reply) => {
      reply.on('error', () => {});
      on_reply(reply);
    },
  );
  through.on('error', () => response.destroy());
  response.on('close', () => through.destroy());
  through.end(body);
}

// A proxy in front of `target` that sends replies on when they have ended.
export async function start_buffering_proxy(t, target) {
  const origin = await serve(t, (request, response, body) => {
    pass_on(target, request, response, body, (reply) => {
      const parts = [];
      reply.on('data', (part) => parts.push(part));
      reply.on('end', () => {
        response.writeHead(reply.statusCode, reply.headers);
        response.end(Buffer.concat(parts));
      });
    });
  });
  return `${origin}/mcp`;
}

// A proxy in front of `target` that wants a login for the messages that are not `open`, and whose
// documents are as they should be.
export async function start_lazy_login(t, target, open) {
  const origin = await serve(t, (request, response, body) => {
    const here = `http://${request.headers.host}`;
    if (request.url.includes('oauth-protected-resource')) {
      return answer(response, 200, { resource: `${here}/mcp`, authorization_servers: [here] });
    }
    if (request.url.includes('well-known')) {
      return answer(response, 200, {
        issuer: here,
        authorization_endpoint: `${here}/authorize`,
        token_endpoint: `${here}/token`,
        registration_endpoint: `${here}/register`,
        code_challenge_methods_supported: ['S256'],
      });
    }
    if (!open.test(body)) return answer(response, 401, {}, { 'WWW-Authenticate': 'Bearer scope="read"' });
    return pass_on(target, request, response, body, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
  });
  return `${origin}/mcp`;
}

// A proxy in front of `target`. `asked` has the HTTP method of each request and its body.
export async function start_recording_proxy(t, target) {
  const asked = [];
  const origin = await serve(t, (request, response, body) => {
    asked.push({ method: request.method, body });
    pass_on(target, request, response, body, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
  });
  return { url: `${origin}/mcp`, asked };
}

// A proxy in front of `target`. `is_handled` gets the number of each request, from 1, the request, the
// response and the server, and says whether it has dealt with it.
export async function start_faulty_proxy(t, target, is_handled) {
  let count = 0;
  const server = http.createServer((request, response) => {
    if (is_handled(++count, request, response, server)) return;
    let body = '';
    request.on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      pass_on(target, request, response, body, (reply) => {
        response.writeHead(reply.statusCode, reply.headers);
        reply.pipe(response);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}${new URL(target).pathname}`;
}

// One that is not there any more from the request number `last` on.
export function start_dying_proxy(t, target, last) {
  return start_faulty_proxy(t, target, (number, request, response, server) => {
    if (number < last) return false;
    server.close();
    server.closeAllConnections();
    return true;
  });
}

// A server of both eras with sessions that it forgets at once, and lists that never end.
export async function start_endless_server(t) {
  let count = 0;
  const origin = await serve(t, (request, response, body) => {
    if (request.method !== 'POST') return answer(response, 405, {});
    const message = JSON.parse(body);
    const result = result_of(message);
    if (/\/list$/.test(message.method)) result.nextCursor = `page ${++count}`;
    const session = { 'Mcp-Session-Id': `session-${++count}` };
    return answer(response, 200, { jsonrpc: '2.0', id: message.id, result }, session);
  });
  return `${origin}/mcp`;
}

// A server of the legacy era. `on_request` gets each message and the response, and says whether it has
// dealt with it. `open` has the sessions that have begun and not ended.
export async function start_legacy_server(t, on_request) {
  const open = new Set();
  let count = 0;
  const origin = await serve(t, (request, response, body) => {
    const session = request.headers['mcp-session-id'];
    if (request.method === 'DELETE') return response.writeHead(open.delete(session) ? 204 : 404).end();
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (request.headers.origin) return response.writeHead(403).end();
    let message;
    try {
      message = JSON.parse(body);
    } catch {
      return response.writeHead(400).end();
    }
    const { id, method, params } = message;
    const headers = { 'content-type': 'application/json' };
    if (method === 'initialize') {
      headers['mcp-session-id'] = `session-of-the-doctor-${++count}`;
      open.add(headers['mcp-session-id']);
    }
    if (on_request(message, response, headers)) return;
    if (id === undefined) return response.writeHead(202).end();
    if (!open.has(session ?? headers['mcp-session-id'])) return response.writeHead(404).end();
    if (request.headers['mcp-protocol-version'] === '1900-01-01') return response.writeHead(400).end();
    const serverInfo = { name: 'legacy', version: '1' };
    const protocolVersion = /^1900/.test(params?.protocolVersion) ? '2025-11-25' : params?.protocolVersion;
    const results = { initialize: { protocolVersion, capabilities: {}, serverInfo }, ping: {} };
    const error = { code: -32601, message: 'no such method' };
    const outcome = results[method] ? { result: results[method] } : { error };
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
  });
  return { url: `${origin}/mcp`, open };
}
