#include "server/host/server_host.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "auth/access_policy.hpp"
#include "core/log/log.hpp"
#include "net/lines/line_server.hpp"
#include "server/host/handler_pools.hpp"
#include "server/host/metrics_text.hpp"
#include "server/transport/http/http_endpoint.hpp"
#include "server/transport/message/line_endpoint.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// The largest allowed value of ServerHostOptions::max_message, in bytes.
constexpr std::size_t kMaxMessage = std::size_t{1} << 30U;
/// How often a shutdown checks whether streams have finished.
constexpr auto kDrainPoll = 10ms;
/// How long a shutdown waits for the readers of ended streams while none of them reads any of what
/// waits for it.
constexpr auto kReadGrace = 2s;
/// How long a shutdown waits for the readers of streams that it has ended while none of them gets
/// any of the last chunks. It waits for kReadGrace in all.
constexpr auto kEndGrace = 500ms;
/// How long, after the deadline, the last bytes may take to be sent and peers to close.
constexpr auto kCloseGrace = 500ms;

const Error kShuttingDown{kBusy, "The server is shutting down", {}};

struct Gauge {
  std::string_view name;
  std::string_view help;
  std::atomic<std::uint64_t> StreamCounters::* value;
};
constexpr Gauge kStreamGauges[] = {
    {"sluice_streams_open", "Streams held, ended ones included.", &StreamCounters::open},
    {"sluice_streams_active", "Streams that have not ended.", &StreamCounters::active},
    {"sluice_streams_unread", "Ended streams whose last chunk nobody has read.",
     &StreamCounters::unread},
    {"sluice_stream_tombstones", "Expired stream ids still remembered.",
     &StreamCounters::tombstones},
};
constexpr Gauge kStreamTotals[] = {
    {"sluice_streams_started_total", "Streams started.", &StreamCounters::started},
    {"sluice_streams_ended_total", "Streams ended.", &StreamCounters::ended},
    {"sluice_streams_expired_total", "Streams that expired unread.", &StreamCounters::expired},
    {"sluice_chunks_total", "Chunks appended to streams.", &StreamCounters::chunks},
    {"sluice_stream_pauses_total", "Times a producer was paused by a full stream.",
     &StreamCounters::pauses},
    {"sluice_readers_stalled_total", "Readers that lost a stream by stalling.",
     &StreamCounters::stalled_readers},
};

struct PeriodicWork {
  EventLoop* loop;
  Duration period;
  Executor::Task work;
};

/// The next period begins before the work, when it needs no memory: the work may fail for lack of
/// it, and then has its next turn.
void begin_period(const std::shared_ptr<PeriodicWork>& periodic) {
  periodic->loop->schedule_at(periodic->loop->clock().now() + periodic->period, [periodic] {
    begin_period(periodic);
    periodic->work();
  });
}

/// Does `work` periodically on `loop` from now on, until the loop stops.
void repeat(EventLoop& loop, Duration period, Executor::Task work) {
  auto periodic = std::make_shared<PeriodicWork>(&loop, period, std::move(work));
  loop.post([periodic = std::move(periodic)] { begin_period(periodic); });
}

/// How often expired sessions are removed.
Duration sweep_period(const SessionLimits& limits) {
  return std::clamp<Duration>(limits.expiry / 8, 100ms, std::chrono::seconds(30));
}
/// How often expired tasks are removed.
constexpr auto kTaskSweepPeriod = 1s;

LineServerOptions line_options(const ServerHostOptions& host) {
  LineServerOptions options;
  options.lines = {.max_line = host.max_message,
                   .output = host.http.output,
                   .line_timeout = host.http.request_timeout,
                   .end_timeout = host.end_timeout};
  options.connections = {.all = host.http.max_connections,
                         .per_client = host.http.max_connections_per_client,
                         .stands_for_many = host.http.stands_for_many};
  append_error(options.too_many, {},
               {kBusy, "The server is at its limit of connections; try again later", {}});
  options.too_many.push_back('\n');
  options.memory = host.http.memory;
  options.tick = host.http.tick;
  options.clock = host.http.clock;
  return options;
}

}  // namespace

