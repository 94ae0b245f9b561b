// The real login: `sluice login` at authorization servers that others wrote, and the commands that use
// what it stores, with a server on the official SDK.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { listen_protected } from '../fixtures/servers/protected_mcp.mjs';
import { foreign_command, start_foreign } from '../lib/foreign_server.mjs';
import { start_glewlwyd } from '../lib/glewlwyd.mjs';
import { log_in } from '../lib/login_browser.mjs';
import { clean_environment, program, run_program, until } from '../lib/server.mjs';

const kUser = { login: 'mira', password: 'secret of mira' };

// The commands with a token file of their own, for the protected server at `url`. `browser` logs the user
// in at an address that a command shows.
class User {
  constructor(t, url, browser) {
    const folder = mkdtempSync(path.join(tmpdir(), 'sluice-login-'));
    t.after(() => rmSync(folder, { recursive: true }));
    this.file = path.join(folder, 'tokens.json');
    this.url = url;
    this.browser = browser;
  }

  get env() {
    return { SLUICE_TOKEN_FILE: this.file };
  }
  run(command, ...words) {
    return run_program([command, this.url, ...words], { env: this.env });
  }
  async reads() {
    const read = await this.run('call', 'read');
    assert.deepEqual([read.code, read.stdout], [0, 'a note\n'], read.stderr);
  }
  async login(...words) {
    const child = spawn(program, ['login', this.url, ...words], {
      env: clean_environment(this.env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        said[name] += text;
      });
    }
    const ended = new Promise((resolve) => {
      child.once('close', resolve);
    });
    const prompt = await until(() => {
      if (child.exitCode !== null) throw new Error(`the login ended: ${said.stderr}`);
      return /open\n\n\s+(\S+)\n/.exec(said.stderr)?.[1];
    }, 'it prints where to log in');
    const page = await this.browser(prompt);
    assert.equal(await ended, 0, said.stderr);
    return { prompt: new URL(prompt), page, ...said };
  }
  tokens() {
    return JSON.parse(readFileSync(this.file, 'utf8')).tokens;
  }
}

// A user of a server whose authorization server is oidc-provider.
async function user_of_oidc_provider(t, options = {}) {
  const server = await start_foreign(
    t,
    foreign_command('oidc_provider.mjs', JSON.stringify(options)),
  );
  const [, url, issuer] = await until(
    () => /MCP server is at (\S+), its authorization server at (\S+)/.exec(server.output),
    'both servers are there',
  );
  const user = new User(t, url, (prompt) => log_in(prompt, kUser));
  // How often the authorization server has said this.
  const count = (text) => server.output.split('\n').filter((line) => line.startsWith(text)).length;
  return { user, issuer, count, said: () => server.output };
}

test('login, use, step-up, logout', async (t) => {
  const { user, issuer } = await user_of_oidc_provider(t);
  const before = await user.run('call', 'read');
  assert.equal(before.code, 3, before.stderr);
  assert.match(before.stderr, /sluice login/);

  const { prompt, page, stdout } = await user.login();
  assert.match(stdout, /^Logged in to http.* with the scopes .*notes:read/);
  // A public client that has registered itself, with PKCE, for this server alone.
  const asked = prompt.searchParams;
  assert.equal(prompt.origin, issuer);
  assert.equal(asked.get('code_challenge_method'), 'S256');
  assert.equal(asked.get('resource'), user.url);
  assert.match(asked.get('redirect_uri'), /^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  assert.equal(page.url.origin, new URL(asked.get('redirect_uri')).origin);
  assert.equal(page.status, 200);
  assert.equal(statSync(user.file).mode & 0o777, 0o600);
  await user.reads();

  const refused = await user.run('call', 'write');
  assert.equal(refused.code, 3, refused.stderr);
  assert.match(refused.stderr, /--scope 'notes:read notes:write'/);
  await user.login('--scope', 'notes:write');
  const written = await user.run('call', 'write');
  assert.deepEqual([written.code, written.stdout], [0, 'written\n'], written.stderr);

  const { access_token } = user.tokens().at(-1);
  const out = await user.run('logout');
  assert.deepEqual([out.code, out.stdout], [0, `Logged out of ${user.url}\n`], out.stderr);
  assert.deepEqual(user.tokens(), []);
  const kept = await user.run('call', 'read', '-H', `Authorization: Bearer ${access_token}`);
  assert.equal(kept.code, 3, 'the token has ended at the authorization server too');
});

test('twenty processes wake with one expired token, and one of them refreshes it', async (t) => {
  const { user, issuer, count, said } = await user_of_oidc_provider(t);
  await user.login();
  const [{ refresh_token, client_id }] = user.tokens();
  const aged = readFileSync(user.file, 'utf8').replaceAll(
    /"(issued|expires)_at":(\d+)/g,
    (_, name, at) => `"${name}_at":${at - 1000}`,
  );
  writeFileSync(user.file, aged);
  await Promise.all(Array.from({ length: 20 }, () => user.reads()));
  assert.equal(count('granted refresh_token'), 1, said());
  assert.equal(count('refused'), 0, said());
  assert.notEqual(user.tokens()[0].refresh_token, refresh_token);

  // A second use would have been noticed, and would have ended everything.
  const again = await fetch(`${issuer}/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token, client_id }),
  });
  assert.equal(again.status, 400);
  assert.equal(count('revoked'), 1, said());
  const ended = await user.run('call', 'read');
  assert.equal(ended.code, 3, ended.stderr);
  assert.match(ended.stderr, /sluice login/);
});

test('a token that the server takes no longer is refreshed', async (t) => {
  const { user, count, said } = await user_of_oidc_provider(t, { access_token_seconds: 1 });
  await user.login();
  await until(async () => {
    await user.reads();
    return count('granted refresh_token') >= 2;
  }, 'the token is refreshed twice');
  assert.equal(count('refused'), 0, said());
});

test('a login with another device', async (t) => {
  const { user, issuer } = await user_of_oidc_provider(t);
  const { prompt, stderr } = await user.login('--grant', 'device-code');
  assert.equal(prompt.origin, issuer);
  assert.match(stderr, /the code [A-Z-]+/);
  await user.reads();
});

// oidc-provider wants a nonce in each proof, which it tells when it refuses the first.
test('a token that is bound to a key', async (t) => {
  const { user } = await user_of_oidc_provider(t);
  await user.login('--dpop');
  const [{ token_type, access_token }] = user.tokens();
  assert.equal(token_type, 'dpop');
  await user.reads();
  const stolen = await user.run('call', 'read', '-H', `Authorization: DPoP ${access_token}`);
  assert.equal(stolen.code, 3, stolen.stderr);
});

test('a login at glewlwyd', async (t) => {
  const judge = {};
  const scopes = ['notes'];
  const { server, resource } = await listen_protected(scopes, judge);
  t.after(() => server.close());
  const glewlwyd = await start_glewlwyd(t, scopes, resource);
  Object.assign(judge, glewlwyd);
  const user = new User(t, resource, glewlwyd.log_in);
  const { prompt, page, stdout } = await user.login();
  assert.match(stdout, /^Logged in to http.* with the scopes .*notes/);
  assert.ok(prompt.href.startsWith(glewlwyd.issuer), prompt.href);
  assert.equal(page.status, 200);
  await user.reads();
  const out = await user.run('logout');
  assert.equal(out.code, 0, out.stderr);
  const gone = await user.run('call', 'read');
  assert.equal(gone.code, 3, gone.stderr);
});
