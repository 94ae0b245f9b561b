// The configuration files of other applications are read, and never written.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run_program, start_everything, temporary_folder } from '../lib/server.mjs';

const json = (value) => JSON.stringify(value, null, 2);
const usual = (name, url) => json({ mcpServers: { [name]: { url } } });

// The files of each application in a home and in a project, and how they name a server.
const kFiles = {
  'claude-code': {
    user: '.claude.json',
    project: '.mcp.json',
    text: (name, url) => json({ mcpServers: { [name]: { type: 'http', url } }, theme: 'dark' }),
  },
  'claude-desktop': { user: '.config/Claude/claude_desktop_config.json', text: usual },
  cursor: { user: '.cursor/mcp.json', project: '.cursor/mcp.json', text: usual },
  vscode: {
    user: '.config/Code/User/mcp.json',
    project: '.vscode/mcp.json',
    text: (name, url) => `// what I use\n${json({ servers: { [name]: { type: 'http', url } } })}`,
  },
  gemini: {
    user: '.gemini/settings.json',
    project: '.gemini/settings.json',
    text: (name, httpUrl) => json({ mcpServers: { [name]: { httpUrl } } }),
  },
  codex: {
    user: '.codex/config.toml',
    project: '.codex/config.toml',
    text: (name, url) => `# what I use\n[mcp_servers.${name}]\nurl = "${url}"\n`,
  },
  opencode: {
    user: '.config/opencode/opencode.json',
    project: 'opencode.json',
    text: (name, url) => json({ mcp: { [name]: { type: 'remote', url } } }),
  },
};

function write(file, text) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
}

// All that is in a home but our own file: the bytes of files, and when files and folders were changed.
function state_of(home) {
  const is_own = (name) => /^\.config(\/sluice(\/.*)?)?$/.test(name);
  const names = readdirSync(home, { recursive: true }).filter((name) => !is_own(name));
  return names.toSorted().map((name) => {
    const file = path.join(home, name);
    const { ino, mode, mtimeMs } = statSync(file);
    const bytes = statSync(file).isFile() ? readFileSync(file, 'latin1') : undefined;
    return { name, ino, mode, mtimeMs, bytes };
  });
}

test('the files of other applications stay as they are, to the byte and the second', async (t) => {
  const { mcp_url } = await start_everything(t);
  const home = temporary_folder(t);
  const project = path.join(home, 'project');
  mkdirSync(path.join(project, '.git'), { recursive: true });
  const targets = [];
  for (const [application, files] of Object.entries(kFiles)) {
    for (const [scope, folder] of Object.entries({ user: home, project })) {
      if (!files[scope]) continue;
      write(path.join(folder, files[scope]), files.text(`of_${scope}`, mcp_url));
      targets.push(`${application}/of_${scope}`);
    }
  }
  const long_ago = new Date('2020-02-20');
  for (const { name } of state_of(home)) utimesSync(path.join(home, name), long_ago, long_ago);
  const before = state_of(home);

  const env = { HOME: home, XDG_CONFIG_HOME: '', CLAUDE_CONFIG_DIR: '', CODEX_HOME: '' };
  const run = (...words) => run_program(words, { env, cwd: project });
  const said = async (...words) => {
    const { code, stdout, stderr } = await run(...words);
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  const listed = JSON.parse(await said('servers', '--json'));
  assert.deepEqual(listed.warnings, []);
  const found = listed.servers.map(({ application, name }) => `${application}/${name}`);
  assert.deepEqual(found.toSorted(), targets.toSorted());
  await said('servers');
  for (const target of targets) assert.match(await said('tools', target), /^count\(/m);
  await said('mcp', 'add', 'of_user', mcp_url);
  await said('mcp', 'add', 'new', mcp_url, '--header', 'X-Key: 1');
  assert.match(await said('tools', 'of_user'), /^count\(/m);
  for (const name of ['of_user', 'new']) await said('mcp', 'remove', name);
  // Both are in files of others only.
  for (const name of ['of_user', 'of_project']) {
    assert.notEqual((await run('mcp', 'remove', name)).code, 0);
  }
  assert.deepEqual(state_of(home), before);
});
