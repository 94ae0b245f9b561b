#include "net/connection/connection_server.hpp"

#include <utility>

#include "net/connection/drain_watch.hpp"

namespace sluice {

void ConnectionServer::add_worker(std::unique_ptr<ConnectionWorker> worker) {
  worker->join(workers_, static_cast<std::uint16_t>(workers_.size()));
  workers_.push_back(std::move(worker));
}

ConnectionWorker& ConnectionServer::next_worker() {
  const std::size_t index = next_worker_;
  next_worker_ = (next_worker_ + 1) % workers_.size();
  return *workers_[index];
}

void ConnectionServer::accept_from(Descriptor socket, Acceptor::Sink sink) {
  if (is_stopping_) return;
  acceptors_.push_back(
      std::make_unique<Acceptor>(home_, std::move(socket), std::move(sink), accept_errors_));
}

void ConnectionServer::shutdown(DrainLimits limits, Executor::Task stopped, Executor::Task done) {
  home_.post([this, limits, stopped = std::move(stopped), done = std::move(done)]() mutable {
    is_stopping_ = true;
    acceptors_.clear();
    if (stopped) stopped();
    for (const auto& worker : workers_) {
      worker->loop.post([&drained = *worker] { drained.drain(); });
    }
    watch_drain(
        home_, *connections_, limits,
        [this](bool all) {
          for (const auto& worker : workers_) {
            worker->loop.post([&dropped = *worker, all] {
              if (all) {
                dropped.drop_all();
              } else {
                dropped.drop_quiet();
              }
            });
          }
        },
        std::move(done));
  });
}

}  // namespace sluice
