#include "cli/doctor/server/connection_facts.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <future>
#include <memory>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include "cli/doctor/report/certificate_days.hpp"
#include "client/api/background_loop.hpp"
#include "net/client/proxy_tunnel.hpp"
#include "net/http/status_codes.hpp"
#include "net/loop/address_kind.hpp"
#include "net/loop/address_lookup.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

constexpr Duration kConnectPatience = std::chrono::seconds(5);

TimePoint clock_now() {
  return std::chrono::steady_clock::now();
}

/// Waits until the socket is ready. False: not in time.
bool await_socket(int socket, short events, TimePoint deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_now()).count();
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  return left > 0 && ::poll(&entry, 1, static_cast<int>(left)) > 0;
}

/// A name's addresses. The lookup itself cannot be interrupted, so it is left behind at the
/// deadline.
Result<Endpoints> look_up(const std::string& host, std::uint16_t port, TimePoint deadline) {
  if (Endpoints literal = endpoints_of_address(host, port); !literal.empty()) return literal;
  const auto background = BackgroundLoop::shared();
  const auto lookup = std::make_shared<AddressLookup>();
  const auto promise = std::make_shared<std::promise<Result<Endpoints>>>();
  background->loop().post([&loop = background->loop(), lookup, promise, host, port] {
    lookup->start(loop, host, port,
                  [promise](Result<Endpoints> found) { promise->set_value(std::move(found)); });
  });
  std::future<Result<Endpoints>> found = promise->get_future();
  const bool came = found.wait_until(deadline) == std::future_status::ready;
  // What belongs to the loop ends there.
  background->loop().post([lookup] { lookup->forget(); });
  if (!came) return fail(kBadGateway, "no answer of the name service in time");
  return found.get();
}

std::string text_of(const Endpoint& endpoint) {
  std::array<char, NI_MAXHOST> host{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size, host.data(),
                host.size(), nullptr, 0, NI_NUMERICHOST);
  return host.data();
}

/// Why there is no connection; empty: there is one.
std::string connect_problem(int socket, const Endpoint& endpoint, TimePoint deadline) {
  if (socket < 0) return std::strerror(errno);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) == 0) {
    return {};
  }
  if (errno != EINPROGRESS) return std::strerror(errno);
  if (!await_socket(socket, POLLOUT, deadline)) return "no connection in time";
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::string() : std::string(std::strerror(error));
}

/// Why the proxy at the socket opens no tunnel to the server; empty: it does.
std::string tunnel_problem(int socket, const Url& server, const ProxyServer& proxy,
                           TimePoint deadline) {
  ProxyTunnel tunnel(server, proxy);
  const Result<std::string> request = tunnel.request();
  if (!request) return request.error().message;
  // An empty socket takes a whole head.
  if (::send(socket, request->data(), request->size(), MSG_NOSIGNAL) < 0) {
    return std::strerror(errno);
  }
  std::array<char, 4096> buffer{};
  while (!tunnel.is_open()) {
    if (!await_socket(socket, POLLIN, deadline)) return "no answer of the proxy in time";
    const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (size < 0) return std::strerror(errno);
    if (size == 0) return "the proxy ends the connection";
    const Result<void> fed = tunnel.feed({buffer.data(), static_cast<std::size_t>(size)});
    if (!fed) return fed.error().message;
  }
  return {};
}

std::string handshake_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "the server ends the connection" : reason;
}

/// Does the handshake whatever the certificate is. Errors: 502; 504, there is no answer.
Result<TlsFacts> shake_hands(int socket, TlsContext& tls, const Url& server, TimePoint deadline) {
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(tls.native()), &SSL_free);
  if (ssl == nullptr) throw std::bad_alloc();
  SSL_set_verify(ssl.get(), SSL_VERIFY_NONE, nullptr);
  if (endpoints_of_address(server.host, server.port).empty()) {
    SSL_set_tlsext_host_name(ssl.get(), server.host.c_str());
    SSL_set1_host(ssl.get(), server.host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), server.host.c_str());
  }
  SSL_set_fd(ssl.get(), socket);
  const TimePoint begin = clock_now();
  ERR_clear_error();
  for (int done = SSL_connect(ssl.get()); done != 1; done = SSL_connect(ssl.get())) {
    const int wanted = SSL_get_error(ssl.get(), done);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) {
      return fail(kBadGateway, handshake_error());
    }
    if (!await_socket(socket, wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline)) {
      return fail(kGatewayTimeout, "no answer in time");
    }
  }
  TlsFacts facts{.version = SSL_get_version(ssl.get()), .problem = {}, .took = clock_now() - begin};
  if (const long verdict = SSL_get_verify_result(ssl.get()); verdict != X509_V_OK) {
    facts.problem = X509_verify_cert_error_string(verdict);
  }
  if (const X509* const certificate = SSL_get0_peer_certificate(ssl.get())) {
    facts.days_left = days_until(X509_get0_notAfter(certificate), std::time(nullptr));
  }
  return facts;
}

/// Whether all addresses are of this machine or its networks, and there are any.
bool are_private(const Endpoints& addresses) {
  return !addresses.empty() && std::ranges::all_of(addresses, [](const Endpoint& each) {
    return kind_of(each) != AddressKind::global;
  });
}

}  // namespace

bool ConnectionFacts::is_reachable() const {
  return std::ranges::any_of(addresses,
                             [](const AddressFacts& each) { return each.problem.empty(); });
}

Result<ConnectionFacts> look_at_connection(const Url& server,
                                           const std::optional<ProxyServer>& proxy, TlsContext* tls,
                                           TimePoint deadline) {
  ConnectionFacts facts;
  const TimePoint begin = clock_now();
  const TimePoint lookup_end = std::min(deadline, begin + kConnectPatience);
  const Result<Endpoints> endpoints = proxy ? look_up(proxy->host, proxy->port, lookup_end)
                                            : look_up(server.host, server.port, lookup_end);
  if (!endpoints) return fail(kBadGateway, endpoints.error().message);
  facts.lookup = clock_now() - begin;
  facts.is_private =
      are_private(proxy ? endpoints_of_address(server.host, server.port) : *endpoints);
  bool has_shaken = tls == nullptr;
  for (const Endpoint& endpoint : *endpoints) {
    if (facts.addresses.size() == ConnectionFacts::kMaxAddresses) break;
    const TimePoint started = clock_now();
    const TimePoint end = std::min(deadline, started + kConnectPatience);
    const Descriptor socket(
        ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    AddressFacts& address = facts.addresses.emplace_back();
    address.address = text_of(endpoint);
    address.problem = connect_problem(socket.get(), endpoint, end);
    address.took = clock_now() - started;
    if (has_shaken || !address.problem.empty()) continue;
    has_shaken = true;
    if (proxy) {
      facts.tunnel_problem = tunnel_problem(socket.get(), server, *proxy, end);
      if (!facts.tunnel_problem.empty()) continue;
    }
    Result<TlsFacts> shaken = shake_hands(socket.get(), *tls, server, end);
    if (shaken) {
      facts.tls = *std::move(shaken);
    } else {
      facts.tls_problem = shaken.error().message;
      facts.is_silent = shaken.error().code == kGatewayTimeout;
    }
  }
  return facts;
}

}  // namespace sluice
