// What `sluice doctor TARGET` makes of a server that does not reply, or not to the end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  start_bad_login,
  start_dying_proxy,
  start_faulty_proxy,
  start_legacy_server,
  start_recording_proxy,
} from '../lib/bad_server.mjs';
import { examine } from '../lib/doctor.mjs';
import { everything, start_everything } from '../lib/server.mjs';

// Of a server that has gone, only that is a finding, however far the examination has come.
const kHasGone = /^it has gone meanwhile: ./;
function assert_only_gone({ code, bad, checks, found }, at, real = [], how = kHasGone) {
  const shown = `${at}: ${JSON.stringify(checks, null, 1)}`;
  assert.equal(code, 4, shown);
  const gone = found('server');
  assert.equal(checks.at(-1), gone, shown);
  assert.match(gone.finding, how);
  assert.equal(gone.clause, undefined, 'no rule is broken');
  assert.match(gone.fix, /^Check that it still runs/);
  for (const check of bad) {
    assert.ok(check === gone || real.includes(`${check.subject}: ${check.finding}`), shown);
  }
  assert.ok(
    checks.some(({ finding }) => finding === 'not examined: the server has gone'),
    shown,
  );
}

test('a server that goes away at any request has broken no rule', async (t) => {
  const { mcp_url } = await start_everything(t);
  for (const target of [mcp_url, await start_bad_login(t)]) {
    const { url, asked } = await start_recording_proxy(t, target);
    const whole = await examine([url]);
    const real = whole.bad.map(({ subject, finding }) => `${subject}: ${finding}`);
    const first = await examine([await start_dying_proxy(t, target, 1)]);
    assert.equal(first.code, 4);
    assert.deepEqual(
      first.bad.map(({ subject }) => subject),
      ['reply'],
    );
    const count = asked.length;
    assert.ok(count > 3, `${count} requests`);
    const ends = Array.from({ length: count - 1 }, (_, at) => at + 2);
    const next = async () => {
      for (let last = ends.shift(); last !== undefined; last = ends.shift()) {
        const url = await start_dying_proxy(t, target, last);
        assert_only_gone(await examine([url]), `${last} at ${target}`, real);
      }
    };
    await Promise.all(Array.from({ length: 4 }, next));
  }
});

test('a program that ends while it is examined has broken no rule either', async () => {
  for (const count of [2, 3, 4]) {
    const script = `sed -u ${count}q | '${everything}' --stdio`;
    assert_only_gone(await examine(['--', 'sh', '-c', script]), script);
  }
});

// The numbers of the requests for lists in an examination of the older transport.
async function list_requests(t, target) {
  const { url, asked } = await start_recording_proxy(t, target);
  assert.equal((await examine([url.replace('/mcp', '/sse')])).code, 0);
  const numbers = asked.flatMap(({ body }, at) => (/"(tools|prompts)\/list"/.test(body) ? [at + 1] : []));
  assert.ok(numbers.length > 1, JSON.stringify(asked));
  return numbers;
}

test('a server of the older transport that goes away has broken no rule', async (t) => {
  const { base } = await start_everything(t);
  for (const last of await list_requests(t, `${base}/sse`)) {
    const url = await start_dying_proxy(t, `${base}/sse`, last);
    assert_only_gone(await examine([url]), `${last}`);
  }
});

test('what a gateway says in place of a server that has gone is about no rule', async (t) => {
  const { mcp_url } = await start_everything(t);
  const from = (status, last) =>
    start_faulty_proxy(t, mcp_url, (number, request, response) => {
      const page = status === 503 ? '<h1>Sorry</h1>' : JSON.stringify({ error: 'upstream', code: status });
      if (number >= last) response.writeHead(status, { 'content-type': 'application/json' }).end(page);
      return number >= last;
    });
  for (const status of [502, 503, 504]) {
    const { code, bad } = await examine([await from(status, 1)]);
    assert.equal(code, 4);
    assert.deepEqual(
      bad.map(({ subject, finding }) => [subject, finding]),
      [['reply', `HTTP ${status}, without a message of MCP`]],
    );
    for (const last of [2, 9, 20]) {
      const url = await from(status, last);
      const how = status === 504 ? /^it does not answer any more: HTTP 504/ : /: HTTP 50[23]/;
      assert_only_gone(await examine([url]), `${status} at ${last}`, [], how);
    }
  }
});

