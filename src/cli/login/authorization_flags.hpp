#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/authorization/authorizer.hpp"
#include "core/error.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

class Subcommand;

/// How the commands that talk to an MCP server authorize themselves.
struct AuthorizationFlags {
  std::string grant = "authorization-code";
  std::vector<std::string> scopes;
  std::string client_id;
  std::string client_secret_file;
  std::string private_key_file;
  std::string client_issuer;
  std::string client_metadata_url;
  std::string assertion_file;
  std::string idp_token_endpoint;
  std::string idp_client_id;
  std::string accept_issuer;
  std::string token_file;
  std::string redirect_host = "127.0.0.1";
  std::uint32_t redirect_port = 0;
  bool no_resource = false;
  bool allow_private = false;
  bool use_dpop = false;
};

/// Adds these flags to a command. `flags` must outlive the parsing.
void add_authorization_options(Subcommand& command, AuthorizationFlags& flags);

/// The options that the flags and the environment (SLUICE_TOKEN_FILE, SLUICE_CLIENT_SECRET) mean.
/// `on_prompt` shows the user what to do; empty: there is none. Error: kExitUsage, with the flag
/// that is wrong, or the file that cannot be read.
Result<AuthorizationOptions> authorization_options(
    const AuthorizationFlags& flags, std::function<void(const LoginPrompt&)> on_prompt);

/// The same for a command without such flags, which uses what the last login at `server` has left.
/// Error: kExitFailure, the file of tokens is refused.
Result<AuthorizationOptions> stored_authorization(const Url& server);

/// Makes the authorizer of a command for the server at `server`, whose requests go by `proxies`,
/// and `tap` is shown. Errors as above, and kExitUsage if there is no place for tokens.
Result<std::shared_ptr<Authorizer>> make_authorizer_of(
    EventLoop& loop, const Url& server, const AuthorizationFlags& flags,
    std::shared_ptr<TlsContext> tls, std::shared_ptr<const ProxySettings> proxies,
    std::function<void(const LoginPrompt&)> on_prompt, HttpTap tap);

/// The exit code for what an authorizer or a server says, also by way of a proxy of this program.
int exit_code_of(const Error& error);

}  // namespace sluice