/// The part of the server that belongs to one event loop. Created before the loops run, and
/// destroyed after they have stopped.
struct ServerHost::Loop {
  Loop(const RefPtr<LoopCatalog>& catalog, const AccessPolicy& policy, SessionRegistry& sessions,
       ClientQuota& calls, ChangeNotifier& changes, TaskStore& tasks, StreamManager& manager,
       std::vector<StreamShard> shards, std::size_t index, WorkerPool& parsers,
       WorkerPool& checkers, WorkerPool& writers, ClientMemory& memory,
       HttpEndpoint::Options options)
      : streams(&manager),
        access(policy),
        service(catalog, access, sessions, calls, changes, tasks, std::move(shards), index,
                &parsers, &checkers, &writers, &memory),
        lines(service, options.websocket.max_message),
        endpoint(service, std::move(options)) {}

  StreamManager* streams;
  AccessPolicy access;
  Service service;
  LineEndpoint lines;
  HttpEndpoint endpoint;
};

struct ServerHost::State {
  State(std::shared_ptr<const Catalog> catalog, ServerHostOptions& options)
      : first(std::move(catalog)),
        results(first->definition()),
        access(std::move(options.access)),
        policy(options.limits, options.stream_memory, options.streams_per_client, 0),
        sessions(options.sessions, clock),
        connection_memory(options.connection_memory),
        calls(options.calls_per_client),
        own_pool(options.loops == nullptr ? std::make_unique<LoopPool>(options.threads) : nullptr),
        pool(options.loops == nullptr ? *own_pool : *options.loops) {
    policy.max_streams = options.max_streams / pool.size() + 1;
  }

  std::shared_ptr<const Catalog> first;  // for what replace() does not change
  HandlerPools handler_pools;
  ResultWriter results;
  AccessPolicy access;
  SteadyClock clock;
  StreamPolicy policy;  // outlives everything that uses its memory
  SessionRegistry sessions;
  MemoryBudget connection_memory;
  ClientMemory client_buffers{connection_memory};
  ClientQuota calls;
  std::unique_ptr<LoopPool> own_pool;
  LoopPool& pool;
  // Each has two threads, so that one client alone does not keep others waiting.
  WorkerPool parsers{2, SIZE_MAX};   // of long messages
  WorkerPool checkers{2, SIZE_MAX};  // of long arguments
  WorkerPool writers{2, SIZE_MAX};   // of long results
  std::vector<std::unique_ptr<StreamManager>> managers;
  std::unique_ptr<ChangeNotifier> changes;
  std::unique_ptr<TaskStore> tasks;
  std::vector<std::unique_ptr<Loop>> loops;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<LineServer> lines;
  std::atomic<bool> draining = false;
  std::atomic<bool> sweeps_tasks = false;
  std::uint16_t port = 0;
  std::vector<std::string> urls;
  std::string line_place;
  bool stopped = false;

  [[nodiscard]] RefPtr<LoopCatalog> for_loop(std::shared_ptr<const Catalog> catalog,
                                             Executor& loop) const {
    return RefPtr(new LoopCatalog(std::move(catalog), results, loop));
  }
  void sweep_tasks_of(const ServerDefinition& definition) {
    if (!definition.has_tasks() || sweeps_tasks.exchange(true)) return;
    repeat(pool.loop(0), kTaskSweepPeriod, [this] { tasks->sweep(); });
  }

  Result<void> listen(const ListeningPlace& place) {
    HostPort at = place.at;
    const Result<std::uint16_t> bound = http->listen(at, place.tls);
    if (!bound) return std::unexpected(bound.error());
    at.port = *bound;
    if (urls.empty()) port = at.port;
    urls.push_back((place.tls == nullptr ? "http://" : "https://") + to_text(at));
    if (!access.authenticates()) {
      warn_of(at,
              "whoever reaches this address may use the server: give each client a key, or listen "
              "on 127.0.0.1");
    }
    return {};
  }
  Result<void> listen_for_lines(HostPort at) {
    const Result<std::uint16_t> bound = lines->listen(at);
    if (!bound) return std::unexpected(bound.error());
    at.port = *bound;
    line_place = to_text(at);
    warn_of(at,
            "whoever reaches this address may use the server, and nothing is encrypted: take lines "
            "on 127.0.0.1");
    return {};
  }
  /// Unless only this machine reaches it.
  static void warn_of(const HostPort& at, std::string_view what) {
    if (is_loopback_host(at.host)) return;
    log_warning(what, {{"address", std::string_view(at.host)}, {"port", std::int64_t{at.port}}});
  }

