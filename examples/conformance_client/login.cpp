#include "login.hpp"

#include <expected>
#include <spawn.h>
#include <sys/types.h>

extern char** environ;

namespace {

namespace json = sluice::json;

std::string text_of(const json::object& context, const char* name) {
  const json::value* const value = context.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

/// Starts what a user does: open the page, which sends the browser back at once.
void open_page(const std::string& url) {
  std::string words[] = {"curl", "-s", "-L", "-o", "/dev/null", "--max-time", "20", url};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), words[5].data(),
                       words[6].data(), words[7].data(), nullptr};
  pid_t child = 0;
  posix_spawnp(&child, "curl", nullptr, nullptr, arguments, environ);
}

}  // namespace

sluice::AuthorizationOptions authorization_of(const std::string& scenario,
                                              const json::object& context) {
  sluice::AuthorizationOptions options{
      .client_id = text_of(context, "client_id"),
      .client_secret = text_of(context, "client_secret"),
      .private_key = text_of(context, "private_key_pem"),
      .client_metadata_url = "https://conformance-test.local/client-metadata.json",
      .on_prompt = [](const sluice::LoginPrompt& prompt) { open_page(prompt.url); },
      .redirect_host = "localhost",
      .idp_token_endpoint = text_of(context, "idp_token_endpoint"),
      .idp_client_id = text_of(context, "idp_client_id")};
  std::string token;
  if (scenario.contains("client-credentials")) {
    options.grant = sluice::GrantKind::client_credentials;
  } else if (scenario.contains("enterprise-managed")) {
    options.grant = sluice::GrantKind::identity_assertion;
    token = text_of(context, "idp_id_token");
  } else if (scenario.contains("wif-jwt")) {
    options.grant = sluice::GrantKind::workload_identity;
    token = text_of(context, "valid_jwt");
  }
  if (!token.empty()) {
    options.assertion = [token]() -> std::expected<std::string, sluice::Error> { return token; };
  }
  return options;
}
