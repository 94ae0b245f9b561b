// Glewlwyd, an authorization server in C: started with a database of its own and set up through its
// administration interface.

import { spawn } from 'node:child_process';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Cookies } from './login_browser.mjs';
import { until } from './server.mjs';
import { free_port, unpacked } from './unpacked.mjs';

const kRoot = unpacked('glewlwyd');
const kTables = `${kRoot}/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3`;
const kModules = `${kRoot}/usr/lib/glewlwyd`;
const kKey = 'the key of the tests, which signs tokens';
const kUser = { username: 'mira', password: 'secret of mira' };
const kAdministrator = { username: 'admin', password: 'password' };

// One user's requests, with their cookies.
class Session {
  #cookies = new Cookies();

  async ask(method, url, body) {
    const place = new URL(url);
    const response = await fetch(place, {
      method,
      redirect: 'manual',
      headers: { Cookie: this.#cookies.of(place), 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    this.#cookies.keep(place, response);
    if (response.status >= 400) {
      throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
    }
    return response;
  }
}

const plugin = (issuer, scopes, resource) => ({
  module: 'oidc',
  name: 'oidc',
  display_name: 'OIDC',
  parameters: {
    iss: issuer,
    'jwt-type': 'sha',
    'jwt-key-size': '256',
    key: kKey,
    'access-token-duration': 3600,
    'refresh-token-duration': 86_400,
    'code-duration': 600,
    'refresh-token-rolling': true,
    'refresh-token-one-use': 'always',
    'allow-non-oidc': true,
    'auth-type-code-enabled': true,
    'auth-type-id-token-enabled': true,
    'auth-type-refresh-enabled': true,
    'allowed-scope': ['openid', ...scopes],
    'pkce-allowed': true,
    'pkce-required': true,
    'introspection-revocation-allowed': true,
    'introspection-revocation-allow-target-client': true,
    'register-client-allowed': true,
    'register-client-auth-scope': [],
    'register-client-credentials-scope': [],
    'resource-allowed': true,
    'resource-scope': Object.fromEntries(scopes.map((scope) => [scope, [resource]])),
    'oauth-as-iss-id': true,
    'subject-type': 'public',
  },
});

// Starts it for the protected server at `resource`, whose scopes are `scopes`. Returns the issuer, what
// judges its tokens, and a function that logs a user in.
export async function start_glewlwyd(t, scopes, resource) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-glewlwyd-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const tables = new DatabaseSync(path.join(folder, 'db'));
  tables.exec(readFileSync(kTables, 'utf8'));
  tables.close();
  const port = await free_port();
  const base = `http://127.0.0.1:${port}`;
  const config = path.join(folder, 'conf');
  writeFileSync(
    config,
    `port=${port}
bind_address="127.0.0.1"
external_url="${base}"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="WARNING"
cookie_secure=0
session_key="session"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="${kModules}/user"
client_module_path="${kModules}/client"
user_auth_scheme_module_path="${kModules}/scheme"
plugin_module_path="${kModules}/plugin"
use_secure_connection=false
secure_connection_key_file=""
secure_connection_pem_file=""
hash_algorithm="SHA512"
database = { type = "sqlite3"; path = "${folder}/db"; };
`,
  );
  const child = spawn(`${kRoot}/usr/bin/glewlwyd`, [`--config-file=${config}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const exited = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  t.after(() => {
    child.kill();
    return exited;
  });

  const api = `${base}/api`;
  const administrator = new Session();
  await until(() => {
    if (child.exitCode !== null) throw new Error(`glewlwyd ended:\n${output}`);
    return administrator.ask('POST', `${api}/auth/`, kAdministrator).then(
      () => true,
      (error) => {
        if (error.cause?.code !== 'ECONNREFUSED') throw error;
      },
    );
  }, 'glewlwyd listens');
  const issuer = `${api}/oidc`;
  for (const scope of scopes) {
    await administrator.ask('POST', `${api}/scope/`, { name: scope, display_name: scope });
  }
  await administrator.ask('POST', `${api}/mod/plugin/`, plugin(issuer, scopes, resource));
  const user = { ...kUser, name: 'Mira', enabled: true, scope: ['openid', ...scopes] };
  await administrator.ask('POST', `${api}/user/?source=database`, user);

  return {
    issuer,
    // Opens the address of a login and does what the page there does for the user.
    log_in: async (start) => {
      const session = new Session();
      const shown = await session.ask('GET', start);
      const page = new URL(shown.headers.get('location'));
      await session.ask('POST', `${api}/auth/`, kUser);
      const client = page.searchParams.get('client_id');
      const scope = page.searchParams.get('scope');
      await session.ask('PUT', `${api}/auth/grant/${client}`, { scope });
      const back = await session.ask('GET', `${page.searchParams.get('callback_url')}&g_continue`);
      return fetch(back.headers.get('location'));
    },
    // What a token grants, which is a JWT with a key that both know.
    grant_of: (token, audience) => {
      const [head, claims, signature] = token.split('.');
      const expected = createHmac('sha256', kKey).update(`${head}.${claims}`).digest();
      if (!timingSafeEqual(Buffer.from(signature, 'base64url'), expected)) return undefined;
      const { aud, scope } = JSON.parse(Buffer.from(claims, 'base64url'));
      return aud === audience ? { scopes: scope.split(' ') } : undefined;
    },
  };
}
