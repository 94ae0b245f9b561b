#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "client/api/calls/call_holds.hpp"
#include "client/api/calls/event_queue.hpp"
#include "json/json.hpp"
#include "sluice/detail/client_call.hpp"

namespace sluice::detail {

/// A request of a client between its two threads: the loop puts in, the user takes out.
/// Thread-safe.
class ClientCall::State final {
 public:
  /// `require_loop` throws where it makes no sense to wait for the loop. `give_up` tells the
  /// session that nobody waits, and whether the call is left to somebody else; it is called at most
  /// once, on any thread. `keeps_params`: see CallOptions::event_params.
  State(std::size_t max_events, std::function<void()> require_loop,
        std::function<void(bool is_left)> give_up, bool keeps_params = true);

  // The loop's side. Nothing counts after the first end().

  enum class Said : std::uint8_t { progress, log, partial_result };
  /// The params of a notification, and how many are missing before it.
  void add(const json::object& params, Said what = Said::progress, std::uint64_t missing = 0);
  /// See RequestCallbacks::on_position. The position goes with the newest event that waits, or with
  /// one of its own.
  void mark(std::string position);
  /// The next event begins anew.
  void restart();
  void end(Outcome outcome);

  // The user's side; see ClientCall.

  std::optional<CallEvent> next();
  json::object result();
  void on_next(std::move_only_function<void(std::optional<CallEvent>)> done);
  void on_result(std::move_only_function<void(Outcome)> done);
  bool is_ready() const;
  void cancel() { give_up(false); }
  void leave() { give_up(true); }
  /// The server need not be read while half of the events that may wait do. `hold` says so, on any
  /// thread, and how that ends. It must not call this. Call before the first event.
  void hold_up(std::function<void(Holding)> hold) { hold_ = std::move(hold); }
  /// Cancels when any of these is requested. Call once.
  void cancel_on(std::initializer_list<std::stop_token> stops);

 private:
  void give_up(bool is_left);
  /// Passes an event on, with the lock held, which is released. `bytes`: of memory.
  void put(CallEvent event, std::size_t bytes, std::unique_lock<std::mutex> lock);
  /// The next event, if it is there or there will be none. Call with the mutex held.
  bool take(std::optional<CallEvent>& event);
  /// Call without the mutex, after events were added or taken.
  void hold_up_or_not();

  const std::function<void()> require_loop_;
  const bool keeps_params_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(bool)> give_up_;  // empty once the call has ended
  EventQueue events_;
  std::function<void(Holding)> hold_;  // empty: nothing is held up
  bool is_held_up_ = false;
  bool restarts_ = false;
  bool has_ended_ = false;
  std::optional<Outcome> outcome_;  // until it is taken
  bool is_taken_ = false;           // the outcome, or somebody waits for it
  bool is_awaited_ = false;         // the next event
  std::move_only_function<void(std::optional<CallEvent>)> next_;
  std::move_only_function<void(Outcome)> result_;
  std::list<std::stop_callback<std::function<void()>>> stops_;
};

}  // namespace sluice::detail
