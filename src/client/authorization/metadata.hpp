#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// What a server says about itself as a protected resource (RFC 9728, section 2).
struct ResourceMetadata {
  std::string resource = {};                            // its identifier
  std::vector<std::string> authorization_servers = {};  // their issuers, at least one
  std::vector<std::string> scopes_supported = {};
  bool wants_dpop = false;  // it takes only tokens that are bound to a key
  /// There is no such document: the server follows 2025-03-26, where it is its own authorization
  /// server, or has one at its origin.
  bool is_assumed = false;
};

/// Reads the document. Errors: 502, with what is wrong. Whether `resource` is that of the server is
/// for is_resource_of().
Result<ResourceMetadata> parse_resource_metadata(std::string_view text);

/// Whether `resource` names the server at `server`: the same origin, and the same path or one above
/// it (RFC 9728, section 3.3; the document at the root is of all paths).
bool is_resource_of(std::string_view resource, const Url& server);

/// The identifier of the server at `server` where it does not say one itself: without a slash if
/// there is no path, and without a query (2026-07-28, Canonical Server URI).
std::string canonical_resource(const Url& server);
/// The origin of a URL, as "https://example.com:8443".
std::string to_origin(const Url& url);

/// Where the document of a server is, in the order to try: with its path, then at the root (RFC
/// 9728, section 3.1).
std::vector<Url> resource_metadata_urls(const Url& server);

/// What an authorization server says about itself (RFC 8414, section 2; OpenID Connect Discovery,
/// section 3). Members are empty where it does not say.
struct ServerMetadata {
  std::string issuer = {};
  std::string authorization_endpoint = {};
  std::string token_endpoint = {};
  std::string registration_endpoint = {};
  std::string revocation_endpoint = {};
  std::string device_authorization_endpoint = {};
  std::vector<std::string> scopes_supported = {};
  std::vector<std::string> auth_methods = {};       // of the token endpoint
  std::vector<std::string> challenge_methods = {};  // of PKCE
  std::vector<std::string> dpop_algorithms = {};
  bool sends_iss = false;                 // RFC 9207, section 3
  bool takes_metadata_documents = false;  // as client ids
};

/// Reads the document. Errors: 502, with what is wrong.
Result<ServerMetadata> parse_server_metadata(std::string_view text);

/// Whether a document's issuer is the one that the document was looked up for (RFC 8414, section
/// 3.3): the same text, where an empty path and "/" are the same, because some servers add or omit
/// that slash.
bool is_same_issuer(std::string_view named, std::string_view expected);

/// Where the document of an issuer is, in the order to try (2026-07-28, Authorization Server
/// Metadata Discovery). Error: 400, `issuer` is not a URL that an issuer can have.
Result<std::vector<Url>> server_metadata_urls(std::string_view issuer);

/// The endpoints at the origin of a server that has no metadata (2025-03-26, Fallbacks for Servers
/// without Metadata Discovery).
ServerMetadata assumed_metadata(const Url& server);

}  // namespace sluice
