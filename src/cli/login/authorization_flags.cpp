#include "cli/login/authorization_flags.hpp"

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "cli/options/command_line.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "client/authorization/challenge.hpp"
#include "client/authorization/metadata.hpp"
#include "client/authorization/token_store.hpp"
#include "core/text/text.hpp"
#include "net/http/status_codes.hpp"
#include "proxy/upstream/upstream_error.hpp"

namespace sluice {
namespace {

struct GrantName {
  std::string_view name;
  GrantKind grant;
};
constexpr std::array kGrantNames = {GrantName{"authorization-code", GrantKind::authorization_code},
                                    GrantName{"device-code", GrantKind::device_code},
                                    GrantName{"client-credentials", GrantKind::client_credentials},
                                    GrantName{"identity-assertion", GrantKind::identity_assertion},
                                    GrantName{"workload-identity", GrantKind::workload_identity}};

/// The text of a file without the white space around it; empty if no file is named.
Result<std::string> read_secret(const std::string& path) {
  constexpr std::size_t kMaxSecretFile = std::size_t{64} << 10U;
  if (path.empty()) return std::string();
  Result<std::string> text = read_small_file(path, kMaxSecretFile);
  if (!text) return fail(kExitUsage, text.error().message);
  return std::string(trim(*text, " \t\r\n"));
}

/// $XDG_STATE_HOME/sluice/tokens.json, else in ~/.local/state; empty if there is no home.
std::string usual_token_file() {
  if (const auto state = environment("XDG_STATE_HOME"); state && state->starts_with('/')) {
    return *state + "/sluice/tokens.json";
  }
  const std::string home = home_folder();
  return home.empty() ? home : home + "/.local/state/sluice/tokens.json";
}

Result<void> require_flag(std::string_view grant, std::string_view flag, bool is_given) {
  if (is_given) return {};
  return fail(kExitUsage, "--grant " + std::string(grant) + " needs " + std::string(flag));
}

Result<void> check_grant(const AuthorizationFlags& flags, GrantKind grant) {
  Result<void> good;
  const auto require = [&](std::string_view flag, bool is_given) {
    if (good) good = require_flag(flags.grant, flag, is_given);
  };
  if (!needs_user(grant)) require("--client-id", !flags.client_id.empty());
  if (grant == GrantKind::identity_assertion || grant == GrantKind::workload_identity) {
    require("--assertion-file", !flags.assertion_file.empty());
  }
  if (grant == GrantKind::identity_assertion) {
    require("--idp-token-endpoint", !flags.idp_token_endpoint.empty());
    require("--idp-client-id", !flags.idp_client_id.empty());
  }
  return good;
}

}  // namespace

void add_authorization_options(Subcommand& command, AuthorizationFlags& flags) {
  const std::string group = "Authorization";
  const auto add = [&](const std::string& name, OptionTarget target, std::string text,
                       std::string operand, bool shows_default = false) {
    command.add_option(name, target,
                       {.text = std::move(text),
                        .operand = std::move(operand),
                        .group = group,
                        .shows_default = shows_default});
  };
  command.add_repeatable(
      "--scope", Keep::all,
      [&flags](const std::vector<std::string>& values) {
        for (const std::string& value : values) add_scopes(flags.scopes, split_scopes(value));
      },
      {.text = "Ask for this scope; may be repeated. Without it, for what the server says it needs",
       .operand = "SCOPE",
       .group = group});
  add("--grant", &flags.grant, "How to get a token",
      "authorization-code|device-code|client-credentials|identity-assertion|workload-identity",
      true);
  add("--client-id", &flags.client_id, "The id of a client that is registered by hand", "ID");
  add("--client-secret-file", &flags.client_secret_file,
      "File with the secret of --client-id, or SLUICE_CLIENT_SECRET has it", "FILE");
  add("--private-key", &flags.private_key_file,
      "File with the private key (PEM) of --client-id, in place of a secret", "FILE");
  add("--client-issuer", &flags.client_issuer,
      "The authorization server of --client-id, which no other one sees. Without it, the first "
      "login "
      "trusts the one that the server names",
      "URL");
  add("--client-metadata", &flags.client_metadata_url,
      "The address of a client's metadata document, where such a document is taken as a client's "
      "id",
      "URL");
  add("--assertion-file", &flags.assertion_file,
      "File with the ID token for identity-assertion, or the JWT for workload-identity", "FILE");
  add("--idp-token-endpoint", &flags.idp_token_endpoint,
      "Where the identity provider of identity-assertion gives tokens", "URL");
  add("--idp-client-id", &flags.idp_client_id,
      "The id that this client has at the identity provider", "ID");
  add("--accept-issuer", &flags.accept_issuer, "Accept this issuer although another was expected",
      "URL");
  command.add_flag(
      "--no-resource", flags.no_resource,
      {.text = "Leave out the parameter `resource`, which some servers refuse", .group = group});
  command.add_flag(
      "--dpop", flags.use_dpop,
      {.text = "Bind tokens to a key even if the server does not ask for it", .group = group});
  command.add_flag("--allow-private-addresses", flags.allow_private,
                   {.text = "Let a server elsewhere name authorization servers in private networks",
                    .group = group});
  add("--redirect-host", &flags.redirect_host, "Host of the redirect URI", "127.0.0.1|localhost",
      true);
  add("--redirect-port", &flags.redirect_port, "Port of the redirect URI; 0: any free one", "PORT",
      true);
  add("--token-file", &flags.token_file,
      "Where tokens are kept. Default SLUICE_TOKEN_FILE, or $XDG_STATE_HOME/sluice/tokens.json",
      "FILE");
}

Result<AuthorizationOptions> authorization_options(
    const AuthorizationFlags& flags, std::function<void(const LoginPrompt&)> on_prompt) {
  AuthorizationOptions out;
  bool is_known = false;
  for (const GrantName& each : kGrantNames) {
    if (each.name != flags.grant) continue;
    out.grant = each.grant;
    is_known = true;
  }
  if (!is_known) return fail(kExitUsage, "--grant: there is no grant '" + flags.grant + "'");
  if (Result<void> good = check_grant(flags, out.grant); !good) {
    return std::unexpected(good.error());
  }
  if (flags.redirect_port > std::numeric_limits<std::uint16_t>::max()) {
    return fail(kExitUsage, "--redirect-port: a port is at most 65535");
  }
  if (flags.redirect_host != "127.0.0.1" && flags.redirect_host != "localhost") {
    return fail(kExitUsage, "--redirect-host: it must be 127.0.0.1 or localhost");
  }
  Result<std::string> secret = read_secret(flags.client_secret_file);
  if (!secret) return std::unexpected(secret.error());
  out.client_secret =
      secret->empty() ? environment("SLUICE_CLIENT_SECRET").value_or("") : *std::move(secret);
  Result<std::string> key = read_secret(flags.private_key_file);
  if (!key) return std::unexpected(key.error());
  out.private_key = *std::move(key);
  out.client_id = flags.client_id;
  out.client_issuer = flags.client_issuer;
  out.client_metadata_url = flags.client_metadata_url;
  out.scopes = flags.scopes;
  out.send_resource = !flags.no_resource;
  out.accept_issuer = flags.accept_issuer;
  out.allow_private_addresses = flags.allow_private;
  if (flags.use_dpop) out.dpop = DpopPolicy::always;
  out.token_file = flags.token_file;
  if (out.token_file.empty()) out.token_file = environment("SLUICE_TOKEN_FILE").value_or("");
  if (out.token_file.empty()) out.token_file = usual_token_file();
  out.on_prompt = std::move(on_prompt);
  out.redirect_host = flags.redirect_host;
  out.redirect_port = static_cast<std::uint16_t>(flags.redirect_port);
  out.idp_token_endpoint = flags.idp_token_endpoint;
  out.idp_client_id = flags.idp_client_id;
  if (!flags.assertion_file.empty()) {
    out.assertion = [path = flags.assertion_file] { return read_secret(path); };
  }
  return out;
}

Result<AuthorizationOptions> stored_authorization(const Url& server) {
  Result<AuthorizationOptions> out = authorization_options(AuthorizationFlags(), {});
  if (!out) return out;
  const Result<StoredCredentials> stored = TokenStore(out->token_file).load();
  if (!stored) return fail(kExitFailure, stored.error().message);
  Url place = server;
  place.scheme = server.is_tls() ? "https" : "http";
  const StoredToken* const token = stored->find(canonical_resource(place), {}, {});
  if (token == nullptr) return out;
  for (const GrantName& each : kGrantNames) {
    if (to_text(each.grant) == token->grant) out->grant = each.grant;
  }
  // Only then may a secret of the environment renew it.
  if (!needs_user(out->grant)) out->client_id = token->client_id;
  return out;
}

Result<std::shared_ptr<Authorizer>> make_authorizer_of(
    EventLoop& loop, const Url& server, const AuthorizationFlags& flags,
    std::shared_ptr<TlsContext> tls, std::shared_ptr<const ProxySettings> proxies,
    std::function<void(const LoginPrompt&)> on_prompt, HttpTap tap) {
  Result<AuthorizationOptions> options = authorization_options(flags, std::move(on_prompt));
  if (!options) return std::unexpected(options.error());
  if (options->token_file.empty()) {
    return fail(kExitUsage,
                "there is no home folder to keep tokens in; set HOME, or give --token-file");
  }
  return make_authorizer(loop, server, *std::move(options), std::move(tls), std::move(proxies),
                         std::move(tap));
}

int exit_code_of(const Error& error) {
  switch (upstream_status(error).value_or(error.code)) {
    case kUnauthorized:
    case kForbidden:
      return kExitAuthorization;
    case kBadGateway:
    case kGatewayTimeout:
      return kExitUnreachable;
    default:
      return kExitFailure;
  }
}

}  // namespace sluice
