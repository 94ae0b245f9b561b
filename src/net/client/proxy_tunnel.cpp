#include "net/client/proxy_tunnel.hpp"

#include <utility>

#include "net/http/http_types.hpp"
#include "net/http/request_head.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// The schemes that the reply offers, such as "Basic, Negotiate".
std::string schemes_in(HeaderFields reply) {
  std::string out;
  for (const HeaderField& field : reply) {
    if (!equals_ignoring_case(field.name, "Proxy-Authenticate")) continue;
    out.append(out.empty() ? "" : ", ")
        .append(field.value.substr(0, field.value.find_first_of(" ,")));
  }
  return out;
}

/// Of a 407: how to give the proxy credentials, or why it does not take those it got.
std::string wish_of(const ProxyServer& proxy, HeaderFields reply) {
  const std::string schemes = schemes_in(reply);
  if (!schemes.empty() && !list_has_token(schemes, "basic")) {
    return "wants authentication by " + schemes + ", and only Basic is supported";
  }
  if (!proxy.credentials.empty()) {
    return "does not take the user name and the password in the variable";
  }
  return "wants a user name and a password: write them into the variable, as in "
         "http://user:password@host:port";
}

/// "HTTP 403 Forbidden".
std::string status_text(int status) {
  return "HTTP " + std::to_string(status) + " " + std::string(reason_phrase(status));
}

}  // namespace

std::optional<Error> proxy_error(const ProxyServer& proxy, int status, HeaderFields reply) {
  const std::string who = "The " + proxy.label() + " ";
  if (status == kProxyAuthenticationRequired)
    return Error(kBadGateway, who + wish_of(proxy, reply));
  const std::string_view squid = reply.value_of("X-Squid-Error");
  if (squid.empty()) return std::nullopt;
  return Error(kBadGateway, who + "itself answers with " + status_text(status) + ", " +
                                std::string(squid.substr(0, squid.find(' '))));
}

ProxyTunnel::ProxyTunnel(const Url& server, ProxyServer proxy)
    : server_(server),
      proxy_(std::move(proxy)),
      // As with HEAD, what follows the head of a reply that opens a tunnel is no body.
      parser_(static_cast<HttpReplySink&>(*this), kMaxHead, true) {}

Result<std::string> ProxyTunnel::request() const {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!proxy_.credentials.empty()) headers.emplace_back("Proxy-Authorization", proxy_.credentials);
  Result<std::string> head = make_request_head("CONNECT", server_, headers, TargetForm::authority);
  if (head) head->append("\r\n");
  return head;
}

Result<void> ProxyTunnel::feed(std::string_view bytes) {
  const Result<void> fed = parser_.feed(bytes);
  if (problem_) return std::unexpected(*problem_);
  if (!fed) return fail(kBadGateway, refusal() + ": " + fed.error().message);
  if (!parser_.done()) return {};
  // In TLS, HTTP and WebSocket it is the client who speaks first.
  if (!parser_.rest().empty()) return fail(kBadGateway, refusal() + ": it sends more than a head");
  is_open_ = true;
  return {};
}

bool ProxyTunnel::on_head(int status, std::span<const HeaderField> headers) {
  if (status / 100 == 2) return true;
  if (status == kProxyAuthenticationRequired) {
    problem_ = proxy_error(proxy_, status, headers);
  } else {
    problem_ = Error(kBadGateway, refusal() + ", but answers with " + status_text(status) +
                                      ". If the server is reached without the proxy, name it in "
                                      "the variable NO_PROXY");
  }
  return false;
}

std::string ProxyTunnel::refusal() const {
  return "The " + proxy_.label() + " does not connect to " + server_.host_and_port();
}

}  // namespace sluice
