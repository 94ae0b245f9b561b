#pragma once

// Serving a Server.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/error.hpp"

namespace sluice {

class Server;
class Serving;

/// A name for a client, and the secret that it sends as `Authorization: Bearer`.
struct ClientKey {
  std::string name;
  std::string key;
};

// Where a server listens. Each at most once.

/// Streamable HTTP at /mcp, WebSocket at /ws. On an address that others can reach, set keys or
/// put a proxy with authentication before it.
struct http {  // NOLINT(readability-identifier-naming)
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;         // 0: any free one
  std::string tls_certificate = {};  // PEM files; empty: no TLS
  std::string tls_key = {};
  std::vector<std::string> allowed_origins = {};  // beside the server's own
  std::vector<std::string> allowed_hosts = {};
  std::vector<ClientKey> keys = {};  // none: everybody who can connect may ask
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
  std::size_t max_message = 4 << 20;  // bytes
  std::size_t max_connections = 100'000;
  std::size_t max_sessions = 10'000;  // 0: none, every request stands for itself
  std::chrono::seconds session_expiry{1800};
  std::chrono::milliseconds shutdown_deadline{10'000};
};

namespace detail {

struct Places {
  std::optional<http> over_http;
  std::optional<unix_socket> over_unix;
  bool over_stdio = false;
  ServeOptions options;

  void put(http where) { over_http = std::move(where); }
  void put(unix_socket where) { over_unix = std::move(where); }
  void put(stdio /*where*/) { over_stdio = true; }
  void put(const ServeOptions& how) { options = how; }
  template <class T>
  void put(std::optional<T> where) {
    if (where) put(std::move(*where));
  }
};

template <class... Where>
Places places(Where... where) {
  Places out;
  (out.put(std::move(where)), ...);
  return out;
}

/// `input_ended` is called on a loop when standard input has ended and all of it is answered.
std::expected<Serving, Error> start_at(const Server& server, Places places,
                                       std::function<void()> input_ended);
int serve_at(const Server& server, Places places);

}  // namespace detail

/// A server being served by event loops of its own; stops when it is destroyed. Thread-safe but for
/// stop() and the destructor.
class Serving {
 public:
  Serving(Serving&& other) noexcept;
  Serving& operator=(Serving&& other) noexcept;
  ~Serving();

  std::uint16_t port() const;  // 0 without HTTP
  std::string url() const;     // of the MCP endpoint; empty without HTTP

  /// Prometheus text (exposition format 0.0.4), as at /metrics.
  std::string metrics() const;

  /// Lets calls finish until the deadline of the options, then ends them.
  void stop();

 private:
  friend std::expected<Serving, Error> detail::start_at(const Server& server, detail::Places places,
                                                        std::function<void()> input_ended);
  struct State;
  explicit Serving(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Serves at these places (http, unix_socket, stdio; and ServeOptions; or std::optional of them)
/// and returns. The error says
/// what is in the way: a port that is taken, a TLS file that cannot be read, a definition that
/// contradicts itself.
template <class... Where>
std::expected<Serving, Error> start(const Server& server, Where... where) {
  return detail::start_at(server, detail::places(std::move(where)...), {});
}

/// Serves until SIGINT, SIGTERM or the end of standard input. Returns what main() should: 0, or 1
/// with a line on standard error that says what was in the way.
template <class... Where>
int serve(const Server& server, Where... where) {
  return detail::serve_at(server, detail::places(std::move(where)...));
}

}  // namespace sluice
