#include "net/line_connection.hpp"

#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <system_error>
#include <utility>

namespace sluice {

LineWorker::LineWorker(EventLoop& event_loop, Duration tick, const Clock* clock,
                       MemoryBudget* memory)
    : loop(event_loop),
      buffers(memory),
      tick_every_(tick),
      clock_(clock != nullptr ? clock : &event_loop.clock()) {}

LineWorker::~LineWorker() {
  loop.cancel(tick_timer_);
  drop_all();
}

void LineWorker::add(LineConnection& connection) {
  connection.next_ = connections_;
  if (connections_ != nullptr) connections_->previous_ = &connection;
  connections_ = &connection;
  connection.add_reference();
  Counters::add(counters.connections, 1);
  Counters::add(counters.connections_total, 1);
  if (tick_timer_ == 0) schedule_tick();
}

void LineWorker::remove(LineConnection& connection) {
  if (connection.previous_ != nullptr) connection.previous_->next_ = connection.next_;
  if (connection.next_ != nullptr) connection.next_->previous_ = connection.previous_;
  if (connections_ == &connection) connections_ = connection.next_;
  connection.previous_ = nullptr;
  connection.next_ = nullptr;
  counters.connections.fetch_sub(1, std::memory_order_relaxed);
  connection.release_reference();
}

void LineWorker::schedule_tick() {
  tick_timer_ = loop.schedule_at(loop.clock().now() + tick_every_, [this] { tick(); });
}

void LineWorker::tick() {
  tick_timer_ = 0;
  const TimePoint time = now();
  std::uint64_t queued = 0;
  for (LineConnection* c = connections_; c != nullptr; c = c->next_) {
    queued += c->queued_bytes();
    c->tick(time);
  }
  counters.queued_bytes.store(queued, std::memory_order_relaxed);
  if (connections_ != nullptr) schedule_tick();
}

void LineWorker::drain() {
  draining_ = true;
  for (LineConnection* c = connections_; c != nullptr; c = c->next_) c->drain();
}

void LineWorker::drop_all() {
  while (connections_ != nullptr) connections_->tear_down();
}

LineConnection::LineConnection(LineWorker& worker, Descriptor input, Descriptor output,
                               const LineOptions& options, Executor::Task ended)
    : LineSession(worker.buffers, options),
      worker_(&worker),
      in_(std::move(input)),
      out_(std::move(output)),
      source_(in_.get()),
      sink_(out_ ? out_.get() : in_.get()),
      input_side_(*this, true, !out_),
      output_side_(*this, false, true),
      ended_(std::move(ended)),
      progress_at_(worker.now()) {}

void LineConnection::start(std::unique_ptr<LineHandler> handler) {
  const RefPtr<LineConnection> keep(this);
  open(std::move(handler));
  worker_->add(*this);
  try {
    watch(in_, input_side_);
    if (out_) watch(out_, output_side_);
  } catch (const std::system_error&) {
    give_up();
    return;
  }
  if (worker_->draining_) {
    drain();
  } else {
    input_wanted();
  }
}

void LineConnection::watch(const Descriptor& descriptor, Side& side) {
  try {
    worker_->loop.watch(descriptor.get(), side);
  } catch (const std::system_error& error) {
    // epoll's way to say that this is always ready.
    if (error.code().value() != EPERM) throw;
  }
}

// --- input -------------------------------------------------------------------------------------

void LineConnection::on_ready(std::uint32_t events, bool reads, bool writes) {
  const bool has_gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (writes && has_gone) {
    peer_gone();
  } else if (writes && (events & EPOLLOUT) != 0 && std::exchange(writing_, false)) {
    flush();
    output_changed();
  }
  if (!reads || is_over()) return;
  if (has_gone || (events & (EPOLLIN | EPOLLRDHUP)) != 0) is_readable_ = true;
  read_now();
}

/// Nobody reads what we say. What the peer of a socket has said before it went still counts; a
/// process whose output is gone has no reason to go on.
void LineConnection::peer_gone() {
  writing_ = false;
  if (out_) {
    give_up();
  } else {
    lose_output();
  }
}

/// Reads what there is.
void LineConnection::read_now() {
  for (int round = 0; is_readable_ && wants_input(); ++round) {
    if (round == kReadsInARow) {
      input_wanted();
      return;
    }
    const std::span<char> room = worker_->buffers.scratch();
    const IoResult result = source_.read(room);
    const std::uint64_t lines_before = lines();
    if (result.status == IoStatus::ok) {
      feed({room.data(), result.bytes});
      if (lines() != lines_before || line_at_ == TimePoint{}) line_at_ = worker_->now();
      if (!in_line()) line_at_ = {};
    } else if (result.status == IoStatus::want_read) {
      is_readable_ = false;
    } else {
      is_readable_ = false;
      ended_at_ = worker_->now();
      end_input();
    }
    LineWorker::Counters::add(worker_->counters.lines_total, lines() - lines_before);
  }
}

void LineConnection::input_wanted() {
  resume_ = true;
  output_changed();
}

void LineConnection::drain() {
  if (end_told()) return;
  is_readable_ = false;
  ended_at_ = worker_->now();
  refuse_input();
}

// --- output ------------------------------------------------------------------------------------

void LineConnection::on_turn_end() {
  const RefPtr<LineConnection> keep(this);
  flush();
  output_left();
  if (!is_over() && std::exchange(resume_, false)) {
    process();
    read_now();
  }
  // Nothing of this connection is on the stack here.
  if (is_doomed()) tear_down();
}

void LineConnection::flush() {
  while (!is_over() && !writing_ && !output().empty()) {
    std::array<iovec, kWritevParts> parts;
    std::size_t offered = 0;
    const std::size_t count = output().gather(parts, offered);
    const IoResult result = sink_.write({parts.data(), count});
    if (result.status == IoStatus::ok) {
      progress_at_ = worker_->now();
      output().consume(result.bytes);
    } else if (result.status == IoStatus::want_write) {
      // The kernel tells by itself when there is room again.
      writing_ = true;
      progress_at_ = worker_->now();
      unacknowledged_ = sink_.unacknowledged();
    } else {
      peer_gone();
    }
  }
  output().added();
  if (output().is_over_budget() && !output().empty()) {
    LineWorker::Counters::add(worker_->counters.stalled, 1);
    give_up();
  }
}

/// Whether the peer has taken nothing for as long as it may. What it takes from a large buffer of
/// the kernel does not make the socket writable soon.
bool LineConnection::is_stalled(TimePoint now) {
  const Duration timeout = options().stall_timeout;
  if (!writing_ || timeout == Duration{} || now - progress_at_ < timeout) return false;
  const std::size_t before = std::exchange(unacknowledged_, sink_.unacknowledged());
  if (unacknowledged_ >= before) return true;
  progress_at_ = now;
  return false;
}

// --- life --------------------------------------------------------------------------------------

void LineConnection::tick(TimePoint now) {
  const auto is_late = [now](TimePoint since, Duration timeout) {
    return timeout != Duration{} && now - since >= timeout;
  };
  if (is_stalled(now)) {
    LineWorker::Counters::add(worker_->counters.stalled, 1);
    give_up();
  } else if ((line_at_ != TimePoint{} && in_line() && is_late(line_at_, options().line_timeout)) ||
             (end_told() && is_late(ended_at_, options().end_timeout))) {
    LineWorker::Counters::add(worker_->counters.timeouts, 1);
    give_up();
  }
}

void LineConnection::dropped() {
  worker_->loop.forget(*this);
  worker_->loop.unwatch(in_.get(), input_side_);
  if (out_) worker_->loop.unwatch(out_.get(), output_side_);
  in_.close();
  out_.close();
  if (ended_) worker_->loop.post(std::exchange(ended_, {}));
  worker_->remove(*this);
}

}  // namespace sluice
