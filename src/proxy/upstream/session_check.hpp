#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "client/backoff.hpp"
#include "core/executor.hpp"

namespace sluice {

/// Decides when to check a session in which a client only waits for changes. Nothing else would
/// find out that the server was started anew and has forgotten the session. A server that forgets
/// the next session, too, is checked more and more rarely. Belongs to its loop.
class SessionCheck final {
 public:
  /// `check` begins one. It is not called within a call to this.
  SessionCheck(Executor& loop, std::function<void()> check)
      : loop_(&loop), check_(std::move(check)) {}
  ~SessionCheck() { end(); }
  SessionCheck(const SessionCheck&) = delete;
  SessionCheck& operator=(const SessionCheck&) = delete;

  /// Whether there is something to hear of in the session.
  void want(bool is_wanted);
  [[nodiscard]] bool is_wanted() const { return is_wanted_; }
  /// Nobody wants to hear of anything any more. The loop may go before this object does.
  void end();
  /// The server had forgotten the session; there is another.
  void on_renewed() { was_renewed_ = true; }
  /// The server has answered a check, or failed. `is_over`: it does not know the session.
  void on_answered(bool is_over);

 private:
  void unschedule();
  void schedule();

  Executor* loop_;
  const std::function<void()> check_;
  bool is_wanted_ = false;
  bool was_renewed_ = false;  // since the last check was begun
  bool is_vain_ = false;      // the session that the last check has begun was forgotten, too
  /// Waits are 20 to 40 seconds, so that not all clients of a server check at once.
  Backoff pause_{{.first = std::chrono::seconds(40),
                  .longest = std::chrono::seconds(40),
                  .attempts = UINT32_MAX}};
  Backoff vain_pause_{{.first = std::chrono::seconds(80),
                       .longest = std::chrono::minutes(10),
                       .attempts = UINT32_MAX}};
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice
