#include "net/client/proxy_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <netinet/in.h>
#include <string_view>
#include <utility>

#include "core/text/base64.hpp"
#include "core/text/percent_encoding.hpp"
#include "core/text/text.hpp"
#include "net/http/status_codes.hpp"
#include "net/loop/address_kind.hpp"
#include "net/loop/address_lookup.hpp"

namespace sluice {
namespace {

/// Of a proxy whose URL names none, as with curl.
constexpr std::uint16_t kDefaultPort = 1080;
constexpr unsigned kBitsOfByte = 8;

struct Variable {
  std::string name;
  std::string value;  // empty: none of them is set
};

/// The first of the variables that is set.
Variable first_of(const EnvironmentLookup& look_up, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const char* const value = look_up(name);
    if (value != nullptr && *value != '\0') return {.name = name, .value = value};
  }
  return {};
}

bool is_scheme(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; });
}

/// [http://][user[:password]@]host[:port]. Errors do not repeat the value: it may have a password.
Result<std::optional<ProxyServer>> parse_proxy(const Variable& variable) {
  std::string_view rest = variable.value;
  if (rest.empty()) return std::nullopt;
  const auto refuse = [&variable](std::string_view why) {
    return fail(kBadRequest, "The variable " + variable.name +
                                 " names no proxy that can be used: " + std::string(why) +
                                 ". Write http://[user:password@]host[:port]");
  };
  if (const auto end = rest.find("://");
      end != std::string_view::npos && is_scheme(rest.substr(0, end))) {
    const std::string scheme = to_lower(rest.substr(0, end));
    if (scheme != "http") return refuse("proxies of the scheme " + scheme + " are not supported");
    rest.remove_prefix(end + 3);
  }
  ProxyServer out;
  out.variable = variable.name;
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    std::optional<std::string> user = percent_decode(rest.substr(0, at));
    if (!user) return refuse("% in its user name or password is written %25");
    if (!user->contains(':')) user->push_back(':');
    out.credentials = "Basic ";
    append_base64(out.credentials, *user);
    rest.remove_prefix(at + 1);
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const Result<Url> url = parse_url("http://" + std::string(authority));
  if (!url) return refuse("its host or its port is wrong");
  out.host = url->host;
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const bool has_port = colon != std::string_view::npos && colon + 1 < authority.size();
  out.port = has_port ? url->port : kDefaultPort;
  return out;
}

/// The bytes of an IP address; empty: `host` is a name.
std::string address_bytes(const std::string& host) {
  const Endpoints literal = endpoints_of_address(host, 0);
  if (literal.empty()) return {};
  const sockaddr_storage& address = literal.front().address;
  const auto bytes_at = [&address](std::size_t offset, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(&address) + offset, size);
  };
  return address.ss_family == AF_INET
             ? bytes_at(offsetof(sockaddr_in, sin_addr), sizeof(in_addr))
             : bytes_at(offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr));
}

bool have_same_prefix(std::string_view a, std::string_view b, unsigned bits) {
  if (a.size() != b.size()) return false;
  const std::size_t whole = bits / kBitsOfByte;
  if (a.substr(0, whole) != b.substr(0, whole)) return false;
  const unsigned left = bits % kBitsOfByte;
  if (left == 0) return true;
  const auto differ = static_cast<unsigned char>(a[whole] ^ b[whole]);
  return differ >> (kBitsOfByte - left) == 0;
}

/// A host name without the dot at its end, which only says that it is a whole one.
std::string_view without_root(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

std::string ProxyServer::label() const {
  const Url url{.scheme = "http", .host = host, .port = port, .target = {}};
  return "proxy " + url.authority() + " (" + variable + ")";
}

ProxySettings::ProxySettings(const EnvironmentLookup& look_up) {
  const bool is_cgi = look_up("REQUEST_METHOD") != nullptr;
  plain_ = parse_proxy(first_of(
      look_up, {"http_proxy", is_cgi ? "http_proxy" : "HTTP_PROXY", "all_proxy", "ALL_PROXY"}));
  secure_ =
      parse_proxy(first_of(look_up, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}));
  const Variable exceptions = first_of(look_up, {"no_proxy", "NO_PROXY"});
  exceptions_ = parse_exceptions(exceptions.name, exceptions.value);
}

Result<std::optional<ProxyServer>> ProxySettings::proxy_for(const Url& url) const {
  const Result<std::optional<ProxyServer>>& proxy = url.is_tls() ? secure_ : plain_;
  if (proxy && !*proxy) return std::nullopt;
  if (is_this_machine(url.host)) return std::nullopt;
  if (!exceptions_) return std::unexpected(exceptions_.error());
  const std::string address = address_bytes(url.host);
  const bool is_exempt = std::ranges::any_of(
      *exceptions_, [&](const Exception& each) { return is_covered(each, url, address); });
  if (is_exempt) return std::nullopt;
  return proxy;
}

/// "*", or a name, an address or a network, with or without a port.
Result<ProxySettings::Exception> ProxySettings::parse_exception(std::string_view text) {
  if (text == "*") return Exception();
  const auto refuse = [text](std::string_view why) {
    return fail(kBadRequest, "'" + std::string(text) + "' " + std::string(why));
  };
  std::string host;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return refuse("lacks its ']'");
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    const bool is_ipv6 = std::ranges::count(text, ':') > 1;
    const std::size_t end = std::min(text.find_first_of(is_ipv6 ? "/" : ":/"), text.size());
    host = text.substr(0, end);
    rest = text.substr(end);
  }
  if (host == "*" || host.find('*', 1) != std::string::npos) {
    return refuse("exempts nothing: a domain is written as .example.com, and all hosts as *");
  }
  Exception out;
  out.address = address_bytes(host);
  out.bits = static_cast<unsigned>(out.address.size()) * kBitsOfByte;
  if (out.address.empty()) {
    std::string_view name = host;
    if (name.starts_with('*')) name.remove_prefix(1);
    if (name.starts_with('.')) name.remove_prefix(1);
    out.name = to_lower(without_root(name));
    if (out.name.empty() || out.name.starts_with('.') || text.starts_with('[')) {
      return refuse("is neither a name nor an address");
    }
  }
  if (rest.empty()) return out;
  unsigned number = 0;
  const char* const end = rest.data() + rest.size();
  const auto parsed = std::from_chars(rest.data() + 1, end, number);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
  if (rest.front() == ':') {
    if (!is_number || number == 0 || number > std::numeric_limits<std::uint16_t>::max()) {
      return refuse("has a port that is no number from 1 to 65535");
    }
    out.port = static_cast<std::uint16_t>(number);
    return out;
  }
  if (rest.front() != '/' || out.address.empty() || !is_number || number > out.bits) {
    return refuse("is no network: write one as 10.0.0.0/8 or fd00::/8");
  }
  out.bits = number;
  return out;
}

Result<std::vector<ProxySettings::Exception>> ProxySettings::parse_exceptions(
    const std::string& variable, std::string_view list) {
  constexpr std::string_view kSeparators = ", \t";
  std::vector<Exception> out;
  for (list = trim(list, kSeparators); !list.empty(); list = trim(list, kSeparators)) {
    const std::size_t end = std::min(list.find_first_of(kSeparators), list.size());
    Result<Exception> parsed = parse_exception(list.substr(0, end));
    if (!parsed) {
      return fail(kBadRequest,
                  "The variable " + variable + " cannot be used: " + parsed.error().message);
    }
    out.push_back(*std::move(parsed));
    list.remove_prefix(end);
  }
  return out;
}

bool ProxySettings::is_covered(const Exception& exception, const Url& url,
                               std::string_view address) {
  if (exception.port != 0 && exception.port != url.port) return false;
  if (!exception.address.empty()) {
    return have_same_prefix(exception.address, address, exception.bits);
  }
  if (exception.name.empty()) return true;
  const std::string_view host = without_root(url.host);
  return address.empty() && host.ends_with(exception.name) &&
         (host.size() == exception.name.size() ||
          host[host.size() - exception.name.size() - 1] == '.');
}

std::shared_ptr<const ProxySettings> environment_proxies() {
  return std::make_shared<const ProxySettings>(
      [](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace sluice
