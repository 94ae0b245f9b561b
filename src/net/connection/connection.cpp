#include "net/connection/connection.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLinger = 2s;
/// If handling one unit of input takes this long, its time is counted as work.
constexpr Duration kLongStep = 100us;
/// What sending to a peer that takes more costs, in units of work: each time, and for each so many
/// bytes.
constexpr std::size_t kSendCost = 1024;
constexpr std::size_t kSentBytes = 4;

}  // namespace

Connection::Connection(ConnectionWorker& worker, const PeerAddress& peer,
                       const OutputLimits& limits, bool is_tls)
    : worker_(&worker),
      output_(limits),
      active_at_(worker.coarse_now()),
      progress_at_(active_at_),
      peer_(peer),
      is_tls_(is_tls) {}

void Connection::start(ConnectionProtocolPtr protocol) {
  ServerCounters::add(worker_->counters.connections_total);
  protocol_ = std::move(protocol);
  arrive(*worker_);
}

// --- input -------------------------------------------------------------------------------------

template <class Step>
void Connection::guarded(const Step& step) noexcept {
  const RefPtr<Connection> keep(this);
  try {
    step();
  } catch (...) {
    processing_ = false;
    give_up();
    static LogLimit limit;
    log_exception(limit, "A connection was given up");
  }
}

void Connection::on_ready(unsigned readiness) {
  guarded([this, readiness] { be_ready(readiness); });
}

void Connection::be_ready(unsigned readiness) {
  if (!waiting_) worked_ = 0;
  if ((readiness & (kReadable | kInputEnd | kGone)) != 0) is_readable_ = true;
  if ((readiness & (kInputEnd | kGone)) != 0) is_at_end_ = true;
  if ((readiness & kGone) != 0) has_gone_ = true;
  if (has_gone_ && protocol_->outlives_output()) lose_output();
  if (writing_ && (readiness & (kWritable | kGone)) != 0) {
    writing_ = false;
    ServerCounters::add(worker_->counters.unblocked);
    send_more();
    // A TLS read may have waited for this.
    if (is_tls_) is_readable_ = true;
  }
  if (is_readable_) read_now();
}

bool Connection::may_read() const {
  if (input_ended_ || is_over() || state_ == State::flushing) return false;
  return state_ == State::lingering || protocol_->wants_input(input_);
}

bool Connection::may_work() const {
  return !waiting_ && worked_ < worker_->work().connection && worker_->has_work_left();
}

void Connection::worked(std::size_t cost) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  worked_ = static_cast<std::uint32_t>(std::min(worked_ + std::min(cost, kMost), kMost));
  worker_->worked(cost);
}

void Connection::end_step() {
  // What is asked in few bytes may take long to answer.
  const Duration took = worker_->end_step();
  if (took >= kLongStep) worked(static_cast<std::size_t>(took / kCostTime));
}

/// Reads what there is.
void Connection::read_now() {
  if (awaits_client_ && output_.empty()) memory_ = nullptr;
  int round = 0;
  for (; round < kReadsInARow && is_readable_ && may_read(); ++round) {
    if (!may_work()) {
      wait_for_turn();
      break;
    }
    const std::span<char> buffer = input_.writable_space(source());
    if (buffer.empty()) {
      lose_input();
      break;
    }
    const IoResult result = read_some(buffer);
    if (result.status == IoStatus::want_read) is_readable_ = false;
    if (result.bytes > 0) {
      input_.commit(result.bytes);
      on_bytes_read(result.bytes);
    }
    if (result.status == IoStatus::want_write) {
      is_readable_ = false;
      wait_writable();
    } else if (result.status == IoStatus::closed || result.status == IoStatus::failed) {
      is_readable_ = false;
      end_input(result.status == IoStatus::failed);
    }
  }
  // What the peer sent before it went is still handled, as long as input is read.
  if (has_gone_ && !may_read()) lose_output();
  if (is_over()) return;
  settle_input();
  // A TLS write may have waited for what has just been read.
  if (is_tls_ && !output_.empty()) flush();
  if (round == kReadsInARow && is_readable_) resume_later();
}

void Connection::on_bytes_read(std::size_t bytes) {
  ServerCounters::add(worker_->counters.bytes_in, bytes);
  if (state_ != State::lingering) {
    active_at_ = worker_->coarse_now();
    process();
  }
  if (!is_open()) input_.clear();
  // Counted after the bytes are handled: to keep them for a later turn would take memory.
  worked(bytes);
}

bool Connection::has_input() const {
  return !input_.empty() || protocol_->holds_input();
}

void Connection::process() {
  if (std::exchange(processing_, true)) return;
  while (is_open() && !output_.is_full() && has_input()) {
    if (!may_work()) {
      wait_for_turn();
      break;
    }
    worker_->begin_step();
    const bool has_more = protocol_->on_input(input_);
    end_step();
    if (!has_more) break;
  }
  processing_ = false;
}

/// Handles what is there, then reads what has come.
void Connection::take_input() {
  worked_ = 0;
  process();
  if (is_readable_) {
    read_now();
  } else if (!is_over()) {
    settle_input();
  }
}

void Connection::wait_for_turn() {
  // What comes next has nothing to do with the client before, once all is sent.
  if (awaits_client_ && output_.empty()) memory_ = nullptr;
  if (!std::exchange(waiting_, true)) worker_->wait_for_turn(*this);
}

/// Its turn has come.
void Connection::go_on() {
  waiting_ = false;
  resume_ = true;
  if (is_over()) return;
  ConnectionWorker& worker = *worker_;
  const std::size_t waited = queued_bytes();
  on_turn_end();
  // Counted now, so that input is handled too.
  if (waited > 0) worker.worked(kSendCost + waited / kSentBytes);
}

/// Keeps what is left of the input, between events.
void Connection::settle_input() {
  if (!input_.settle(source())) lose_input();
  count_memory();
}

void Connection::lose_input() {
  protocol_->on_no_memory();
  input_.clear();
}

void Connection::end_input(bool has_failed) {
  input_ended_ = true;
  if (state_ == State::lingering || (has_failed && !protocol_->outlives_output())) {
    give_up();
  } else {
    // What arrived before may not have been handled.
    resume_later();
  }
}

void Connection::resume_later() {
  // If process() is running, it continues by itself.
  if (processing_ || is_over() || !(has_input() || is_readable_ || input_ended_)) return;
  resume_ = true;
  worker_->loop.at_turn_end(*this);
}

void Connection::switch_to(ConnectionProtocolPtr protocol) {
  protocol_before_ = std::exchange(protocol_, std::move(protocol));
  worker_->loop.at_turn_end(*this);
}

// --- output ------------------------------------------------------------------------------------

void Connection::on_turn_end() {
  bool has_moved = false;
  guarded([&] { has_moved = end_turn(); });
  // If it has moved, it may belong to another loop already.
  if (has_moved || state_ != State::doomed) return;
  if (worker_->has_work_left()) {
    tear_down();
  } else {
    worker_->loop.at_turn_end(*this);
  }
}

/// Returns true if the connection has moved to another worker, whose loop may already use it.
bool Connection::end_turn() {
  // Nothing of this connection is on the stack here.
  protocol_before_ = nullptr;
  flush();
  notify_drain();
  if (next_worker_ != ConnectionWorker::kNone && move()) return true;
  if (!is_over() && !waiting_ && std::exchange(resume_, false)) take_input();
  if (input_ended_ && is_open() && !waiting_ && !(output_.is_full() && has_input())) {
    protocol_->on_input_end();
  }
  return false;
}

bool Connection::may_send() {
  if (is_over() || output_lost_) return false;
  if (output_.has_capacity()) return true;
  // What was added in this turn has not been offered to the peer yet.
  flush();
  if (!is_over() && !output_.has_capacity()) give_up_unread();
  return !is_over() && !output_lost_;
}

void Connection::note_timeout(std::string_view what) {
  static LogLimit limit;
  ServerCounters::add(worker_->counters.timeouts);
  if (const auto left_out = limit.take()) {
    log_warning("a peer took too long",
                {{"for", what}, {"peer", peer_.to_string()}, {"left_out", *left_out}});
  }
}

void Connection::give_up_unread(std::string_view why) {
  static LogLimit limit;
  ServerCounters::add(worker_->counters.stalled);
  if (const auto left_out = limit.take()) {
    log_warning(why, {{"peer", peer_.to_string()}, {"left_out", *left_out}});
  }
  give_up();
}

bool Connection::added() {
  worker_->loop.at_turn_end(*this);
  return output_.added(source());
}

void Connection::queue(const Bytes& bytes, std::size_t offset, std::size_t size) {
  if (size <= kCopiedBlock && !writing_) {
    output().append(bytes.view().substr(offset, size));
  } else {
    output_.share(worker_->buffers, bytes, offset, size);
  }
}

Duration Connection::stalled_for() const {
  return writing_ ? worker_->now() - progress_at_ : Duration{};
}

void Connection::send_added() {
  output_.note_message();
  flush();
}

void Connection::flush() {
  if (is_over()) return;
  output_.drop_unfinished();
  while (!writing_ && !output_.empty()) {
    if (!send_some()) break;
  }
  if (is_over()) return;
  output_.added(source());
  if (!output_.empty()) {
    if (output_.is_over_share()) {
      give_up_unread("a client's share of http.max_total_buffers has no room for what it is sent");
    }
    return;
  }
  if (output_.is_full()) worker_->loop.at_turn_end(*this);
  if (state_ == State::flushing) linger();
}

/// Sends once. Returns false if the peer accepts no more.
bool Connection::send_some() {
  std::array<iovec, kWritevParts> parts;
  std::size_t offered = 0;
  const std::size_t count = output_.gather(parts, offered);
  const IoResult result = write_some({parts.data(), count});
  if (result.bytes > 0) {
    ServerCounters::add(worker_->counters.bytes_out, result.bytes);
    progress_at_ = worker_->coarse_now();
    output_.consume(source(), result.bytes);
  }
  switch (result.status) {
    case IoStatus::ok:
      return true;
    case IoStatus::want_write:
      wait_writable();
      return false;
    case IoStatus::want_read:
      return false;  // TLS: on_ready() continues
    case IoStatus::closed:
    case IoStatus::failed:
      lose_output();
      return false;
  }
  return false;
}

bool Connection::send_now(std::string_view bytes) {
  if (!may_send()) return !is_over();
  // Bytes that TLS could not send must be offered to it again at the same address.
  if (!is_open() || writing_ || !output_.empty() || is_tls_) {
    output().append(bytes);
    send_added();
    return !output_.is_full();
  }
  const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  const IoResult result = write_some({&part, 1});
  if (result.status == IoStatus::failed) {
    lose_output();
    return true;
  }
  ServerCounters::add(worker_->counters.bytes_out, result.bytes);
  progress_at_ = worker_->coarse_now();
  if (result.bytes == bytes.size()) return true;
  try {
    output().append(bytes.substr(result.bytes));
  } catch (const std::bad_alloc&) {
    // The peer has received only a part of the message.
    give_up();
    return true;
  }
  if (result.status == IoStatus::want_write) wait_writable();
  return added();
}

/// on_ready() is called when the peer can accept more.
void Connection::wait_writable() {
  if (std::exchange(writing_, true)) return;
  progress_at_ = worker_->coarse_now();
  unacknowledged_ = unacknowledged();
}

/// The peer accepts no more output.
void Connection::lose_output() {
  if (is_over() || output_lost_) return;
  if (!is_open() || !protocol_->outlives_output()) {
    give_up();
    return;
  }
  output_lost_ = true;
  writing_ = false;
  output_.clear(worker_->buffers);
  worker_->loop.at_turn_end(*this);
}

/// Whether the peer has taken nothing for the stall timeout. Checks the kernel's buffer too: a peer
/// may read from a large one for long before the socket becomes writable.
bool Connection::is_stalled(TimePoint now) {
  const Duration timeout = output_.limits().stall_timeout;
  if (timeout == Duration{} || (!writing_ && state_ != State::flushing)) return false;
  if (now - progress_at_ < timeout) return false;
  const std::uint32_t before = std::exchange(unacknowledged_, unacknowledged());
  if (unacknowledged_ >= before) return true;
  progress_at_ = now;
  return false;
}

/// Sends what the peer did not take before, now or in this connection's turn. Many peers may take
/// much at the same time.
void Connection::send_more() {
  if (!worker_->has_work_left()) {
    wait_for_turn();
    return;
  }
  const std::size_t waited = queued_bytes();
  flush();
  notify_drain();
  worker_->worked(kSendCost + (waited + queued_bytes()) / kSentBytes);
  worker_->interrupt_steps();
}

/// Input and senders both waited for the peer to read. They take turns to go first, because either
/// may fill the output again.
void Connection::notify_drain() {
  if (!is_open() || !output_.is_drained()) return;
  input_first_ = !input_first_;
  if (!input_first_) {
    resume_later();
  } else if (!waiting_) {
    take_input();
    if (!is_open() || output_.is_full()) return;
  }
  protocol_->on_drain();
}

void Connection::close_after_flush() {
  if (!is_open()) return;
  state_ = State::flushing;
  flush();
}

void Connection::linger() {
  if (!end_output() || input_ended_) {
    give_up();
    return;
  }
  state_ = State::lingering;
  active_at_ = worker_->coarse_now();
  if (is_readable_) resume_later();
}

// --- life --------------------------------------------------------------------------------------

void Connection::tick(TimePoint now) {
  if (is_over()) return;
  if (state_ == State::lingering) {
    if (now - active_at_ >= kLinger) give_up();
  } else if (is_stalled(now)) {
    give_up_unread();
  } else {
    guarded([this, now] { protocol_->on_tick(now); });
  }
}

void Connection::count_memory() {
  const bool is_parked = !input_.holds_memory();
  if (is_parked == counted_parked_) return;
  counted_parked_ = is_parked;
  if (is_parked) {
    ServerCounters::add(worker_->counters.parked);
  } else {
    ServerCounters::subtract(worker_->counters.parked);
  }
}

void Connection::drain() {
  if (!is_over()) guarded([this] { protocol_->on_shutdown(); });
}

void Connection::move_to(std::uint16_t worker) {
  next_worker_ = worker;
  worker_->loop.at_turn_end(*this);
}

/// Call only where nothing of this connection is on the stack. Returns false if the connection is
/// busy; then it does not move.
bool Connection::move() {
  const std::uint16_t worker = std::exchange(next_worker_, ConnectionWorker::kNone);
  const bool is_free = is_open() && !waiting_ && !input_ended_ && output_.empty() &&
                       !output_.is_full() && protocol_->is_idle();
  if (!is_free || worker == worker_->number()) return false;
  if (std::exchange(counted_parked_, false)) ServerCounters::subtract(worker_->counters.parked);
  worker_->loop.forget(*this);
  detach();
  worker_->give(*this, worker);
  return true;
}

/// Joins the connections of `worker`, on its loop.
void Connection::arrive(ConnectionWorker& worker) {
  const RefPtr<Connection> keep(this);
  worker_ = &worker;
  active_at_ = worker.coarse_now();
  protocol_->on_worker(worker);
  worker.add(*this);
  count_memory();
  if (!attach()) {
    give_up();
    return;
  }
  if (worker.draining()) drain();
  if (!input_.empty() || is_readable_) resume_later();
}

void Connection::give_up() {
  if (is_over()) return;
  state_ = State::doomed;
  // Complete messages of this turn would have been sent at its end.
  output_.drop_unfinished();
  while (!writing_ && !output_.empty() && send_some()) {
  }
  output_.clear(worker_->buffers);
  worker_->loop.at_turn_end(*this);
}

void Connection::tear_down() {
  if (std::exchange(state_, State::closed) == State::closed) return;
  const RefPtr<Connection> keep(this);
  if (std::exchange(counted_parked_, false)) ServerCounters::subtract(worker_->counters.parked);
  worker_->loop.forget(*this);
  detach();
  close();
  output_.clear(worker_->buffers);
  input_.clear();
  // The buffer is empty, so this cannot fail.
  static_cast<void>(input_.settle(source()));
  worker_->remove(*this);
  protocol_before_ = nullptr;
  const ConnectionProtocolPtr protocol = std::move(protocol_);
  const TimePoint begun = worker_->now();
  guarded([&protocol] { protocol->on_end(); });
  // What it ends may be much, and ends in part in tasks that it posts.
  worker_->worked(kMessageCost +
                  2 * static_cast<std::size_t>((worker_->now() - begun) / kCostTime));
}

}  // namespace sluice
