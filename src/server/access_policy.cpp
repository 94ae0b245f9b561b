#include "server/access_policy.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <utility>

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
  const bool is_port =
      rest.empty() ||
      (rest.starts_with(':') && rest.find_first_not_of("0123456789", 1) == std::string_view::npos);
  static constexpr std::string_view kNoHost = "@/?#\\ \t";
  return is_port && host.find_first_of(kNoHost) == std::string_view::npos ? host
                                                                          : std::string_view();
}

bool is_ip_address(std::string_view host) {
  const std::string text(host);
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_local_name(std::string_view host) {
  static constexpr std::string_view kSuffix = ".localhost";
  return equals_ignoring_case(host, "localhost") ||
         (host.size() > kSuffix.size() &&
          equals_ignoring_case(host.substr(host.size() - kSuffix.size()), kSuffix));
}

bool is_loopback_host(std::string_view host) {
  return is_local_name(host) || host == "::1" || (host.starts_with("127.") && is_ip_address(host));
}

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::ranges::any_of(list, [value](const std::string& entry) {
    return entry == "*" || equals_ignoring_case(entry, value);
  });
}

}  // namespace

AccessPolicy::AccessPolicy(Options options)
    : keys_(options.api_keys),
      origins_(std::move(options.allowed_origins)),
      hosts_(std::move(options.allowed_hosts)) {}

bool AccessPolicy::host_allowed(std::string_view host_header) const {
  const std::string_view host = host_name(host_header);
  return !host.empty() && (is_local_name(host) || is_ip_address(host) || contains(hosts_, host));
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

std::string AccessPolicy::principal_of(const HttpRequest& request) const {
  if (keys_.empty()) return request.peer.to_string();
  // Which of two keys counts is nothing to guess.
  if (request.repeated(KnownHeader::x_api_key) || request.repeated(KnownHeader::authorization)) {
    return {};
  }
  std::string_view key = request.header(KnownHeader::x_api_key);
  const std::string* const name =
      key.data() != nullptr
          ? keys_.name_of(key)
          : keys_.name_of_authorization(request.header(KnownHeader::authorization));
  return name == nullptr ? std::string() : "key:" + *name;
}

}  // namespace sluice
