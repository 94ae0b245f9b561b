#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "auth/access_policy.hpp"
#include "core/error.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/host_port.hpp"
#include "net/server/http_server.hpp"
#include "server/calls/task_store.hpp"
#include "server/host/definition_host.hpp"
#include "server/sessions/session_registry.hpp"
#include "server/transport/http/http_admission.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Where a server listens for HTTP.
struct ListeningPlace {
  HostPort at;
  std::shared_ptr<TlsContext> tls = nullptr;  // null: without TLS
};

struct ServerHostOptions {
  std::vector<ListeningPlace> tcp;
  /// Where it takes lines over TCP; nothing: nowhere. Whoever connects may use the server, whatever
  /// `access` says.
  std::optional<HostPort> lines;
  std::size_t threads = 0;  // event loops; 0: one per core
  /// The loops instead, if the program needs them for others too. They are started and stopped by
  /// the server, and outlive it.
  LoopPool* loops = nullptr;
  std::string unix_path;    // path of the Unix socket; empty: none
  mode_t unix_mode = 0600;  // permissions of the Unix socket

  StreamLimits limits;
  std::size_t stream_memory = std::size_t{256} << 20U;  // bytes, for chunks of all streams
  std::size_t streams_per_client = 64;
  std::size_t calls_per_client = 256;  // requests of one client that are answered later
  std::size_t connection_memory = HttpServerOptions::kMemory;  // bytes, for all buffers
  std::size_t max_streams = 100'000;                           // of all loops, ended ones included
  std::size_t max_message = std::size_t{4}
                            << 20U;  // bytes of a request's body or a message; at most 1 GiB
  SessionLimits sessions;
  TaskLimits tasks;
  HttpServerOptions http;
  AccessPolicy::Options access;
  HttpPaths paths;
  /// How long the answers to a line connection may take after the end of its input.
  Duration end_timeout = std::chrono::seconds(10);
};

/// A running server: its event loops, their streams, and the HTTP and line servers. Use it only on
/// the thread that created it, except for functions that are thread-safe.
class ServerHost final : public DefinitionHost {
 public:
  /// Starts listening and serving. The Error says what is wrong.
  static Result<std::unique_ptr<ServerHost>> start(ServerDefinition definition,
                                                   ServerHostOptions options);
  /// Stops at once if shutdown() has not been called.
  ~ServerHost() override;
  ServerHost(const ServerHost&) = delete;
  ServerHost& operator=(const ServerHost&) = delete;

  /// The TCP port of the first place; 0 without TCP.
  [[nodiscard]] std::uint16_t port() const;
  /// The URL of each place, in the order of the options and with the port that was chosen, such as
  /// "http://127.0.0.1:43127".
  [[nodiscard]] const std::vector<std::string>& urls() const;
  /// Where it takes lines over TCP, with the port that was chosen, as to_text() has it; or empty.
  [[nodiscard]] const std::string& lines() const;
  /// Serves a line connection over a pair of non-blocking descriptors, such as the process's
  /// standard input and output. Its principal is the process's own user. `ended` runs on a loop
  /// when the connection is over: the peer has gone, or the input has ended and everything in it is
  /// answered.
  void serve_lines(Descriptor input, Descriptor output, Executor::Task ended);
  /// What proves who callers are, from the next request on. Streams and WebSockets that are open go
  /// on as whoever opened them. Only for a server that has an authenticator already. Thread-safe.
  void replace_authenticator(const std::shared_ptr<Authenticator>& authenticator);
  /// The TLS context of connections that come from now on, in all places that have one.
  /// Thread-safe.
  void replace_tls(const std::shared_ptr<TlsContext>& tls);
  /// The event loops, for engines that need one and for tests.
  [[nodiscard]] LoopPool& loops();

  Result<void> replace(ServerDefinition definition, std::vector<Change::Kind> told) override;
  void publish(const Change& change) override;

  /// Whether the caller is on a thread that runs code of the definition: an event loop, a worker of
  /// the definition, or one that decodes long arguments. shutdown() and the destructor wait for
  /// these threads. Thread-safe.
  [[nodiscard]] bool on_handler_thread() const;

  /// Refuses new work, lets streams, calls and tasks finish and be read, ends what is left after
  /// `deadline` with an error, and closes all connections. Blocks until that is done: at most
  /// `deadline` and about a second more. `hurry` is called repeatedly; when it returns true, the
  /// waiting ends. `last` is called when all connections are closed and the loops still run.
  void shutdown(Duration deadline, const std::function<bool()>& hurry = {},
                const std::function<void()>& last = {});

  /// Prometheus text (exposition format 0.0.4).
  [[nodiscard]] std::string metrics() const;

 private:
  struct Loop;
  struct State;
  explicit ServerHost(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice
