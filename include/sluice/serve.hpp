#pragma once

// Serving a Server.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/detail/duration.hpp"
#include "sluice/error.hpp"

namespace sluice {

class Authenticator;
class Server;
class Serving;

/// A name for a client, and the secret that it sends as `Authorization: Bearer`.
struct ClientKey {
  std::string name;
  std::string key;
};

// Where a server listens. Each at most once.

/// Streamable HTTP at /mcp, WebSocket at /ws. On an address that others can reach, set keys or an
/// authenticator, or put a proxy with authentication before it.
struct http {  // NOLINT(readability-identifier-naming)
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;         // 0: any free one
  std::string tls_certificate = {};  // PEM files; empty: no TLS
  std::string tls_key = {};
  std::vector<std::string> allowed_origins = {};  // beside the server's own
  std::vector<std::string> allowed_hosts = {};
  /// Addresses and prefixes ("10.0.0.0/8") of proxies that are believed when X-Forwarded-For says
  /// for whom they ask.
  std::vector<std::string> trusted_proxies = {};
  std::vector<ClientKey> keys = {};  // none: everybody who can connect may ask
  /// Says instead of keys who may ask, and who they are (sluice/authenticator.hpp).
  std::shared_ptr<Authenticator> authenticator = {};
};
/// Lines of JSON over a Unix domain socket.
struct unix_socket {  // NOLINT(readability-identifier-naming)
  std::string path;
  unsigned mode = 0600;
};
/// Lines of JSON over standard input and output, until the input ends.
struct stdio {};  // NOLINT(readability-identifier-naming)

struct ServeOptions {
  std::size_t threads = 0;            // event loops; 0: one per core
  std::size_t max_message = 4 << 20;  // bytes; at most 1 GiB
  std::size_t max_connections = 100'000;
  std::size_t max_sessions = 10'000;  // 0: none, every request stands for itself
  std::chrono::seconds session_expiry{1800};
  std::chrono::milliseconds shutdown_deadline{10'000};
};

namespace detail {

/// An argument of serve(): a place, or the options.
struct Place {
  enum class Kind : std::uint8_t { none, http, unix_socket, stdio, options };
  Kind kind = Kind::none;
  const void* value = nullptr;
};

inline Place place(const http& where) {
  return {Place::Kind::http, &where};
}
inline Place place(const unix_socket& where) {
  return {Place::Kind::unix_socket, &where};
}
inline Place place(const stdio& where) {
  return {Place::Kind::stdio, &where};
}
inline Place place(const ServeOptions& how) {
  return {Place::Kind::options, &how};
}
template <class T>
Place place(const std::optional<T>& where) {
  return where ? place(*where) : Place{};
}

std::expected<Serving, Error> start_at(const Server& server, std::initializer_list<Place> places);
int serve_at(const Server& server, std::initializer_list<Place> places);

}  // namespace detail

/// A server being served by event loops of its own; stops when it is destroyed. Thread-safe but for
/// stop() and the destructor.
class Serving {
 public:
  Serving(Serving&& other) noexcept;
  Serving& operator=(Serving&& other) noexcept;
  ~Serving();

  // Both also after stop().
  std::uint16_t port() const;  // 0 without HTTP
  std::string url() const;     // of the MCP endpoint; empty without HTTP

  /// Prometheus text (exposition format 0.0.4), as at /metrics. Empty after stop().
  std::string metrics() const;

  /// Lets calls finish until the deadline of the options, then ends them.
  void stop();

 private:
  friend std::expected<Serving, Error> detail::start_at(
      const Server& server, std::initializer_list<detail::Place> places);
  friend int detail::serve_at(const Server& server, std::initializer_list<detail::Place> places);
  struct State;
  explicit Serving(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Serves at these places (http, unix_socket, stdio; and ServeOptions; or std::optional of them)
/// and returns. The error says what is in the way: a port that is taken, a TLS file that cannot be
/// read, a definition that contradicts itself.
template <class... Where>
std::expected<Serving, Error> start(const Server& server, const Where&... where) {
  return detail::start_at(server, {detail::place(where)...});
}

/// Serves until SIGINT, SIGTERM, SIGHUP or the end of standard input, and lets calls finish until
/// the deadline of the options or a second signal. Returns what main() should: 0, or 1 with a line
/// on standard error that says what was in the way. The signals are as before then.
template <class... Where>
int serve(const Server& server, const Where&... where) {
  return detail::serve_at(server, {detail::place(where)...});
}

}  // namespace sluice
