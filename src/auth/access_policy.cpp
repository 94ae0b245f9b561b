#include "auth/access_policy.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <netinet/in.h>
#include <system_error>
#include <utility>

#include "auth/api_keys.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

/// The host of "host", "host:port" or "[v6]:port", without brackets. Empty if `authority` is
/// anything else: what follows a host may make it another one's, as in "localhost:x@evil.example".
std::string_view host_name(std::string_view authority) {
  const bool is_v6 = authority.starts_with('[');
  const std::size_t end = is_v6 ? authority.find(']') : authority.find(':');
  if (is_v6 && end == std::string_view::npos) return {};
  const std::string_view host =
      is_v6 ? authority.substr(1, end - 1) : authority.substr(0, std::min(end, authority.size()));
  const std::string_view rest = authority.substr(std::min(is_v6 ? end + 1 : end, authority.size()));
  // At most 65535; the port may be missing behind its colon (RFC 3986, section 3.2.3).
  unsigned port = 0;
  const bool is_port =
      rest.size() <= 1 ||
      (rest.find_first_not_of("0123456789", 1) == std::string_view::npos &&
       std::from_chars(rest.data() + 1, rest.data() + rest.size(), port).ec == std::errc() &&
       port <= std::numeric_limits<std::uint16_t>::max());
  if (!rest.empty() && rest.front() != ':') return {};
  static constexpr std::string_view kNoHost = "@/?#\\ \t";
  return is_port && host.find_first_of(kNoHost) == std::string_view::npos ? host
                                                                          : std::string_view();
}

/// As it is on the wire: 4 bytes, or 16. Empty: `host` is a name.
std::string ip_address(std::string_view host) {
  const std::string text(host);
  std::array<char, sizeof(in6_addr)> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.data(), sizeof(in_addr)};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return {bytes.data(), bytes.size()};
  return {};
}

bool is_local_name(std::string_view host) {
  static constexpr std::string_view kSuffix = ".localhost";
  return equals_ignoring_case(host, "localhost") ||
         (host.size() > kSuffix.size() &&
          equals_ignoring_case(host.substr(host.size() - kSuffix.size()), kSuffix));
}

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::ranges::any_of(list, [value](const std::string& entry) {
    return entry == "*" || equals_ignoring_case(entry, value);
  });
}

/// Whether a caller may be called so: "uid:" and "session:" begin the server's own names.
bool is_name(std::string_view id) {
  static constexpr std::size_t kMaxId = 1024;
  return !id.empty() && id.size() <= kMaxId && !id.starts_with("uid:") &&
         !id.starts_with("session:");
}

/// Whether it can be sent.
bool is_refusal(const Refusal& refusal) {
  return refusal.status >= 400 && refusal.status <= 599 &&
         std::ranges::all_of(refusal.challenge, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Whoever comes by this proxy may read and end what others of its clients have begun.
void warn_of_proxy(const PeerAddress& proxy, bool is_trusted) {
  static LogLimit limit;
  if (const auto left_out = limit.take()) {
    log_warning(is_trusted
                    ? "a request from the address of a trusted proxy names no client, so all such "
                      "requests count as one client's: let the proxy write X-Forwarded-For (or "
                      "what --forwarded-field of sluice serve says), or give each client a key"
                    : "a proxy's clients count as one: name it in trusted_proxies "
                      "(--trusted-proxy of sluice serve), or give each client a key",
                {{"proxy", proxy.to_string()}, {"left_out", *left_out}});
  }
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  return is_local_name(host) || host == "::1" ||
         (host.starts_with("127.") && !ip_address(host).empty());
}

bool AccessPolicy::is_user_code(const Authenticator* authenticator) {
  return authenticator != nullptr && dynamic_cast<const ApiKeys*>(authenticator) == nullptr;
}

AccessPolicy::AccessPolicy(Options options)
    : authenticator_(std::move(options.authenticator)),
      asks_user_code_(is_user_code(authenticator_.get())),
      origins_(std::move(options.allowed_origins)),
      hosts_(std::move(options.allowed_hosts)),
      proxies_(std::move(options.proxies)),
      own_addresses_(std::make_shared<OwnAddresses>(SteadyClock().now())) {}

const ApiKeys* AccessPolicy::keys() const {
  return dynamic_cast<const ApiKeys*>(authenticator_.get());
}

bool AccessPolicy::host_allowed(std::string_view host_header) const {
  const std::string_view host = host_name(host_header);
  if (host.empty()) return false;
  if (is_loopback_host(host) || contains(hosts_, host)) return true;
  const std::string address = ip_address(host);
  return !address.empty() && own_addresses_->has(address, SteadyClock().now());
}

bool AccessPolicy::origin_allowed(std::string_view origin, std::string_view host_header,
                                  bool tls) const {
  if (contains(origins_, origin)) return true;
  const std::size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return false;  // "null" and worse
  const std::string_view scheme = origin.substr(0, scheme_end);
  const std::string_view authority = origin.substr(scheme_end + 3);
  if (scheme != "http" && scheme != "https") return false;
  if (is_loopback_host(host_name(authority))) return true;
  return scheme == (tls ? "https" : "http") && equals_ignoring_case(authority, host_header);
}

std::expected<Principal, Refusal> AccessPolicy::authenticate(const HttpRequest& request) const {
  static LogLimit limit;
  try {
    std::expected<Principal, Refusal> who =
        authenticator_->authenticate(RequestHead(request, proxies_));
    if (who ? is_name(who->id) : is_refusal(who.error())) return who;
    if (const auto left_out = limit.take()) {
      log_error("an authenticator has answered what it may not",
                {{"what", who ? "a principal" : "a refusal"}, {"left_out", *left_out}});
    }
  } catch (...) {
    log_exception(limit, "an authenticator has failed");
  }
  return std::unexpected(Refusal{.status = 500, .message = "Internal error"});
}

std::string AccessPolicy::address(const HttpRequest& request) const {
  return proxies_.client_of(request).to_string();
}

Principal AccessPolicy::principal_by_address(const HttpRequest& request) const {
  if (!authenticates() && proxies_.hides_client(request)) {
    warn_of_proxy(request.peer, trusts_proxy(request.peer));
  }
  return {.id = address(request), .isolated = false};
}

}  // namespace sluice
