#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// An http, https, ws or wss URL in parts (RFC 3986), without user information and fragment.
struct Url {
  std::string scheme;      // lower case
  std::string host;        // lower case, an IPv6 address without brackets
  std::uint16_t port = 0;  // the scheme's default if the URL names none
  std::string target;      // path and query, at least "/"

  [[nodiscard]] bool is_tls() const { return scheme == "https" || scheme == "wss"; }
  [[nodiscard]] bool is_websocket() const { return scheme == "ws" || scheme == "wss"; }
  /// For the Host field: the port only when it is not the scheme's default.
  [[nodiscard]] std::string authority() const;
  /// The same with the port in any case, for CONNECT.
  [[nodiscard]] std::string host_and_port() const;
  [[nodiscard]] std::string to_string() const;
};

/// Parses `text`. The error's message (code 400) says what is wrong; if it begins with the text,
/// then as masked_word() and ": ".
Result<Url> parse_url(std::string_view text);

/// The same URL with another path and query, for other endpoints of the same server.
Url with_target(const Url& url, std::string target);

}  // namespace sluice
