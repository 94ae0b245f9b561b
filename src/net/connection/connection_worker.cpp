#include "net/connection/connection_worker.hpp"

#include <algorithm>
#include <utility>

#include "core/sharing/client_turns.hpp"
#include "net/connection/connection.hpp"

namespace sluice {

ConnectionWorker::ConnectionWorker(Executor& executor, EventLoop* event_loop,
                                   const Options& options)
    : loop(executor),
      sockets(event_loop),
      memory(options.memory),
      nobodys_memory(memory == nullptr ? nullptr : std::make_shared<MemoryShare>(*memory)),
      work_(options.work),
      tick_every_(options.tick),
      clock_(options.clock != nullptr ? options.clock : &executor.clock()),
      work_left_(work_.turn),
      coarse_now_(clock_->now()) {}

ConnectionWorker::~ConnectionWorker() {
  loop.cancel(tick_timer_);
  drop_all();
  loop.forget(*this);
}

void ConnectionWorker::join(const Workers& workers, std::uint16_t number) {
  workers_ = &workers;
  number_ = number;
  if (!workers.empty()) nobodys_memory = workers.front()->nobodys_memory;
}

void ConnectionWorker::add(Connection& connection) {
  connection.next_ = connections_;
  if (connections_ != nullptr) connections_->previous_ = &connection;
  connections_ = &connection;
  // The list's reference; remove() gives it back.
  connection.add_reference();
  ServerCounters::add(counters.connections);
  if (tick_timer_ == 0) schedule_tick();
}

void ConnectionWorker::remove(Connection& connection) {
  unlist(connection);
  connection.release_reference();
}

void ConnectionWorker::unlist(Connection& connection) {
  if (connection.previous_ != nullptr) connection.previous_->next_ = connection.next_;
  if (connection.next_ != nullptr) connection.next_->previous_ = connection.previous_;
  if (connections_ == &connection) connections_ = connection.next_;
  connection.previous_ = nullptr;
  connection.next_ = nullptr;
  ServerCounters::subtract(counters.connections);
}

void ConnectionWorker::give(Connection& connection, std::uint16_t worker) {
  ConnectionWorker& taker = *(*workers_)[worker];
  const RefPtr<Connection> given(&connection);
  remove(connection);
  try {
    taker.loop.post([&taker, given] {
      taker.note_time();
      given->arrive(taker);
    });
  } catch (...) {
    // It stays with this worker, which tears it down.
    add(connection);
    throw;
  }
}

std::uint16_t ConnectionWorker::number_of(const Executor& its_loop) const {
  if (workers_ == nullptr) return kNone;
  for (const auto& worker : *workers_) {
    if (&worker->loop == &its_loop) return worker->number_;
  }
  return kNone;
}

void ConnectionWorker::schedule_tick() {
  tick_timer_ = loop.schedule_at(loop.clock().now() + tick_every_, [this] { tick(); });
}

void ConnectionWorker::tick() {
  tick_timer_ = 0;
  note_time();
  std::uint64_t queued = 0;
  for (Connection* c = connections_; c != nullptr; c = c->next_) {
    queued += c->queued_bytes();
    c->tick(coarse_now_);
  }
  counters.queued_bytes.store(queued, std::memory_order_relaxed);
  if (connections_ != nullptr) schedule_tick();
}

void ConnectionWorker::drain() {
  draining_ = true;
  for (Connection* c = connections_; c != nullptr; c = c->next_) c->drain();
}

void ConnectionWorker::drop_all() {
  while (connections_ != nullptr) connections_->tear_down();
}

void ConnectionWorker::drop_quiet() {
  std::vector<RefPtr<Connection>> quiet;
  for (Connection* c = connections_; c != nullptr; c = c->next_) {
    if (c->queued_bytes() == 0) quiet.emplace_back(c);
  }
  for (const RefPtr<Connection>& connection : quiet) connection->tear_down();
}

void ConnectionWorker::release_later(Executor::Task task) {
  released_.push_back(std::move(task));
  loop.at_turn_end(*this);
}

void ConnectionWorker::worked(std::size_t cost) {
  work_left_ -= std::min(cost, work_left_);
  loop.at_turn_end(*this);
}

void ConnectionWorker::begin_step() {
  if (step_begun_) return;
  step_begun_ = loop.clock().now();
  loop.at_turn_end(*this);
}

Duration ConnectionWorker::end_step() {
  if (!step_begun_) return {};
  const TimePoint now = loop.clock().now();
  return now - *std::exchange(step_begun_, now);
}

void ConnectionWorker::wait_for_turn(Connection& connection) {
  Turns& turns = connection.is_established() ? waiting_ : newcomers_;
  Client client;
  if (connection.is_charged()) {
    client.of = connection.memory().get();
  } else if (connection.awaits_client()) {
    client.of = &connection;
  } else {
    client.network = connection.peer().network();
  }
  turns.waiting[client].emplace_back(&connection);
  ++turns.count;
  loop.at_turn_end(*this);
}

/// Lets waiting connections continue while there is work left. One that uses up its share before it
/// is done waits again.
void ConnectionWorker::go_on(Turns& turns) {
  for (std::size_t count = turns.count; count > 0 && has_work_left(); --count) {
    const auto turn = next_turn(turns.waiting, turns.last, [](const auto&) { return true; });
    turns.last = turn->first;
    const RefPtr<Connection> next = std::move(turn->second.front());
    turn->second.pop_front();
    --turns.count;
    if (turn->second.empty()) turns.waiting.erase(turn);
    next->go_on();
  }
}

void ConnectionWorker::on_turn_end() {
  work_left_ = work_.turn;
  interrupt_steps();
  go_on(waiting_);
  // At least one of them continues, however busy the others are.
  work_left_ = std::max<std::size_t>(work_left_, 1);
  go_on(newcomers_);
  interrupt_steps();
  if (!waiting_.waiting.empty() || !newcomers_.waiting.empty()) loop.at_turn_end(*this);
  // Destroying them may release more.
  const std::vector<Executor::Task> gone = std::exchange(released_, {});
}

}  // namespace sluice