test('a server that does not answer for the rest of the time is found', async (t) => {
  const { base, mcp_url } = await start_everything(t);
  const silent = /^it does not answer any more: ./;
  const [first_list] = await list_requests(t, `${base}/sse`);
  const no_head = () => {};
  const only_head = (response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  const half = (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc":"2.0",');
  const examined = [
    [mcp_url, 3, no_head],
    [mcp_url, 20, no_head],
    [mcp_url, 3, only_head],
    [mcp_url, 14, only_head],
    [mcp_url, 9, half],
    [`${base}/sse`, first_list, no_head],
  ].map(async ([target, last, begin]) => {
    const url = await start_faulty_proxy(t, target, (number, request, response) => {
      if (number >= last) begin(response);
      return number >= last;
    });
    assert_only_gone(await examine([url, '--timeout', '3']), `${last} at ${target}`, [], silent);
  });
  await Promise.all(examined);
});

test('a connection that breaks once, before the reply or within it, is no fault', async (t) => {
  const { mcp_url } = await start_everything(t);
  const reset = (request) => request.socket.destroy();
  const half = (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '400' });
    response.write('{"jsonrpc":"2.0",', reset.bind(undefined, request));
  };
  // A stream may begin with such an event.
  const event = (request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('id: 1\ndata: \n\n', () => setTimeout(reset, 20, request));
  };
  for (const break_off of [reset, half, event]) {
    for (const at of [1, 4, 10, 22]) {
      const url = await start_faulty_proxy(t, mcp_url, (number, request, response) => {
        if (number === at) break_off(request, response);
        return number === at;
      });
      const { code, bad } = await examine([url]);
      assert.deepEqual([code, bad], [0, []], `${break_off.name} at ${at}`);
    }
  }
});

test('a server that does not answer server/discover is examined all the same', async (t) => {
  const examined = [
    [() => {}, /^server\/discover: no reply within 5\.0 s$/],
    [(response) => response.end(), /^HTTP 200 without an answer to server\/discover/],
    [(response) => response.writeHead(502).end(), /^server\/discover: HTTP 502, without a message/],
  ].map(async ([answer, finding]) => {
    const { url, open } = await start_legacy_server(t, ({ method }, response) => {
      if (method === 'server/discover') answer(response);
      return method === 'server/discover';
    });
    const { code, bad, found } = await examine([url]);
    assert.deepEqual([code, bad, [...open]], [0, [], []]);
    assert.match(found('revisions').finding, /^2025-11-25/);
    assert.equal(found('discovery').status, 'warn');
    assert.match(found('discovery').finding, finding);
    assert.match(found('discovery').fix, /-32601/);
  });
  await Promise.all(examined);
});

test('a server that answers server/discover only the first time is at fault', async (t) => {
  const { mcp_url } = await start_everything(t);
  const { code, found } = await examine([await start_faulty_proxy(t, mcp_url, (number) => number === 2)]);
  assert.equal(code, 1);
  assert.equal(found('discovery').status, 'fail');
});

test('a session whose initialize breaks off after its head, or stays silent, is ended', async (t) => {
  for (const is_silent of [false, true]) {
    for (const at of [1, 3]) {
      let count = 0;
      const { url, open } = await start_legacy_server(t, ({ method }, response, headers) => {
        if (method !== 'initialize' || ++count !== at) return false;
        response.writeHead(200, headers).flushHeaders();
        if (!is_silent) setTimeout(() => response.destroy(), 20);
        return true;
      });
      const { code, bad } = await examine([url]);
      assert.deepEqual([...open], []);
      assert.equal(code, is_silent ? 1 : 0, JSON.stringify(bad));
      if (is_silent) assert.match(bad[0].finding, /^initialize with \S+: no answer within \d\.\d s/);
    }
  }
});
