#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_types.hpp"

namespace sluice {

/// A challenge of WWW-Authenticate (RFC 9110, section 11.6.1).
struct AuthChallenge {
  std::string scheme;  // lower case
  /// With names in lower case, in order. Of a name that comes twice, the first is kept.
  std::vector<std::pair<std::string, std::string>> parameters;

  /// The value of the parameter, or an empty view.
  [[nodiscard]] std::string_view parameter(std::string_view name) const;
};

/// The challenges in one field's value. What cannot be read is skipped: a client must deal with the
/// challenges that it understands. At most 16 challenges with 32 parameters each are read.
std::vector<AuthChallenge> parse_challenges(std::string_view value);

/// What a server says with 401 or 403 (RFC 6750, section 3; RFC 9728, section 5.1; RFC 9449,
/// section 7.1). Members are empty if it does not say.
struct ServerChallenge {
  bool is_present = false;  // there is a Bearer or DPoP challenge
  bool has_dpop = false;
  bool has_bearer = false;
  std::string error;
  std::string error_description;
  std::string resource_metadata;    // a URL
  std::vector<std::string> scopes;  // that the request needs
};

/// Reads all WWW-Authenticate fields of a reply.
ServerChallenge read_challenge(const HeaderFields& headers);

/// The words of a space-separated list, each once, in order; at most 256.
std::vector<std::string> split_scopes(std::string_view text);
/// The reverse.
std::string join_scopes(const std::vector<std::string>& scopes);
/// Adds to `scopes` those of `more` that it lacks.
void add_scopes(std::vector<std::string>& scopes, const std::vector<std::string>& more);

}  // namespace sluice
