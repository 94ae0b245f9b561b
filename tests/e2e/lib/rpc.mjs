// JSON-RPC over HTTP and WebSocket without any extras: nothing is sent that the test does not send.

import assert from 'node:assert/strict';
import WebSocket from 'ws';
import { patience } from './patience.mjs';
import { check_message, revision_of } from './schemas.mjs';

export class RpcError extends Error {
  constructor({ code, message, data }) {
    super(`${code} ${message}`);
    this.code = code;
    this.data = data;
  }
}

// Returns the result of a reply, or throws its error.
export function unwrap(reply) {
  assert.equal(reply.jsonrpc, '2.0');
  if (reply.error) {
    assert.equal(typeof reply.error.message, 'string');
    throw new RpcError(reply.error);
  }
  return reply.result;
}

// A client over POST /mcp. `key` is an API key, `local_address` the address to connect from.
export class HttpClient {
  #next_id = 1;

  constructor(server, { key, local_address } = {}) {
    this.server = server;
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
    this.local_address = local_address;
  }

  async exchange(body, headers = {}, options = {}) {
    return this.server.request({
      method: 'POST',
      path: '/mcp',
      headers: { ...this.headers, ...headers },
      body,
      local_address: this.local_address,
      ...options,
    });
  }

  async reply(method, params, headers, options) {
    const id = this.#next_id++;
    const answer = await this.exchange(
      JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      headers,
      options,
    );
    const reply = JSON.parse(answer.body.toString());
    assert.equal(reply.id, id);
    const sent = Object.entries({ ...this.headers, ...headers });
    const lower = Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), value]));
    check_message(reply, method, revision_of({ method, params }, { headers: lower }));
    return reply;
  }

  async call(method, params, options) {
    return unwrap(await this.reply(method, params, {}, options));
  }

  async code_of(method, params) {
    const reply = await this.reply(method, params);
    return reply.error?.code;
  }
}

// A client over /ws. Pushed chunks are kept per stream in `pushed.get(stream_id)`.
export class WsClient {
  #next_id = 1;
  #waiting = new Map();
  #watchers = new Set();
  pushed = new Map();
  closed = new Promise((resolve) => {
    this.resolve_closed = resolve;
  });

  static async connect(server, { key, local_address, options = {} } = {}) {
    const client = new WsClient();
    client.socket = new WebSocket(server.ws_url, {
      headers: key ? { Authorization: `Bearer ${key}` } : {},
      localAddress: local_address,
      rejectUnauthorized: false,
      ...options,
    });
    client.socket.on('message', (data) => client.#take(JSON.parse(data.toString())));
    client.socket.on('close', (code) => {
      client.resolve_closed(code);
      client.#wake();
    });
    await new Promise((resolve, reject) => {
      client.socket.once('open', resolve);
      client.socket.once('error', reject);
    });
    client.socket.on('error', () => {});
    return client;
  }

  #take(message) {
    if (message.method === undefined) {
      const settle = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      settle?.(message);
    } else {
      const { stream_id } = message.params;
      if (!this.pushed.has(stream_id)) this.pushed.set(stream_id, []);
      this.pushed.get(stream_id).push({ method: message.method, ...message.params });
    }
    this.#wake();
  }

  #wake() {
    for (const watcher of this.#watchers) watcher();
  }

  send(method, params, id) {
    this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  }

  async reply(method, params, id = this.#next_id++) {
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.send(method, params, id);
    const reply = await answer;
    const revision = revision_of({ method, params }, { agreed: this.revision });
    check_message(reply, method, revision);
    if (method === 'initialize') this.revision = reply.result?.protocolVersion;
    return reply;
  }

  async call(method, params) {
    return unwrap(await this.reply(method, params));
  }

  // Calls `probe(this)` after every message. Resolves with its result as soon as that is true.
  when(probe, what, deadline = patience) {
    return new Promise((resolve, reject) => {
      const finish = (settle, value) => {
        this.#watchers.delete(look);
        clearTimeout(late);
        settle(value);
      };
      const look = () => {
        const answer = probe(this);
        if (answer) finish(resolve, answer);
        else if (this.socket.readyState === WebSocket.CLOSED) {
          finish(reject, new Error(`the connection closed before ${what}`));
        }
      };
      const late = setTimeout(
        () => finish(reject, new Error(`waited ${deadline} ms in vain until ${what}`)),
        deadline,
      );
      this.#watchers.add(look);
      look();
    });
  }

  chunks(stream_id) {
    return this.pushed.get(stream_id) ?? [];
  }

  // Resolves with all chunks of a stream when the last one has arrived.
  whole(stream_id) {
    return this.when(
      () => this.chunks(stream_id).at(-1)?.end && this.chunks(stream_id),
      `stream ${stream_id} ended`,
    );
  }

  close() {
    this.socket.close();
    return this.closed;
  }
}
