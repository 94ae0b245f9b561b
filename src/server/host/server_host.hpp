#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "auth/access_policy.hpp"
#include "core/error.hpp"
#include "net/loop/descriptor.hpp"
#include "net/server/http_server.hpp"
#include "server/calls/task_store.hpp"
#include "server/catalog/definition.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/sessions/session_registry.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

struct ServerHostOptions {
  bool tcp = true;  // whether to listen on a port
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;   // 0: any free one
  std::size_t threads = 0;  // event loops; 0: one per core
  std::shared_ptr<TlsContext> tls;
  std::string unix_path;    // where to listen for lines; empty: nowhere
  mode_t unix_mode = 0600;  // who may connect there

  StreamLimits limits;
  std::size_t stream_memory = std::size_t{256} << 20U;  // chunks of all streams
  std::size_t streams_per_client = 64;
  std::size_t calls_per_client = 256;  // requests that are answered later, of one client
  std::size_t connection_memory = HttpServerOptions::kMemory;  // buffers of all connections
  std::size_t max_streams = 100'000;                           // of all loops, ended ones included
  std::size_t max_message = std::size_t{4}
                            << 20U;  // bytes of a request's body or message, to 1 GiB
  SessionLimits sessions;
  TaskLimits tasks;
  HttpServerOptions http;
  AccessPolicy::Options access;
  /// How long answers to a connection of lines may take after the end of its input.
  Duration end_timeout = std::chrono::seconds(10);
};

/// A server definition being served: the event loops, their streams and the servers in front of
/// them. All members are for the thread that made it.
class ServerHost {
 public:
  /// Binds and starts serving. Errors say what is in the way.
  static Result<std::unique_ptr<ServerHost>> start(ServerDefinition definition,
                                                   ServerHostOptions options);
  /// Stops at once if shutdown() has not been called.
  ~ServerHost();
  ServerHost(const ServerHost&) = delete;
  ServerHost& operator=(const ServerHost&) = delete;

  /// 0 without TCP.
  [[nodiscard]] std::uint16_t port() const;
  /// Serves a connection of lines over a pair of non-blocking descriptors, such as the process's
  /// standard input and output, for the process's own user. `ended` runs on a loop when it is over:
  /// the peer has gone, or has ended the input and been answered.
  void serve_lines(Descriptor input, Descriptor output, Executor::Task ended);
  /// The loops, for engines that need a home and for tests.
  [[nodiscard]] LoopPool& loops();

  /// Offers these tools, resources, prompts, skills and hooks from now on, and tells of `told` as
  /// soon as all loops do; requests under way stay with what they began with. Nothing else of the
  /// definition may differ. Thread-safe; those of several threads take effect in any order. Errors
  /// as of start(), and nothing changes.
  Result<void> replace(ServerDefinition definition, std::optional<Change::Kind> told);
  /// Tells the clients that asked for it of a change. Thread-safe.
  void publish(const Change& change);

  /// Whether the caller is on a thread that runs handlers, for which shutdown() and the destructor
  /// wait: an event loop's, or a worker's of the definition. Thread-safe.
  [[nodiscard]] bool on_handler_thread() const;

  /// Refuses new work, lets streams finish and be read, ends with an error what is left when
  /// `deadline` has passed, and closes all connections. Blocks until that is done: at most the
  /// deadline and a second more. `hurry` is asked now and then whether to stop waiting.
  void shutdown(Duration deadline, const std::function<bool()>& hurry = {});

  /// Prometheus text (exposition format 0.0.4).
  [[nodiscard]] std::string metrics() const;

 private:
  struct Loop;
  struct State;
  explicit ServerHost(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice
