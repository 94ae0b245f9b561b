// What servers, authorization servers and browsers send to a client that authorizes itself.
// Whatever it is, reading it ends, stays within its limits, and lets nothing through that it must
// not.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "client/authorization/challenge.hpp"
#include "client/authorization/code_grant.hpp"
#include "client/authorization/metadata.hpp"
#include "client/authorization/oauth_http.hpp"
#include "client/authorization/oauth_reply.hpp"
#include "client/authorization/token_store.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

void read_challenges(std::string_view text) {
  const auto challenges = parse_challenges(text);
  require(challenges.size() <= 16);
  for (const AuthChallenge& each : challenges) {
    require(!each.scheme.empty());
    require(each.parameters.size() <= 32);
  }
  const HeaderField field{"WWW-Authenticate", text};
  require(read_challenge(HeaderFields(std::span(&field, 1))).scopes.size() <= 16 * 256);
}

void read_documents(std::string_view text) {
  static const Url server{
      .scheme = "https", .host = "mcp.example", .port = 443, .target = "/a/mcp?q"};
  if (const auto resource = parse_resource_metadata(text)) {
    require(!resource->resource.empty());
    if (is_resource_of(resource->resource, server)) {
      require(to_origin(*parse_url(resource->resource)) == "https://mcp.example");
    }
    for (const std::string& issuer : resource->authorization_servers) {
      const auto places = server_metadata_urls(issuer);
      if (!places) continue;
      require(places->size() == 2 || places->size() == 3);
      require(is_same_issuer(issuer, issuer));
    }
  }
  if (const auto document = parse_server_metadata(text)) require(!document->token_endpoint.empty());
}

void read_replies(int status, std::string_view text) {
  if (const auto reply = parse_token_reply(status, text, "https://a")) {
    require(status / 100 == 2);
    for (const char c : reply->access_token) require(c > ' ' && c <= '~');
  } else {
    for (const char c : reply.error().message) require(c >= ' ' && c <= '~');
  }
  if (const auto reply = parse_registration_reply(status, text, "a")) {
    require(!reply->client_id.empty() && reply->secret_expires_at >= 0);
  }
  if (const auto reply = parse_device_reply(status, text, "a")) {
    require(reply->interval.count() >= 1 && reply->expiry.count() >= 0);
  }
}

void read_file(std::string_view text) {
  const auto credentials = parse_credentials(text);
  if (!credentials) return;
  const auto again = parse_credentials(to_text(*credentials));
  require(again.has_value() && *again == *credentials);
}

void read_query(std::string_view text) {
  const FormFields fields = parse_form(text);
  require(fields.size() <= 64);
  const FormFields again = parse_form(to_form(fields));
  require(again == fields);
  const AuthorizationRequest request{
      .state = "s", .verifier = "v", .issuer = "https://a", .expects_iss = true};
  require(!is_answer_to(request, text) || field_of(fields, "state") == "s");
  if (const auto code = read_redirect(request, text)) {
    require(field_of(fields, "iss") == "https://a" && !code->empty());
  }
}

}  // namespace

/// The first byte says what the others are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'c':
      read_challenges(text);
      break;
    case 'm':
      read_documents(text);
      break;
    case 'r':
      read_replies(200, text);
      break;
    case 'e':
      read_replies(400, text);
      break;
    case 'f':
      read_file(text);
      break;
    case 'q':
      read_query(text);
      break;
    default:
      break;
  }
  return 0;
}
