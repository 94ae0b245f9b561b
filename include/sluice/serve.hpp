#pragma once

// Serves a Server over HTTP, a Unix domain socket, or standard input and output.

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
#include "sluice/routes.hpp"

namespace sluice {

class Authenticator;
class Server;
class Serving;

/// An API key.
struct ClientKey {
  std::string name;  // the caller's principal is "key:" and this name; not empty
  /// The secret that the client sends as `Authorization: Bearer KEY`: 16 to 256 visible ASCII
  /// characters without commas.
  std::string key;
};

// The places where a server can listen: http, unix_socket and stdio. A server may have several http
// places, all with the same access and paths. Give routes to at most one of them; they are
// served at all. So what there is, and who may call it, does not depend on the place.

/// Streamable HTTP at `path`, WebSocket at /ws, HTTP with SSE at /sse. If other machines can reach
/// the address, set keys or an authenticator, or put a proxy that authenticates in front.
struct http {  // NOLINT(readability-identifier-naming)
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;         // 0: any free port
  std::string tls_certificate = {};  // path of the certificate chain (PEM); empty: no TLS
  std::string tls_key = {};          // path of the private key (PEM)
  /// Origins of web pages that may call, in addition to pages of this machine and of the server.
  std::vector<std::string> allowed_origins = {};
  /// Names and addresses that `Host` may have, in addition to loopback names and the machine's own
  /// addresses.
  std::vector<std::string> allowed_hosts = {};
  /// Addresses of trusted proxies, or networks such as "10.0.0.0/8". For requests from them, the
  /// client's address is taken from X-Forwarded-For.
  std::vector<std::string> trusted_proxies = {};
  std::vector<ClientKey> keys = {};  // empty: everybody who can connect may call
  /// Decides who may call, and who the caller is (sluice/authenticator.hpp). Excludes keys.
  std::shared_ptr<Authenticator> authenticator = {};
  std::string path = "/mcp";       // of Streamable HTTP
  bool websocket = true;           // whether there is WebSocket, at /ws
  bool sse = true;                 // whether there is HTTP with SSE, at /sse and /messages
  std::vector<Route> routes = {};  // your own pages, at all places
};
/// A Unix domain socket. Each message is one line of JSON.
struct unix_socket {  // NOLINT(readability-identifier-naming)
  std::string path;
  unsigned mode = 0600;  // permissions of the socket, as for chmod
};
/// Standard input and output, until the input ends. Each message is one line of JSON. From the
/// start on, even after stop(), the rest of the program reads end-of-file from standard input, and
/// what it writes to standard output goes to standard error.
struct stdio {};  // NOLINT(readability-identifier-naming)

/// The places that the arguments of main() name: `--listen HOST:PORT`, which may be repeated,
/// `--unix PATH` and `--stdio`. Without any argument, `over_http` is the place. `--help` explains
/// them.
struct command_line {  // NOLINT(readability-identifier-naming)
  int count;           // as main() gets it
  char** arguments;    // as main() gets them: the first is the program's name
  /// What every http place has, apart from its host and port.
  http over_http = {};
};

/// Limits of a running server. Sizes are in bytes. Durations longer than a year count as a year. A
/// client is a principal; where nobody authenticates, an address. start() refuses limits that
/// contradict each other.
struct ServeOptions {
  std::size_t threads = 0;                              // number of event loops; 0: one per core
  std::size_t max_message = 4 << 20;                    // at most 1 GiB
  std::size_t max_connections = 100'000;                // open at the same time
  std::size_t max_sessions = 10'000;                    // 0: no sessions; each request stands alone
  std::chrono::seconds session_expiry{1800};            // a session that is not used this long ends
  std::chrono::milliseconds shutdown_deadline{10'000};  // for calls under way at the end

  // Connections.

  std::size_t max_connections_per_address = 0;  // 0: a quarter of all
  std::size_t connection_memory = 256 << 20;    // of the buffers of all connections
  std::size_t max_header = 16 << 10;            // of the head of an HTTP request
  std::size_t compression_threshold = 4 << 10;  // shorter HTTP replies are not compressed; 0: none
  std::chrono::milliseconds request_timeout{30'000};   // from a request's first byte to its last
  std::chrono::milliseconds idle_timeout{75'000};      // of an HTTP connection between requests
  std::chrono::milliseconds write_timeout{30'000};     // for a peer that reads nothing; 0: never
  std::chrono::milliseconds event_keep_alive{15'000};  // between comments of a silent event stream
  std::chrono::milliseconds ping_interval{30'000};     // of a WebSocket; 0: no pings

  // Sessions and calls.

  std::size_t sessions_per_client = 10'000;
  /// How long a call in a session continues after its client has gone, so that it can come back.
  std::chrono::milliseconds resume_window{60'000};
  std::size_t calls_per_client = 256;  // under way at the same time

  // Tasks (docs/tasks.md).

  std::size_t max_tasks = 10'000;  // ended ones included
  std::size_t tasks_per_client = 100;
  std::chrono::milliseconds task_ttl{3'600'000};       // how long a task is kept, from its creation
  std::chrono::milliseconds max_task_ttl{86'400'000};  // the most that a client may ask for
  std::chrono::milliseconds task_poll_interval{1'000};  // recommended to clients
  std::size_t max_task_result = 4 << 20;
  std::size_t task_memory = 256 << 20;  // of all results; at least twice max_task_result

  // Streams (docs/streaming.md), among them the output of calls in sessions.

  std::size_t max_streams = 100'000;  // ended ones included
  std::size_t streams_per_client = 64;
  std::size_t max_stream_chunks = 16'384;               // of one stream, not read yet
  std::size_t max_stream_bytes = 1 << 20;               // the same
  std::size_t retained_stream_bytes = 64 << 10;         // of one stream, for readers that come back
  std::size_t stream_memory = 256 << 20;                // of all streams; at least 64 KiB
  std::chrono::milliseconds stream_expiry{300'000};     // a stream that nobody reads this long ends
  std::chrono::milliseconds stream_tombstone{300'000};  // how long its id is remembered after that
  /// A reader that holds up a full stream and does not move for this long is dropped.
  std::chrono::milliseconds stream_stall{30'000};
};

namespace detail {

/// An argument of serve(): a place, or the options.
struct Place {
  enum class Kind : std::uint8_t { none, http, unix_socket, stdio, command_line, options };
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
inline Place place(const command_line& where) {
  return {Place::Kind::command_line, &where};
}
inline Place place(const ServeOptions& how) {
  return {Place::Kind::options, &how};
}
template <class T>
Place place(const std::optional<T>& where) {
  return where ? place(*where) : Place{};
}
template <class T>
Place place(const T& /*where*/) {
  static_assert(sizeof(T) == 0,
                "a server is served at sluice::http{.port = 8080}, unix_socket, stdio or "
                "command_line; besides, there may be ServeOptions");
  return {};
}

std::expected<Serving, Error> start_at(const Server& server, std::initializer_list<Place> places);
int serve_at(const Server& server, std::initializer_list<Place> places);

}  // namespace detail

/// A running server with its own threads. The destructor stops it; in a handler, where stop()
/// throws, it ends the program. Thread-safe, except for stop(), moving and the destructor.
class Serving {
 public:
  Serving(Serving&& other) noexcept;
  Serving& operator=(Serving&& other) noexcept;
  ~Serving();

  // These keep their values after stop().
  std::uint16_t port() const;             // the TCP port of the first http place; 0 without HTTP
  std::string url() const;                // of its MCP endpoint; empty without HTTP
  std::vector<std::string> urls() const;  // of the MCP endpoints of all http places, in their order

  /// What /metrics shows: Prometheus text (exposition format 0.0.4). Empty after stop().
  std::string metrics() const;

  /// Blocks while calls under way finish, at most for ServeOptions::shutdown_deadline, and then
  /// ends the others with kBusy. A server with stdio alone does not wait. May be called again.
  /// Throws std::logic_error, and changes nothing, on its event loops and on the worker threads of
  /// its Server, so in every handler and middleware that it serves: it would wait for itself. Let
  /// the handler tell another thread to call stop().
  void stop();

 private:
  friend std::expected<Serving, Error> detail::start_at(
      const Server& server, std::initializer_list<detail::Place> places);
  friend int detail::serve_at(const Server& server, std::initializer_list<detail::Place> places);
  struct State;
  explicit Serving(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Starts serving and returns. The arguments are http, unix_socket, stdio, command_line and
/// ServeOptions, in any order; each may be in a std::optional. Only http may be repeated. The
/// error's message says what is wrong: no place, a path that cannot be, a port or path that is in
/// use, places with different access, routes in two of them, an argument that is given twice, a TLS
/// file that is missing or cannot be read, a trusted proxy that is not an address or a network, a
/// key that is too short or that two clients share, keys together with an authenticator, limits
/// that contradict each other, a URL path that is used twice, a command line that is not as
/// described (code 2), a definition that cannot be served, or threads or descriptors that the
/// system refuses. For `--help`, it is the help (code 0).
template <class... Where>
std::expected<Serving, Error> start(const Server& server, const Where&... where) {
  return detail::start_at(server, {detail::place(where)...});
}

/// Serves until SIGINT, SIGTERM or SIGHUP, or, with stdio, until standard input has ended and
/// everything in it is answered. After either, calls under way may finish until
/// ServeOptions::shutdown_deadline or a (second) signal. Returns the exit code for main(): 0, also
/// after printing the help; 1 if serving could not start, or 2 if the command line is wrong, after
/// a message on standard error that says why. Signal handlers are as before when it returns.
template <class... Where>
int serve(const Server& server, const Where&... where) {
  return detail::serve_at(server, {detail::place(where)...});
}

}  // namespace sluice
