// The rows of the interop tests - each official client over each of its transports, to a server or to a
// proxy - and what the tests of features share.

import { describe, test } from 'node:test';
import { connect_over, generations } from './mcp.mjs';
import { everything, start_everything, until } from './server.mjs';

// Predicates that say which rows have a feature.
export const all = () => true;
export const is_session = ({ era }) => era === 'legacy';
export const is_stateless = ({ era }) => era === 'modern';
export const is_v1 = ({ name }) => name.startsWith('v1');
export const is_v2 = (row) => !is_v1(row);
// Rows behind whose proxy, if there is one, the server also speaks 2025-11-25.
export const is_session_throughout = (row) => is_session(row) && row.behind !== 'modern';
// Rows where changes reach all of a client's requests. Behind a proxy, a request that comes by itself may
// have a server process of its own.
export const hears_all = ({ era, kind, behind, is_started }) =>
  !(era === 'modern' && kind === 'http' && behind === 'legacy' && is_started);
// Through a proxy, changes may be told more often than they happen.
export const tells_once = ({ behind }) => behind === undefined;
// Rows where replies can be resumed and changes arrive on a separate stream.
export const is_http_session = (row) => is_session(row) && row.kind === 'http';

// The capabilities of clients that a server can ask.
export const kAskable = {
  sampling: {},
  elicitation: { form: { applyDefaults: true }, url: {} },
  roots: { listChanged: true },
};

export const named = (name, args = {}) => ({ name, arguments: args });
export const accepting = (content) => () => ({ action: 'accept', content });
export const code_of = (promise) => promise.then(() => 'no error', ({ code }) => code);

// In a session over Streamable HTTP, these clients open the stream for changes in the background,
// after connect() has returned.
const until_it_listens = (server) =>
  until(async () => (await server.metric('sluice_streaming_replies')) > 0, 'the client listens');

// Each official client over each of its transports.
export const clients = Object.entries(generations).flatMap(([name, { era, transports }]) =>
  Object.keys(transports).map((kind) => ({ name, era, kind, title: `${name} over ${kind}` })),
);

// The same with where it connects to: start(t) makes that for the test `t`.
export const direct_rows = clients.map((row) => ({
  ...row,
  start: async (t) =>
    row.kind === 'stdio'
      ? { command: [everything, '--stdio'] }
      : { server: await start_everything(t) },
}));

// Makes a test of every feature for every row that has it. A feature is [name, predicate of rows,
// test]. The test gets the row, the place that its start() has made, and open(settings), which connects
// there as connect_over() does. With `hears`, changes reach the client from the moment open()
// resolves. Each test has a place of its own, but proxies may share the server behind them.
export function test_features(rows, features) {
  for (const row of rows) {
    describe(row.title, { concurrency: 3 }, () => {
      for (const [feature, , run] of features.filter(([, has]) => has(row))) {
        test(feature, async (t) => {
          const place = await row.start(t);
          const open = async ({ hears, ...settings } = {}) => {
            const connection = await connect_over(t, row.name, row.kind, { ...place, ...settings });
            if (hears && is_http_session(row)) await until_it_listens(place.server);
            return connection;
          };
          await run({ row, place, open });
        });
      }
    });
  }
}
