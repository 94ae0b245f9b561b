// Runs the command line of the MCP Inspector over each of its transports: against sluice-everything with
// every method that it sends to a server, and against `sluice serve` with a model for an NPU.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { LineClient } from '../lib/lines.mjs';
import { npu_files, npu_flags } from '../lib/npu.mjs';
import {
  clean_environment,
  everything,
  program,
  root,
  run_program,
  start_everything,
  start_server,
} from '../lib/server.mjs';

const inspector = path.join(
  root,
  'tests/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
);
const kSkill = 'skill://acme/refunds/SKILL.md';
const kFailedTool = 5; // the Inspector's exit code for it

const home = mkdtempSync(path.join(tmpdir(), 'sluice-inspector-'));
after(() => rmSync(home, { recursive: true }));
const server = await start_everything({ after });
const npu = npu_files({ after }, 'say Hello, \nsay NPU.\n');
const npu_settings = npu_flags(npu, '1.3.0');
const npu_server = await start_server({ after }, npu_settings, { env: npu.env });

// Servers are described in a file, as people do it. The file also says what the client answers when
// it is asked.
const transports = (to, started) => ({
  stdio: started,
  http: { type: 'streamable-http', url: to.mcp_url },
  sse: { type: 'sse', url: `${to.base}/sse` },
});
const servers = {
  everything: transports(server, { command: everything, args: ['--stdio'] }),
  npu: transports(npu_server, {
    command: program,
    args: ['serve', '--stdio', ...npu_settings],
    env: npu.env,
  }),
};
const roots = [{ uri: 'file:///one', name: 'One' }];
const config = path.join(home, 'servers.json');
const described = Object.entries(servers).flatMap(([name, ways]) =>
  Object.entries(ways).map(([way, how]) => [`${name}-${way}`, { ...how, roots }]),
);
writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(described) }));

const names = (list) => list.map(({ name }) => name);
const text_of = ({ content }) => content.map(({ text }) => text).join('');
const tool = (name, given) => [
  'tools/call',
  '--tool-name',
  name,
  ...(given ? ['--tool-args-json', JSON.stringify(given)] : []),
];

