#include "client/api/calls/call_state.hpp"

#include <stdexcept>
#include <utility>

#include "json/members.hpp"
#include "protocol/log_message.hpp"
#include "protocol/tool_result.hpp"
#include "sluice/client.hpp"

namespace sluice::detail {
namespace {

double number_at(const json::object& params, std::string_view key) {
  const json::value* const value = params.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

using Said = ClientCall::State::Said;

std::string text_of(const json::object& params, Said what) {
  if (what == Said::log) return text_of_log_message(params);
  if (what == Said::partial_result) return text_of_tool_result(params);
  return std::string(text_at(params, "message"));
}

CallEvent event_of(const json::object& params, Said what) {
  CallEvent event{.message = text_of(params, what),
                  .progress = number_at(params, "progress"),
                  .is_log = what == Said::log,
                  .is_partial_result = what == Said::partial_result};
  if (params.contains("total")) event.total = number_at(params, "total");
  return event;
}

}  // namespace

ClientCall::State::State(std::size_t max_events, std::function<void()> require_loop,
                         std::function<void(bool)> give_up, bool keeps_params)
    : require_loop_(std::move(require_loop)),
      keeps_params_(keeps_params),
      give_up_(std::move(give_up)),
      events_(max_events, CallOptions::kMaxEventBytes) {}

void ClientCall::State::add(const json::object& said, Said what, std::uint64_t missing) {
  CallEvent event = event_of(said, what);
  event.dropped = missing;
  std::size_t bytes = event.message.size();
  if (keeps_params_ || what == Said::partial_result) {
    event.params = json::object(said, json::storage_ptr());
    bytes += size_of(event.params).memory();
  }
  std::unique_lock lock(mutex_);
  if (has_ended_) return;
  // Parts of the result have numbers, and go on.
  if (what != Said::partial_result) event.is_restart = std::exchange(restarts_, false);
  put(std::move(event), bytes, std::move(lock));
}

void ClientCall::State::mark(std::string position) {
  std::unique_lock lock(mutex_);
  if (has_ended_) return;
  if (!events_.empty()) return events_.mark_newest(std::move(position));
  const std::size_t bytes = position.size();
  put({.resumption = std::move(position), .has_no_message = true}, bytes, std::move(lock));
}

void ClientCall::State::put(CallEvent event, std::size_t bytes, std::unique_lock<std::mutex> lock) {
  if (next_) {
    auto done = std::exchange(next_, {});
    is_awaited_ = false;
    lock.unlock();
    return done(std::move(event));
  }
  events_.push(std::move(event), bytes);
  const bool is_awaited = is_awaited_;
  lock.unlock();
  if (is_awaited) changed_.notify_all();
  hold_up_or_not();
}

void ClientCall::State::hold_up_or_not() {
  const std::lock_guard lock(mutex_);
  if (!hold_) return;
  const bool is_held_up = !has_ended_ && events_.is_half_full();
  // With the mutex held, as the last word counts.
  if (std::exchange(is_held_up_, is_held_up) == is_held_up) return;
  hold_(is_held_up ? Holding::up : Holding::no);
}

void ClientCall::State::restart() {
  const std::lock_guard lock(mutex_);
  restarts_ = true;
}

void ClientCall::State::end(Outcome outcome) {
  std::unique_lock lock(mutex_);
  if (std::exchange(has_ended_, true)) return;
  const auto give_up = std::exchange(give_up_, {});
  if (is_held_up_ && hold_) hold_(Holding::over);
  const auto hold = std::exchange(hold_, {});
  auto next = std::exchange(next_, {});
  auto result = std::exchange(result_, {});
  std::optional<Outcome> awaited;
  (result ? awaited : outcome_) = std::move(outcome);
  lock.unlock();
  changed_.notify_all();
  if (next) next(std::nullopt);
  if (awaited) result(*std::move(awaited));
}

void ClientCall::State::give_up(bool is_left) {
  std::unique_lock lock(mutex_);
  const auto tell = std::exchange(give_up_, {});
  lock.unlock();
  if (!tell) return;
  tell(is_left);
  end(std::unexpected(Error{kCancelled, "The call was cancelled", {}}));
}

void ClientCall::State::cancel_on(std::initializer_list<std::stop_token> stops) {
  for (const std::stop_token& stop : stops) {
    if (stop.stop_possible()) stops_.emplace_back(stop, [this] { cancel(); });
  }
}

bool ClientCall::State::take(std::optional<CallEvent>& event) {
  if (events_.empty()) return has_ended_;
  event = events_.pop();
  return true;
}

std::optional<CallEvent> ClientCall::State::next() {
  require_loop_();
  std::optional<CallEvent> event;
  std::unique_lock lock(mutex_);
  if (is_awaited_) throw std::logic_error("somebody waits for the next event already");
  is_awaited_ = true;
  changed_.wait(lock, [this, &event] { return take(event); });
  is_awaited_ = false;
  lock.unlock();
  hold_up_or_not();
  return event;
}

void ClientCall::State::on_next(std::move_only_function<void(std::optional<CallEvent>)> done) {
  std::optional<CallEvent> event;
  {
    const std::lock_guard lock(mutex_);
    if (is_awaited_) throw std::logic_error("somebody waits for the next event already");
    if (!take(event)) {
      is_awaited_ = true;
      next_ = std::move(done);
      return;
    }
  }
  hold_up_or_not();
  done(std::move(event));
}

json::object ClientCall::State::result() {
  require_loop_();
  std::unique_lock lock(mutex_);
  if (std::exchange(is_taken_, true)) throw std::logic_error("result() was called before");
  changed_.wait(lock, [this] { return has_ended_; });
  Outcome outcome = *std::exchange(outcome_, std::nullopt);
  lock.unlock();
  if (!outcome) throw Error(std::move(outcome.error()));
  return *std::move(outcome);
}

void ClientCall::State::on_result(std::move_only_function<void(Outcome)> done) {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_taken_, true)) throw std::logic_error("result() was called before");
  if (!has_ended_) {
    result_ = std::move(done);
    return;
  }
  Outcome outcome = *std::exchange(outcome_, std::nullopt);
  lock.unlock();
  done(std::move(outcome));
}

bool ClientCall::State::is_ready() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

// --- ClientCall ---------------------------------------------------------------------------------

ClientCall::~ClientCall() {
  if (state_ != nullptr) state_->cancel();
}

ClientCall& ClientCall::operator=(ClientCall&& other) noexcept {
  // `other` cancels what this was.
  std::swap(connection_, other.connection_);
  std::swap(state_, other.state_);
  return *this;
}

std::optional<CallEvent> ClientCall::next() {
  return state_->next();
}
json::object ClientCall::result() {
  return state_->result();
}
void ClientCall::on_next(std::move_only_function<void(std::optional<CallEvent>)> done) {
  state_->on_next(std::move(done));
}
void ClientCall::on_result(std::move_only_function<void(Outcome)> done) {
  state_->on_result(std::move(done));
}
bool ClientCall::is_ready() const {
  return state_->is_ready();
}
void ClientCall::cancel() {
  state_->cancel();
}
void ClientCall::leave() {
  state_->leave();
}

}  // namespace sluice::detail
