// `sluice agent --partial-results` at a server that sends partial results (draft SEP-2998).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { calling_model } from '../lib/calling_model.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { run_program } from '../lib/server.mjs';

const kScript = 'partial_results.mjs';

// The output of a call of the tool, and its result.
async function call(t, { kind, era, asks, rude = false }) {
  const model = await calling_model(t, ['stream', { rude }]);
  const command = foreign_command(kScript, kind, era);
  const { code, stdout, stderr } = await run_program([
    ...['agent', '--json', '--yes', '--policy', 'pass', '--model', model.url],
    ...(asks ? ['--partial-results'] : []),
    ...(kind === 'http' ? ['--server', `${(await start_foreign(t, command)).base}/mcp`] : []),
    'Stream',
    ...(kind === 'stdio' ? ['--', ...command] : []),
  ]);
  assert.equal(code, 0, stderr);
  const events = stdout.trim().split('\n').map((line) => JSON.parse(line));
  const of_type = (type) => events.filter((event) => event.type === type);
  return {
    output: of_type('sluice:tool.output.delta'),
    result: of_type('sluice:tool.output.done')[0].text,
  };
}

describe('partial results', { concurrency: 2 }, () => {
  for (const kind of ['stdio', 'http']) {
    for (const era of ['modern', 'legacy']) {
      test(`are output of the call, over ${kind}, ${era}`, async (t) => {
        const { output, result } = await call(t, { kind, era, asks: true });
        const written = output.map(({ delta, content }) => delta || JSON.stringify(content));
        assert.equal(
          written.join(''),
          'one two progress five {"type":"image","data":"AA==","mimeType":"image/png"}{"hits":3}',
        );
        const dropped = output.reduce((sum, event) => sum + (event.dropped ?? 0), 0);
        assert.equal(dropped, 2, 'two are missing in the gap');
        assert.equal(result, `token true, capability ${era === 'modern'}`);
      });

      test(`are not asked for by default, over ${kind}, ${era}`, async (t) => {
        const { output, result } = await call(t, { kind, era, asks: false });
        assert.deepEqual(output, []);
        assert.equal(result, 'token false, capability false');
      });
    }

    test(`are ignored if nobody has asked for them, over ${kind}`, async (t) => {
      const { output } = await call(t, { kind, era: 'modern', asks: false, rude: true });
      assert.equal(output.map(({ delta }) => delta).join(''), 'progress ');
    });
  }
});
