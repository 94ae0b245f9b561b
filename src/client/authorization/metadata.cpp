#include "client/authorization/metadata.hpp"

#include <algorithm>
#include <utility>

#include "client/authorization/oauth_reply.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kResourceSuffix = "/.well-known/oauth-protected-resource";
constexpr std::string_view kServerSuffix = "/.well-known/oauth-authorization-server";
constexpr std::string_view kOpenIdSuffix = "/.well-known/openid-configuration";

bool is_true(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::vector<std::string> list_at(const json::object& object, std::string_view name) {
  return texts_at(object, name).value_or(std::vector<std::string>());
}

/// The path of a URL without its query, and without the slash at its end.
std::string_view path_of(const Url& url) {
  std::string_view path = std::string_view(url.target).substr(0, url.target.find('?'));
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Url at_target(const Url& url, std::string_view front, std::string_view back) {
  return with_target(url, std::string(front).append(back));
}

/// An issuer without the slash that alone is its path.
std::string_view without_root(std::string_view issuer) {
  const std::size_t host = issuer.find("://");
  if (host != std::string_view::npos && issuer.find('/', host + 3) == issuer.size() - 1) {
    issuer.remove_suffix(1);
  }
  return issuer;
}

Result<json::value> parse_document(std::string_view text) {
  Result<json::value> parsed = parse_json(text);
  if (!parsed || !parsed->is_object()) return fail(kBadGateway, "it is not a JSON object");
  return parsed;
}

}  // namespace

std::string to_origin(const Url& url) {
  return url.scheme + "://" + url.authority();
}

Result<ResourceMetadata> parse_resource_metadata(std::string_view text) {
  const Result<json::value> parsed = parse_document(text);
  if (!parsed) return std::unexpected(parsed.error());
  const json::object& object = parsed->get_object();
  ResourceMetadata out;
  out.resource = text_at(object, "resource");
  if (out.resource.empty()) return fail(kBadGateway, "it has no 'resource'");
  out.authorization_servers = list_at(object, "authorization_servers");
  out.scopes_supported = list_at(object, "scopes_supported");
  out.wants_dpop = is_true(object, "dpop_bound_access_tokens_required");
  return out;
}

bool is_resource_of(std::string_view resource, const Url& server) {
  if (resource.find('#') != std::string_view::npos) return false;
  const Result<Url> named = parse_url(resource);
  if (!named || named->scheme != server.scheme || named->host != server.host ||
      named->port != server.port) {
    return false;
  }
  const std::string_view above = path_of(*named);
  const std::string_view path = path_of(server);
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

std::string canonical_resource(const Url& server) {
  return to_origin(server).append(path_of(server));
}

std::vector<Url> resource_metadata_urls(const Url& server) {
  std::vector<Url> out;
  if (const std::string_view path = path_of(server); !path.empty()) {
    out.push_back(at_target(server, kResourceSuffix, path));
  }
  out.push_back(at_target(server, kResourceSuffix, {}));
  return out;
}

Result<ServerMetadata> parse_server_metadata(std::string_view text) {
  const Result<json::value> parsed = parse_document(text);
  if (!parsed) return std::unexpected(parsed.error());
  const json::object& object = parsed->get_object();
  ServerMetadata out;
  out.issuer = text_at(object, "issuer");
  if (out.issuer.empty()) return fail(kBadGateway, "it has no 'issuer'");
  out.authorization_endpoint = text_at(object, "authorization_endpoint");
  out.token_endpoint = text_at(object, "token_endpoint");
  if (out.token_endpoint.empty()) return fail(kBadGateway, "it has no 'token_endpoint'");
  out.registration_endpoint = text_at(object, "registration_endpoint");
  out.revocation_endpoint = text_at(object, "revocation_endpoint");
  out.device_authorization_endpoint = text_at(object, "device_authorization_endpoint");
  out.scopes_supported = list_at(object, "scopes_supported");
  out.auth_methods = list_at(object, "token_endpoint_auth_methods_supported");
  out.challenge_methods = list_at(object, "code_challenge_methods_supported");
  out.dpop_algorithms = list_at(object, "dpop_signing_alg_values_supported");
  out.sends_iss = is_true(object, "authorization_response_iss_parameter_supported");
  out.takes_metadata_documents = is_true(object, "client_id_metadata_document_supported");
  return out;
}

bool is_same_issuer(std::string_view named, std::string_view expected) {
  return without_root(named) == without_root(expected);
}

Result<std::vector<Url>> server_metadata_urls(std::string_view issuer) {
  const Result<Url> url = parse_url(issuer);
  if (!url) return std::unexpected(url.error());
  if (url->is_websocket() || issuer.find_first_of("?#") != std::string_view::npos) {
    return fail(kBadRequest,
                std::string(issuer) +
                    ": an issuer is an https URL without query and fragment (RFC 8414, "
                    "section 2)");
  }
  const std::string_view path = path_of(*url);
  std::vector<Url> out = {at_target(*url, kServerSuffix, path),
                          at_target(*url, kOpenIdSuffix, path)};
  if (!path.empty()) out.push_back(at_target(*url, path, kOpenIdSuffix));
  return out;
}

ServerMetadata assumed_metadata(const Url& server) {
  const std::string origin = to_origin(server);
  ServerMetadata out;
  out.issuer = origin;
  out.authorization_endpoint = origin + "/authorize";
  out.token_endpoint = origin + "/token";
  out.registration_endpoint = origin + "/register";
  out.challenge_methods = {"S256"};
  return out;
}

}  // namespace sluice
