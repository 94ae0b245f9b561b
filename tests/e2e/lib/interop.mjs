// The rows of the interop tests - each official client over each of its transports - and what the
// tests of features share.

import { describe, test } from 'node:test';
import { connect_over, generations } from './mcp.mjs';
import { everything, start_everything, until } from './server.mjs';

// Predicates that say which rows have a feature.
export const all = () => true;
export const is_session = ({ era }) => era === 'legacy';
export const is_stateless = ({ era }) => era === 'modern';
export const is_v1 = ({ name }) => name.startsWith('v1');
export const is_v2 = (row) => !is_v1(row);
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

// Makes a test of every feature for every row that has it. A feature is [name, predicate of rows,
// test]. The test gets the row and open(settings), which connects as connect_over() does. With
// `hears`, changes reach the client from the moment open() resolves. Each test has its own server.
export function test_features(features) {
  for (const [name, { era, transports }] of Object.entries(generations)) {
    for (const kind of Object.keys(transports)) {
      const row = { name, era, kind };
      describe(`${name} over ${kind}`, () => {
        for (const [feature, , run] of features.filter(([, has]) => has(row))) {
          test(feature, async (t) => {
            const server = kind === 'stdio' ? undefined : await start_everything(t);
            const place = { server, command: [everything, '--stdio'] };
            const open = async ({ hears, ...settings } = {}) => {
              const connection = await connect_over(t, name, kind, { ...place, ...settings });
              if (hears && is_http_session(row)) await until_it_listens(server);
              return connection;
            };
            await run({ row, open });
          });
        }
      });
    }
  }
}