// [method with its arguments, check of what it prints, exit code if it is not 0]
const methods = [
  [['initialize'], ({ serverInfo, protocolVersion, instructions }, { revision }) => {
    assert.deepEqual(serverInfo, { name: 'sluice-everything', version: '1.0' });
    assert.equal(protocolVersion, revision);
    assert.equal(instructions, 'A server for tests of clients');
  }],
  [['tools/list'], ({ tools }) => {
    assert.ok(tools.length > 30, `${tools.length} tools`);
    assert.ok(names(tools).includes('count'));
  }],
  [tool('count', { to: 4 }), ({ structuredContent }) => {
    assert.deepEqual(structuredContent, { sum: 10 });
  }],
  [['tools/call', '--tool-name', 'greet', '--tool-arg', 'name=Ada'], (result) => {
    assert.equal(text_of(result), 'Hello, Ada!');
  }],
  [tool('test_error_handling'), (result) => {
    assert.equal(result.isError, true);
    assert.match(text_of(result), /intentionally/);
  }, kFailedTool],
  [tool('test_input_required_result_list_roots'), (result) => {
    assert.equal(text_of(result), 'Roots: file:///one');
  }],
  // Sends many calls at once.
  [[...tool('slow_sum', { to: 3 }), '--load', '--load-requests', '20'], ({ ok, errors }) => {
    assert.deepEqual([ok, errors], [20, 0]);
  }],
  [['resources/list'], ({ resources }) => {
    assert.ok(names(resources).includes('static-binary'));
  }],
  [['resources/templates/list'], ({ resourceTemplates }) => {
    assert.deepEqual(names(resourceTemplates), ['template']);
  }],
  [['resources/read', '--uri', 'test://template/7/data'], ({ contents }) => {
    assert.equal(JSON.parse(contents[0].text).id, '7');
  }],
  [['resources/directory/read', '--uri', 'skill://acme/refunds'], ({ resources }) => {
    assert.deepEqual(names(resources), ['SKILL.md', 'references']);
  }],
  [['prompts/list'], ({ prompts }) => {
    assert.ok(names(prompts).includes('test_prompt_with_arguments'));
  }],
  [
    ['prompts/get', '--prompt-name', 'test_prompt_with_arguments', '--prompt-args', 'arg1=a', 'arg2=b'],
    ({ messages }) => {
      assert.equal(messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
    },
  ],
  [['skills/list'], ({ skills }) => assert.deepEqual(skills.map(({ uri }) => uri), [kSkill])],
  // Reads every file of the skill and compares its digest.
  [['skills/get', '--uri', kSkill, '--verify', '--require-digests'], ({ name, files }) => {
    assert.equal(name, 'refunds');
    assert.deepEqual(files.map(({ status }) => status), ['verified', 'verified']);
  }],
];
const session_methods = [
  // In 2026-07-28 each request carries its log level instead.
  [['logging/setLevel', '--log-level', 'warning'], (result) => assert.deepEqual(result, {})],
  // The call continues as a task, and the Inspector waits for its result. With 2026-07-28 the
  // Inspector does not support tasks.
  [tool('failing_job'), (_, { error }) => assert.match(error, /The job failed/), 1],
];

const npu_methods = [
  [['initialize'], ({ serverInfo }) => assert.equal(serverInfo.name, 'sluice')],
  [['tools/list'], ({ tools }) => assert.ok(names(tools).includes('generate'))],
  [tool('generate', { prompt: 'Hello' }), (result) => {
    assert.equal(text_of(result), 'Hello, NPU.');
  }],
];

// One process runs the methods of a row, one after the other.
function start_driver() {
  const driver = path.join(root, 'tests/e2e/lib/inspector_driver.mjs');
  const child = spawn(process.execPath, [driver], {
    env: clean_environment({ HOME: home }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = new LineClient(child.stdin, child.stdout);
  const run = async (args) => {
    lines.write(`${JSON.stringify(args)}\n`);
    const { ended } = await lines.when(
      () => lines.messages.find((message) => message.ended),
      `${args} has ended`,
    );
    return { printed: lines.messages.splice(0)[0], ended };
  };
  return { run, stop: () => child.kill('SIGKILL') };
}

for (const [name, era, revision, offered] of [
  ['everything', 'legacy', '2025-11-25', [...methods, ...session_methods]],
  ['everything', 'modern', '2026-07-28', methods],
  ['npu', 'legacy', '2025-11-25', npu_methods],
  ['npu', 'modern', '2026-07-28', npu_methods],
]) {
  for (const transport of Object.keys(servers[name])) {
    const given = ['--quiet', '--format', 'json', '--config', config];
    given.push('--server', `${name}-${transport}`, '--protocol-era', era, '--method');
    describe(`${name}: ${revision} over ${transport}`, () => {
      if (name === 'everything') {
        test('the program itself', async () => {
          const { code, stdout, stderr } = await run_program(
            [inspector, '--cli', ...given, ...tool('greet', { name: 'Ada' })],
            { command: process.execPath, env: { HOME: home } },
          );
          assert.equal(code, 0, stderr);
          assert.equal(text_of(JSON.parse(stdout).result), 'Hello, Ada!');
        });
      }
      let driver;
      before(() => {
        driver = start_driver();
      });
      after(() => driver.stop());
      for (const [args, check, code = 0] of offered) {
        test(args.join(' '), async () => {
          const { printed, ended } = await driver.run([...given, ...args]);
          assert.equal(ended.code, code, JSON.stringify({ printed, ended }));
          check(printed.result ?? printed, { revision, ...ended });
        });
      }
    });
  }
}
