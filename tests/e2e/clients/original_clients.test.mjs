// The two clients of the first design text, word for word, print the whole answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open_page } from '../lib/browser.mjs';
import {
  between_its_lines,
  http_client,
  run_in_node,
  surroundings,
  with_address,
  ws_client,
  ws_client_is_done,
} from '../lib/original_clients.mjs';
import { HttpClient } from '../lib/rpc.mjs';
import { start_server } from '../lib/server.mjs';
import * as wire from '../lib/wire.mjs';

async function whole_answer(server) {
  const result = await new HttpClient(server).call(...wire.whole());
  const text = wire.whole_text(result);
  assert.ok(wire.count_numbers(text) > 1, 'an answer of several chunks');
  return wire.without_clock(text);
}

test('the fetch loop under Node prints the whole answer', async (t) => {
  const server = await start_server(t);
  const printed = await run_in_node(with_address(http_client, server));
  assert.equal(wire.without_clock(printed), await whole_answer(server));
});

test('the WebSocket client under Node prints the whole answer', async (t) => {
  const server = await start_server(t);
  const printed = await run_in_node(with_address(ws_client, server), ws_client_is_done);
  const { text } = between_its_lines(printed);
  assert.equal(wire.without_clock(text), await whole_answer(server));
});

test('both clients in Chromium print the whole answer', async (t) => {
  const server = await start_server(t);
  const page = await open_page(t, server);
  const expected = await whole_answer(server);

  // Runs a source as a module of the page. Resolves with what it printed when it has ended.
  const run = (source, ends_by_itself) =>
    page.evaluate(
      async ([before, module, by_itself]) => {
        let output = '';
        let complete;
        const completed = new Promise((resolve) => {
          complete = resolve;
        });
        globalThis.written = (text) => {
          output += text;
        };
        console.log = (...words) => {
          output += `${words.join(' ')}\n`;
          if (words[0] === '\\nStream complete') complete();
        };
        await import(URL.createObjectURL(new Blob([before], { type: 'text/javascript' })));
        await import(URL.createObjectURL(new Blob([module], { type: 'text/javascript' })));
        if (!by_itself) await completed;
        return output;
      },
      [surroundings, source, ends_by_itself],
    );

  const polled = await run(with_address(http_client, server, { relative_works: true }), true);
  assert.equal(wire.without_clock(polled), expected, 'the fetch loop');

  const pushed = between_its_lines(await run(with_address(ws_client, server), false));
  assert.equal(wire.without_clock(pushed.text), expected, 'the WebSocket client');
});
