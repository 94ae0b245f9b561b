#include "server/testing/in_memory_server.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/host/server_host.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/error.hpp"

namespace sluice::testing {
namespace {

const ServerHostOptions& limits() {
  static const ServerHostOptions defaults;
  return defaults;
}

}  // namespace

Result<std::unique_ptr<InMemoryServer>> InMemoryServer::start(ServerDefinition definition) {
  Result<std::shared_ptr<const Catalog>> catalog = Catalog::make(std::move(definition));
  if (!catalog) return std::unexpected(std::move(catalog.error()));
  return std::unique_ptr<InMemoryServer>(new InMemoryServer(std::move(*catalog)));
}

InMemoryServer::InMemoryServer(std::shared_ptr<const Catalog> catalog)
    : first_(std::move(catalog)),
      results_(first_->definition()),
      access_({}),
      policy_(limits().limits, limits().stream_memory, limits().streams_per_client,
              limits().max_streams),
      calls_(limits().calls_per_client),
      sessions_(limits().sessions, loop_.clock()),
      streams_(loop_, policy_, 0, 1),
      changes_(std::vector<StreamShard>{{&loop_, &streams_}}),
      tasks_(limits().tasks, loop_.clock(), changes_) {
  // Handlers may compare a deadline with the real time.
  loop_.advance(std::chrono::steady_clock::now() - loop_.clock().now());
  handler_pools_.add(first_->definition());
  service_.emplace(RefPtr(new LoopCatalog(first_, results_, loop_)), access_, sessions_, calls_,
                   changes_, tasks_, std::vector<StreamShard>{{&loop_, &streams_}}, std::size_t{0});
}

InMemoryServer::~InMemoryServer() {
  const Error gone{kBusy, "The server is shutting down", {}};
  loop_.run();
  service_->dispatcher.end_calls(gone);
  streams_.end_all(gone);
  tasks_.end_all_stopped(gone);
  loop_.run();
  service_.reset();
  loop_.run();  // destroys the coroutines that still waited
}

bool InMemoryServer::has_workers_busy() const {
  return handler_pools_.is_busy();
}

void InMemoryServer::advance(Duration time) {
  loop_.advance(time);
  sessions_.sweep();
  tasks_.sweep();
  loop_.run();
}

Result<void> InMemoryServer::replace(ServerDefinition definition, std::vector<Change::Kind> told) {
  Result<std::shared_ptr<const Catalog>> catalog = Catalog::make(std::move(definition));
  if (!catalog) return std::unexpected(std::move(catalog.error()));
  handler_pools_.add((*catalog)->definition());
  loop_.post([this, next = RefPtr(new LoopCatalog(std::move(*catalog), results_, loop_)), told] {
    service_->dispatcher.take(next);
    for (const Change::Kind kind : told) changes_.publish({.kind = kind});
  });
  return {};
}

void InMemoryServer::publish(const Change& change) {
  changes_.publish(change);
}

}  // namespace sluice::testing
