// A minimal client of one revision over Streamable HTTP.

import { patience } from './patience.mjs';
import { check_message } from './schemas.mjs';

const kInfo = { name: 'streamable', version: '1' };
const kModern = '2026-07-28';
const kDeadline = patience;

export const initialize = (revision, capabilities = {}) => ({
  method: 'initialize',
  params: { protocolVersion: revision, capabilities, clientInfo: kInfo },
});

// Adds what a request of 2026-07-28 carries besides its parameters.
export const modern = (params, capabilities = { elicitation: {} }) => ({
  ...params,
  _meta: {
    ...params?._meta,
    'io.modelcontextprotocol/protocolVersion': kModern,
    'io.modelcontextprotocol/clientInfo': kInfo,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  },
});

// `arrows` lists what was sent in either direction. `last_id` is the id of the last request.
// `last_event_id` says where to resume.
export class StreamableClient {
  arrows = [];
  last_id = 0;
  #agreed = false;

  constructor(server, revision) {
    this.url = server.mcp_url;
    this.revision = revision;
    this.modern = revision === kModern;
  }

  #headers(message) {
    const headers = { accept: 'application/json, text/event-stream' };
    if (message) headers['content-type'] = 'application/json';
    if (this.session) headers['mcp-session-id'] = this.session;
    if (this.modern || this.#agreed) headers['mcp-protocol-version'] = this.revision;
    if (this.modern) {
      headers['mcp-method'] = message.method;
      if (message.params?.name) headers['mcp-name'] = message.params.name;
    }
    return headers;
  }

  // Completes the message as this revision requires. A request gets an id.
  #complete(message) {
    const body = { jsonrpc: '2.0', ...message };
    if (message.method && !message.method.startsWith('notifications/')) body.id = ++this.last_id;
    if (this.modern && body.id) body.params = modern(message.params);
    return body;
  }

  // POSTs a message and yields the messages of the reply one by one. Leaving the loop early closes
  // the connection.
  async *post(message, label = message.method) {
    this.arrows.push(`-> POST ${label}`);
    yield* this.#read(
      await fetch(this.url, {
        method: 'POST',
        headers: this.#headers(message),
        body: JSON.stringify(this.#complete(message)),
        signal: AbortSignal.timeout(kDeadline),
      }),
      message.method,
    );
  }

  // Opens the session's own stream, or resumes a stream that was interrupted.
  async *get({ last_event_id } = {}) {
    this.arrows.push('-> GET');
    const headers = this.#headers();
    if (last_event_id) headers['last-event-id'] = last_event_id;
    const signal = AbortSignal.timeout(kDeadline);
    yield* this.#read(await fetch(this.url, { headers, signal }));
  }

  // Ends the session and returns the status.
  async end() {
    return (await fetch(this.url, { method: 'DELETE', headers: this.#headers() })).status;
  }

  async *#read(reply, method) {
    this.session ??= reply.headers.get('mcp-session-id');
    const type = reply.headers.get('content-type')?.split(';')[0];
    this.arrows.push(['<-', reply.status, type].filter(Boolean).join(' '));
    if (!type) return;
    const messages =
      type === 'application/json'
        ? [await reply.json()]
        : events(reply, (id) => {
            this.last_event_id = id;
          });
    for await (const message of messages) {
      check_message(message, method, this.revision);
      if (method === 'initialize') this.#agreed = true;
      this.arrows.push(`<- ${message.method ?? (message.error ? 'error' : 'result')}`);
      yield message;
    }
    if (type === 'text/event-stream') this.arrows.push('<- end');
  }

  // Sends a message, reads the whole reply and returns its last message.
  async ask(message, label) {
    let last;
    for await (const each of this.post(message, label)) last = each;
    return last;
  }
}

// The messages of an event stream. An event without data only says where to resume.
export async function* events(reply, on_id = () => {}) {
  let rest = '';
  for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const id = /^id: (.+)$/m.exec(part)?.[1];
      const data = /^data: (.+)$/m.exec(part)?.[1];
      const type = /^event: (.+)$/m.exec(part)?.[1] ?? 'message';
      if (id) on_id(id);
      if (type === 'endpoint') yield { endpoint: data };
      else if (data) yield JSON.parse(data);
    }
  }
}