  /// The number of long messages that have not been handled, and of tasks that wait for a turn.
  [[nodiscard]] std::size_t unhandled() const {
    std::size_t total = 0;
    for (const auto& loop : loops) {
      total += loop->service.long_messages.under_way() + loop->streams->work().under_way();
    }
    return total;
  }
  /// The number of ended streams and of answers that wait only for their readers.
  [[nodiscard]] std::size_t unread() const {
    std::size_t total = sum(&StreamCounters::unread);
    for (const auto& loop : loops) total += loop->service.streams.waiting_answers();
    return total;
  }
  /// Changes when readers take some of what waits for them, and not when others get answers.
  [[nodiscard]] std::uint64_t reads() const {
    return sum(&StreamCounters::reads) + http->stats().unblocked + lines->stats().unblocked;
  }
  [[nodiscard]] std::uint64_t sum(std::atomic<std::uint64_t> StreamCounters::* counter) const {
    std::uint64_t total = 0;
    for (const auto& manager : managers) {
      total += (manager->counters().*counter).load(std::memory_order_relaxed);
    }
    return total;
  }
};

ServerHost::ServerHost(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ServerHost>> ServerHost::start(ServerDefinition definition,
                                                      ServerHostOptions options) {
  if (options.max_message > kMaxMessage) {
    return fail(1,
                "max_message (--max-body of sluice serve) may be at most 1 GiB: lengths within a "
                "message have 32 bits");
  }
  options.paths.streams = definition.has_streams;
  if (Result<void> checked = options.paths.check(); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  Result<std::shared_ptr<const Catalog>> catalog = Catalog::make(std::move(definition));
  if (!catalog) return std::unexpected(std::move(catalog.error()));
  auto state = std::make_unique<State>(std::move(*catalog), options);
  State& server = *state;
  const std::size_t count = server.pool.size();
  std::vector<StreamShard> shards;
  for (std::size_t i = 0; i < count; ++i) {
    server.managers.push_back(
        std::make_unique<StreamManager>(server.pool.loop(i), server.policy, i, count));
    shards.push_back({&server.pool.loop(i), server.managers[i].get()});
  }
  server.changes = std::make_unique<ChangeNotifier>(shards);
  server.tasks = std::make_unique<TaskStore>(options.tasks, server.clock, *server.changes);
  server.handler_pools.add(server.first->definition());
  std::unique_ptr<ServerHost> host(new ServerHost(std::move(state)));
  HttpEndpoint::Options endpoint;
  endpoint.websocket.max_message = options.max_message;
  endpoint.paths = std::move(options.paths);
  endpoint.metrics = [&server_host = *host] { return server_host.metrics(); };
  endpoint.sse_sessions = std::make_shared<SseSessions>(server.sessions);
  endpoint.not_ready = [&server] {
    if (server.draining.load(std::memory_order_relaxed)) return std::string("shutting down");
    const auto& not_ready = server.first->definition().not_ready;
    return not_ready ? not_ready() : std::string();
  };
  std::vector<HttpHandler*> handlers;
  std::vector<LineService*> line_services;
  for (std::size_t i = 0; i < count; ++i) {
    server.loops.push_back(std::make_unique<Loop>(
        server.for_loop(server.first, server.pool.loop(i)), server.access, server.sessions,
        server.calls, *server.changes, *server.tasks, *server.managers[i], shards, i,
        server.parsers, server.checkers, server.writers, server.client_buffers, endpoint));
    handlers.push_back(&server.loops[i]->endpoint);
    line_services.push_back(&server.loops[i]->lines);
  }
  options.http.max_body = options.max_message;
  options.http.memory = &server.connection_memory;
  options.http.stands_for_many = [&server](const PeerAddress& peer) {
    return server.access.trusts_proxy(peer);
  };
  server.http = std::make_unique<HttpServer>(server.pool.loops(), handlers, options.http);
  server.lines = std::make_unique<LineServer>(server.pool.loops(), std::move(line_services),
                                              line_options(options));
  for (const ListeningPlace& place : options.tcp) {
    if (Result<void> listens = server.listen(place); !listens) {
      return std::unexpected(std::move(listens.error()));
    }
  }
  if (options.lines) {
    if (Result<void> listens = server.listen_for_lines(*options.lines); !listens) {
      return std::unexpected(std::move(listens.error()));
    }
  }
  if (!options.unix_path.empty()) {
    if (Result<void> bound = server.lines->listen(options.unix_path, options.unix_mode); !bound) {
      return std::unexpected(std::move(bound.error()));
    }
  }
  if (server.sessions.enabled()) {
    repeat(server.pool.loop(0), sweep_period(server.sessions.limits()),
           [&sessions = server.sessions] { sessions.sweep(); });
  }
  server.sweep_tasks_of(server.first->definition());
  server.pool.start();
  return host;
}

ServerHost::~ServerHost() {
  state_->pool.stop();
  // Calls end before the connections that they use are destroyed, and queued tasks before the
  // objects that they refer to.
  for (const auto& loop : state_->loops) loop->service.dispatcher.end_calls(kShuttingDown);
  state_->http.reset();
  state_->lines.reset();
  for (const auto& manager : state_->managers) {
    manager->end_all(kShuttingDown);
    manager->work().clear();
  }
  state_->tasks->end_all_stopped(kShuttingDown);
  state_->pool.discard_tasks();
  state_->loops.clear();
}

std::uint16_t ServerHost::port() const {
  return state_->port;
}

const std::vector<std::string>& ServerHost::urls() const {
  return state_->urls;
}

const std::string& ServerHost::lines() const {
  return state_->line_place;
}

void ServerHost::serve_lines(Descriptor input, Descriptor output, Executor::Task ended) {
  state_->lines->adopt(std::move(input), std::move(output), std::move(ended));
}

void ServerHost::replace_authenticator(const std::shared_ptr<Authenticator>& authenticator) {
  for (std::size_t i = 0; i < state_->loops.size(); ++i) {
    state_->pool.loop(i).post([&access = state_->loops[i]->access, authenticator] {
      access.replace_authenticator(authenticator);
    });
  }
}

void ServerHost::replace_tls(const std::shared_ptr<TlsContext>& tls) {
  state_->http->replace_tls(tls);
}

LoopPool& ServerHost::loops() {
  return state_->pool;
}

Result<void> ServerHost::replace(ServerDefinition definition, std::vector<Change::Kind> told) {
  State& server = *state_;
  Result<std::shared_ptr<const Catalog>> catalog = Catalog::make(std::move(definition));
  if (!catalog) return std::unexpected(std::move(catalog.error()));
  server.sweep_tasks_of((*catalog)->definition());
  server.handler_pools.add((*catalog)->definition());
  const auto waiting = std::make_shared<std::atomic<std::size_t>>(server.loops.size());
  for (std::size_t i = 0; i < server.loops.size(); ++i) {
    server.pool.loop(i).post(
        [&dispatcher = server.loops[i]->service.dispatcher, &changes = *server.changes,
         next = server.for_loop(*catalog, server.pool.loop(i)), waiting, told] {
          dispatcher.take(next);
          if (waiting->fetch_sub(1) != 1) return;
          for (const Change::Kind kind : told) changes.publish({.kind = kind});
        });
  }
  return {};
}

void ServerHost::publish(const Change& change) {
  state_->changes->publish(change);
}

bool ServerHost::on_handler_thread() const {
  return state_->pool.on_loop_thread() || state_->handler_pools.on_worker_thread() ||
         state_->checkers.on_worker_thread() || state_->writers.on_worker_thread();
}

void ServerHost::shutdown(Duration deadline, const std::function<bool()>& hurry,
                          const std::function<void()>& last) {
  if (std::exchange(state_->stopped, true)) return;
  State& server = *state_;
  const TimePoint until = std::chrono::steady_clock::now() + at_most_forever(deadline);
  server.draining = true;
  // When a loop drains, it has handled what it had received before.
  const auto loops_serving = std::make_shared<std::atomic<std::size_t>>(server.loops.size());
  for (std::size_t i = 0; i < server.loops.size(); ++i) {
    server.pool.loop(i).post([&loop = *server.loops[i], loops_serving] {
      loop.service.streams.drain();
      loops_serving->fetch_sub(1);
    });
  }
  server.http->end_connections_with_replies();
  server.changes->close();
  const auto hurried = [&] { return hurry && hurry(); };
  TimePoint readers_until = until;
  // At the last check; empty until nothing is under way.
  std::optional<std::pair<std::size_t, std::uint64_t>> unread_and_reads;
  while (!hurried()) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (loops_serving->load() + server.sum(&StreamCounters::active) + server.tasks->running() +
            server.calls.in_use() + server.unhandled() ==
        0) {
      const std::pair now_there(server.unread(), server.reads());
      if (now_there.first == 0) break;
      if (std::exchange(unread_and_reads, now_there) != now_there) {
        readers_until = std::min(until, now + kReadGrace);
      }
    }
    if (now >= readers_until) break;
    std::this_thread::sleep_for(kDrainPoll);
  }
  server.tasks->end_all(kShuttingDown);
  for (std::size_t i = 0; i < server.loops.size(); ++i) {
    server.pool.loop(i).post([&loop = *server.loops[i]] {
      loop.service.dispatcher.end_calls(kShuttingDown);
      loop.streams->end_all(kShuttingDown);
    });
  }
  // Even in a hurry, the last chunks get some time to reach their readers before the connections
  // are closed.
  const TimePoint ends_until = std::chrono::steady_clock::now() + kReadGrace;
  TimePoint reached_until;
  std::optional<std::size_t> unended;
  do {
    const std::size_t now_there =
        server.sum(&StreamCounters::active) + server.sum(&StreamCounters::unread);
    if (now_there == 0) break;
    const TimePoint now = std::chrono::steady_clock::now();
    if (std::exchange(unended, now_there) != now_there) {
      reached_until = std::min(ends_until, now + kEndGrace);
    }
    std::this_thread::sleep_for(kDrainPoll);
  } while (std::chrono::steady_clock::now() < reached_until);
  // On the heap: the callback may come after the wait has been given up.
  struct Closed {
    std::mutex mutex;
    std::condition_variable condition;
    int servers = 0;
  };
  const auto closed = std::make_shared<Closed>();
  const auto done = [closed] {
    const std::lock_guard lock(closed->mutex);
    ++closed->servers;
    closed->condition.notify_all();
  };
  // A long answer may be sent until the deadline. A peer that has received everything only has to
  // close.
  const TimePoint closing_at = std::chrono::steady_clock::now();
  DrainLimits limits{.all = closing_at + kCloseGrace / 2, .quiet = closing_at + kCloseGrace / 2};
  if (!hurried()) limits.all = std::max(limits.all, until);
  server.http->shutdown(limits, done);
  server.lines->shutdown(limits, done);
  std::unique_lock lock(closed->mutex);
  const auto are_closed = [&] { return closed->servers == 2; };
  closed->condition.wait_for(lock, kCloseGrace, are_closed);
  while (!are_closed() && !hurried() &&
         std::chrono::steady_clock::now() < limits.all + kCloseGrace / 2) {
    closed->condition.wait_for(lock, kDrainPoll, are_closed);
  }
  lock.unlock();
  if (last) last();
  server.pool.stop();
}

std::string ServerHost::metrics() const {
  const State& server = *state_;
  std::string out;
  out.reserve(4096);
  const HttpServerStats http = server.http->stats();
  append_metric(out, "sluice_connections", "gauge", "Open connections.", http.connections);
  append_metric(out, "sluice_connections_parked", "gauge",
                "Open connections that are idle and hold no buffers.", http.parked);
  append_metric(out, "sluice_websockets", "gauge", "Open WebSocket connections.", http.websockets);
  append_metric(out, "sluice_streaming_replies", "gauge", "HTTP replies being streamed.",
                http.streaming_replies);
  append_metric(out, "sluice_output_queued_bytes", "gauge", "Output waiting for slow peers.",
                http.queued_bytes);
  append_metric(out, "sluice_connections_total", "counter", "Connections accepted.",
                http.connections_total);
  append_metric(out, "sluice_connections_rejected_total", "counter",
                "Connections refused at the limit.", http.connections_rejected);
  append_metric(out, "sluice_requests_total", "counter", "HTTP requests.", http.requests_total);
  append_metric(out, "sluice_received_bytes_total", "counter", "Bytes received.", http.bytes_in);
  append_metric(out, "sluice_sent_bytes_total", "counter", "Bytes sent.", http.bytes_out);
  append_metric(out, "sluice_timeouts_total", "counter", "Connections closed by a timeout.",
                http.timeouts);
  append_metric(out, "sluice_connections_stalled_total", "counter",
                "Connections dropped because their peer did not read.", http.stalled);
  out.append("# HELP sluice_responses_total HTTP replies by status class.\n");
  out.append("# TYPE sluice_responses_total counter\n");
  for (std::size_t i = 0; i < std::size(http.responses); ++i) {
    out.append("sluice_responses_total{class=\"").append(std::to_string(i + 1)).append("xx\"} ");
    append_number(out, http.responses[i]);
    out.push_back('\n');
  }
  append_metric(out, "sluice_buffer_memory_bytes", "gauge",
                "Memory of what has been received in part or waits to be sent.",
                server.connection_memory.used());
  append_metric(out, "sluice_buffer_memory_limit_bytes", "gauge", "Memory buffers may hold.",
                server.connection_memory.limit());
  const LineServerStats lines = server.lines->stats();
  append_metric(out, "sluice_line_connections", "gauge",
                "Open connections of lines: stdio, Unix domain sockets and TCP.",
                lines.connections);
  append_metric(out, "sluice_line_output_queued_bytes", "gauge",
                "Output waiting for their slow peers.", lines.queued_bytes);
  append_metric(out, "sluice_line_connections_total", "counter", "Connections of lines begun.",
                lines.connections_total);
  append_metric(out, "sluice_line_connections_rejected_total", "counter",
                "Connections of lines refused at the limit.", lines.connections_rejected);
  append_metric(out, "sluice_lines_total", "counter", "Lines received.", lines.lines_total);
  append_metric(out, "sluice_line_timeouts_total", "counter",
                "Connections of lines closed by a timeout.", lines.timeouts);
  append_metric(out, "sluice_line_connections_stalled_total", "counter",
                "Connections of lines dropped because their peer did not read.", lines.stalled);
  for (const Gauge& gauge : kStreamGauges) {
    append_metric(out, gauge.name, "gauge", gauge.help, server.sum(gauge.value));
  }
  for (const Gauge& total : kStreamTotals) {
    append_metric(out, total.name, "counter", total.help, server.sum(total.value));
  }
  append_metric(out, "sluice_sessions", "gauge", "Sessions of the session eras.",
                server.sessions.size());
  append_metric(out, "sluice_sessions_displaced_total", "counter",
                "Sessions that have made room for others at a limit.", server.sessions.displaced());
  append_metric(out, "sluice_tasks", "gauge", "Tasks held, ended ones included.",
                server.tasks->size());
  append_metric(out, "sluice_tasks_running", "gauge", "Tasks that have not ended.",
                server.tasks->running());
  append_metric(out, "sluice_stream_memory_bytes", "gauge", "Memory held for chunks.",
                server.policy.budget.used());
  append_metric(out, "sluice_stream_memory_limit_bytes", "gauge", "Memory chunks may hold.",
                server.policy.budget.limit());
  if (const auto& more = server.first->definition().metrics) out.append(more());
  return out;
}

}  // namespace sluice
