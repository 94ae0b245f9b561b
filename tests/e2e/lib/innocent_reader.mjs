// The code that the thread of innocent.mjs runs.

import http from 'node:http';
import https from 'node:https';
import { parentPort, workerData } from 'node:worker_threads';
import * as wire from './wire.mjs';

// Reads at least this many chunks, because an attack may end at once.
const kChunks = 10;
const kPatience = 10_000;

const address = '127.0.0.9';
const { host, port, tls, asks } = workerData;
const where = { host, port, localAddress: address, agent: false, rejectUnauthorized: false };
const transport = tls ? https : http;

function call([method, params]) {
  return new Promise((resolve, reject) => {
    const request = transport.request({ ...where, method: 'POST', path: '/mcp' });
    request.setHeader('Content-Type', 'application/json');
    request.setHeader('Accept', 'application/json');
    request.on('error', reject);
    request.on('response', async (response) => {
      let text = '';
      for await (const part of response) text += part;
      resolve(JSON.parse(text).result);
    });
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  });
}

let last = null;
let gap = 0;
let chunks = 0;
let whole = true;
function arrived() {
  const now = performance.now();
  if (last === null) parentPort.postMessage({ reading: true });
  else gap = Math.max(gap, now - last);
  last = now;
}

async function read_stream() {
  const { stream_id } = await call(wire.start({ count: 1_000_000, interval_us: 20_000 }));
  const request = transport.get({ ...where, path: wire.path.stream(stream_id) });
  request.on('response', (response) => {
    response.setEncoding('utf8');
    response.on('data', (text) => {
      for (const [, seq] of text.matchAll(/^id: ?(\d+)$/gm)) {
        whole &&= Number(seq) === chunks;
        ++chunks;
      }
      arrived();
    });
  });
  return () => request.destroy();
}

function ask_repeatedly() {
  const agent = new transport.Agent({ keepAlive: true });
  let timer;
  const ask = () =>
    transport.get({ ...where, agent, path: '/healthz' }, (response) => {
      response.resume();
      response.on('end', () => {
        ++chunks;
        arrived();
        timer = setTimeout(ask, 20);
      });
    });
  ask();
  return () => {
    clearTimeout(timer);
    agent.destroy();
  };
}

const leave = asks ? ask_repeatedly() : await read_stream();
parentPort.on('message', async () => {
  // The time since the last chunk counts as a gap, too.
  gap = Math.max(gap, performance.now() - last);
  while (chunks < kChunks && gap < kPatience) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    gap = Math.max(gap, performance.now() - last);
  }
  leave();
  parentPort.postMessage({ gap, chunks, whole });
  parentPort.close();
});
