#pragma once

#include <functional>
#include <memory>

#include "client/session/client_session.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "proxy/upstream/upstream.hpp"

namespace sluice {

/// Finds out whether a server has been replaced by one of the other era, which understands nothing
/// of an open session: in a session of its own, which ends at once. Belongs to its loop.
class EraCheck {
 public:
  EraCheck(Executor& loop, std::shared_ptr<Upstream> upstream)
      : loop_(&loop), upstream_(std::move(upstream)) {}
  ~EraCheck() { stop(); }
  EraCheck(const EraCheck&) = delete;
  EraCheck& operator=(const EraCheck&) = delete;

  /// A request was answered with this error. If it may be of a server of another era than `spoken`,
  /// that is looked for, at most once in kPause, and not of a program, which stays what it is while
  /// it runs. `then` is called once, later, if there is one. `client`: as of the open session.
  void on_error(const Error& why, const Revision& spoken, ClientSessionOptions client,
                std::function<void(const Revision& now)> then);
  /// The server has just shown what it speaks: it need not be looked for soon.
  void put_off() { next_ = loop_->clock().now() + kPause; }
  /// Nobody wants to know any more.
  void stop();

  static constexpr Duration kPause = std::chrono::minutes(1);

 private:
  Executor* loop_;
  std::shared_ptr<Upstream> upstream_;
  std::shared_ptr<ClientSession> session_;  // null: there is no check
  TimePoint next_ = TimePoint::min();
};

/// Ends a session in the orderly way of its link; keeps it, and `kept`, until that is done. `done`
/// may be empty.
void close_session(Executor& loop, std::shared_ptr<ClientSession> session,
                   std::shared_ptr<void> kept = nullptr, std::function<void()> done = {});

}  // namespace sluice
