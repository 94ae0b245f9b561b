// Sends bytes on a socket exactly as the test wants them, such as HTTP that no client library would
// send and WebSocket frames that no browser would send.

import { randomBytes } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { patience } from './patience.mjs';

const kDeadline = patience;

export class RawConnection {
  // What `received` is a view of. It doubles when it is full: a copy for each chunk of a long answer
  // would take longer than the answer.
  #storage = Buffer.alloc(0);

  // Connects over TCP. With `tls`, TLS is spoken. With `unix`, the path of a socket, connects there.
  static async open(server, { local_address, tls: over_tls, unix } = {}) {
    const connection = new RawConnection();
    connection.received = Buffer.alloc(0);
    connection.ended = false;
    const { host, port } = server;
    const place = unix ? { path: unix } : { host, port, localAddress: local_address };
    connection.socket = over_tls
      ? tls.connect({ ...place, rejectUnauthorized: false })
      : net.connect(place);
    connection.watchers = new Set();
    connection.changed = () => [...connection.watchers].forEach((look) => look());
    connection.socket.on('data', (data) => {
      connection.#append(data);
      connection.changed();
    });
    const end = () => {
      connection.ended = true;
      connection.changed();
    };
    connection.socket.on('end', end);
    connection.socket.on('close', end);
    // A server may also end a connection with a reset.
    connection.socket.on('error', end);
    const ready = over_tls ? 'secureConnect' : 'connect';
    await new Promise((resolve) => connection.socket.once(ready, resolve));
    connection.socket.setNoDelay(true);
    return connection;
  }

  #append(data) {
    const { received } = this;
    const length = received.length + data.length;
    let begin = received.byteOffset - this.#storage.byteOffset;
    if (received.buffer !== this.#storage.buffer || begin + length > this.#storage.length) {
      this.#storage = Buffer.allocUnsafeSlow(2 * length);
      received.copy(this.#storage);
      begin = 0;
    }
    data.copy(this.#storage, begin + received.length);
    this.received = this.#storage.subarray(begin, begin + length);
  }

  write(data) {
    if (!this.socket.destroyed) this.socket.write(data);
  }

  // Writes `chunk` many times, no faster than the peer takes it. Stops when the peer ends the
  // connection.
  async flood(chunk, times) {
    for (let n = 0; n < times && !this.ended; ++n) {
      if (!this.socket.write(chunk)) {
        await Promise.race([
          new Promise((resolve) => this.socket.once('drain', resolve)),
          this.until(() => this.ended),
        ]);
      }
    }
  }

  // Resolves with the result of `probe` as soon as that is true. Rejects if the connection ends or
  // the time is over before that.
  until(probe, what = 'something came') {
    return new Promise((resolve, reject) => {
      const settle = (how, value) => {
        clearTimeout(late);
        this.watchers.delete(look);
        how(value);
      };
      const look = () => {
        const answer = probe();
        if (answer) settle(resolve, answer);
        else if (this.ended) settle(reject, new Error(`the connection ended before ${what}`));
      };
      const late = setTimeout(() => {
        const had = JSON.stringify(this.received.toString('latin1').slice(0, 500));
        settle(reject, new Error(`waited in vain until ${what}; had ${had}`));
      }, kDeadline);
      this.watchers.add(look);
      look();
    });
  }

  closed() {
    return this.until(() => this.ended, 'the connection ended');
  }

  // The next whole HTTP response with a Content-Length: {status, headers, body}, or null if the
  // connection ends without one.
  response() {
    return this.until(() => this.#take_response(), 'a response came').catch((error) => {
      if (this.ended) return null;
      throw error;
    });
  }

  #take_response() {
    const end = this.received.indexOf('\r\n\r\n');
    if (end < 0) return null;
    const [first, ...lines] = this.received.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.split(':', 1)[0].toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const status = Number(first.split(' ')[1]);
    const length = Number(headers['content-length'] ?? 0);
    if (this.received.length < end + 4 + length) return null;
    const body = this.received.subarray(end + 4, end + 4 + length).toString();
    this.received = this.received.subarray(end + 4 + length);
    return { status, headers, body };
  }

  destroy() {
    this.socket.destroy();
  }
}

// The text of a POST to /mcp. `length` overrides the Content-Length.
export function post(body, { headers = '', length = Buffer.byteLength(body) } = {}) {
  return `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n${headers}\r\n${body}`;
}

export async function upgrade(server, { headers = '', ...options } = {}) {
  const connection = await RawConnection.open(server, options);
  connection.write(
    `GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\nSec-WebSocket-Version: 13\r\n${headers}\r\n`,
  );
  const answer = await connection.response();
  if (answer?.status !== 101) throw new Error(`the upgrade was answered with ${answer?.status}`);
  return connection;
}

// One frame as a client sends it. The options allow it to break every rule.
export function frame(opcode, payload = '', { fin = true, masked = true, rsv = 0, length } = {}) {
  const data = Buffer.from(payload);
  const said = length ?? BigInt(data.length);
  const head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode];
  const mask_bit = masked ? 0x80 : 0;
  let extended = Buffer.alloc(0);
  if (said < 126n) head.push(mask_bit | Number(said));
  else if (said < 65536n) {
    head.push(mask_bit | 126);
    extended = Buffer.alloc(2);
    extended.writeUInt16BE(Number(said));
  } else {
    head.push(mask_bit | 127);
    extended = Buffer.alloc(8);
    extended.writeBigUInt64BE(said);
  }
  const mask = masked ? randomBytes(4) : Buffer.alloc(0);
  const body = masked ? data.map((byte, index) => byte ^ mask[index % 4]) : data;
  return Buffer.concat([Buffer.from(head), extended, mask, body]);
}

export function close_frame(code, reason = '', options) {
  const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
  payload.writeUInt16BE(code);
  payload.write(reason, 2);
  return frame(8, payload, options);
}

// The frames of a server in `bytes`: [{opcode, rsv1, payload}], and the remaining bytes.
export function parse_frames(bytes) {
  const frames = [];
  let at = 0;
  while (bytes.length - at >= 2) {
    let length = bytes[at + 1] & 0x7f;
    let head = 2;
    if (length === 126) {
      if (bytes.length - at < 4) break;
      length = bytes.readUInt16BE(at + 2);
      head = 4;
    } else if (length === 127) {
      if (bytes.length - at < 10) break;
      length = Number(bytes.readBigUInt64BE(at + 2));
      head = 10;
    }
    if (bytes.length - at < head + length) break;
    frames.push({
      opcode: bytes[at] & 0x0f,
      rsv1: (bytes[at] & 0x40) !== 0,
      payload: bytes.subarray(at + head, at + head + length),
    });
    at += head + length;
  }
  return { frames, rest: bytes.subarray(at) };
}

// Waits for a close frame from the server and returns its code.
export function close_code(connection) {
  return connection.until(() => {
    const close = parse_frames(connection.received).frames.find(({ opcode }) => opcode === 8);
    return close && (close.payload.length >= 2 ? close.payload.readUInt16BE(0) : 1005);
  }, 'a close frame came');
}

// Waits for the first text message.
export function text_message(connection) {
  return connection.until(() => {
    const text = parse_frames(connection.received).frames.find(({ opcode }) => opcode === 1);
    return text && text.payload.toString();
  }, 'a message came');
}
