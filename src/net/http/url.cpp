#include "net/http/url.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <netinet/in.h>
#include <utility>

#include "core/text/secrets.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxUrl = 8U << 10U;

std::uint16_t default_port(std::string_view scheme) {
  if (scheme == "http" || scheme == "ws") return 80;
  if (scheme == "https" || scheme == "wss") return 443;
  return 0;
}

bool is_host_character(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

std::string bracketed(const std::string& host) {
  return host.contains(':') ? "[" + host + "]" : host;
}

/// host [":" port]
Result<void> parse_authority(std::string_view authority, Url& url) {
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return fail(400, "an IPv6 address lacks its ']'");
    url.host = to_lower(authority.substr(1, close - 1));
    if (!is_ipv6(url.host)) return fail(400, "'" + url.host + "' is not an IPv6 address");
    authority.remove_prefix(close + 1);
    if (!authority.empty() && authority.front() != ':') {
      return fail(400, "only a port may follow the IPv6 address");
    }
    has_port = !authority.empty();
    if (has_port) port = authority.substr(1);
  } else {
    const std::size_t colon = authority.find(':');
    const std::string_view host = authority.substr(0, colon);
    if (host.empty()) return fail(400, "the host is missing");
    if (!std::all_of(host.begin(), host.end(), is_host_character)) {
      return fail(400, "the host has a character that no host name has");
    }
    url.host = to_lower(host);
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
  }
  // "host:" is allowed and means the default port (RFC 3986, section 3.2.3).
  if (!has_port || port.empty()) return {};
  unsigned number = 0;
  const char* const end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number == 0 || number > 65535) {
    return fail(400, "the port must be a number from 1 to 65535");
  }
  url.port = static_cast<std::uint16_t>(number);
  return {};
}

}  // namespace

std::string Url::authority() const {
  return port == default_port(scheme) ? bracketed(host) : host_and_port();
}

std::string Url::host_and_port() const {
  return bracketed(host) + ":" + std::to_string(port);
}

std::string Url::to_string() const {
  return scheme + "://" + authority() + target;
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) {
    return fail(400, "A URL may have at most " + std::to_string(kMaxUrl) + " bytes");
  }
  const auto refuse = [text](std::string_view why) {
    return fail(400, masked_word(text).append(": ").append(why));
  };
  // A control character or a space in the target would let it break out of the request line.
  if (std::any_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; })) {
    return fail(400,
                "A URL has no spaces, control characters or letters beyond ASCII: write "
                "them percent-encoded");
  }
  const std::size_t colon = text.find("://");
  Url url;
  if (colon != std::string_view::npos) url.scheme = to_lower(text.substr(0, colon));
  url.port = default_port(url.scheme);
  if (url.port == 0) return refuse("a URL begins with http://, https://, ws:// or wss://");
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, path);
  if (authority.find('@') != std::string_view::npos) {
    // The text is not repeated, because it has a password in it.
    return fail(400, "A URL with a user name or password is not taken; use a key instead");
  }
  if (Result<void> parsed = parse_authority(authority, url); !parsed) {
    return refuse(parsed.error().message);
  }
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

Url with_target(const Url& url, std::string target) {
  Url out = url;
  out.target = std::move(target);
  return out;
}

}  // namespace sluice
