#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "client/session/client_session.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "json/json.hpp"

namespace sluice {

/// Something that a client does by several requests, and that its caller sees as one with an
/// answer. Belongs to its session, which outlives it while it is under way.
class SessionActivity : public std::enable_shared_from_this<SessionActivity> {
 public:
  using Number = ClientSession::Number;

  /// `options.idle_timeout` is for its requests, `options.timeout` for all of it.
  SessionActivity(ClientSession& session, Executor& loop, const RequestOptions& options,
                  RequestCallbacks callbacks);
  /// Cancels its timers. Its requests are the session's.
  virtual ~SessionActivity();
  SessionActivity(const SessionActivity&) = delete;
  SessionActivity& operator=(const SessionActivity&) = delete;

  /// Begins, as the session's request `number`. No callback is called from within.
  void start(Number number);
  /// Ends without an answer, because the caller has no use for it any more.
  void cancel();
  /// Drops everything that is under way. Nobody is told.
  void stop();
  /// Answers, and leaves the session.
  void end(Result<json::object> answer);

  /// A notification that belongs to no request. Returns whether it is for this activity alone.
  virtual bool on_notification(std::string_view method, const json::object& params) = 0;
  /// There is a new session, which knows nothing of what the old one was asked for.
  virtual void on_renewed() {}
  /// Whether it wants to hear of changes of this resource.
  [[nodiscard]] virtual bool watches(std::string_view /*uri*/) const { return false; }

 protected:
  virtual void begin() = 0;
  /// The caller has no use for it any more: what the server need not do is taken back.
  virtual void leave() {}
  /// Whatever is under way besides requests is dropped.
  virtual void on_stop() {}
  /// Sends a request. `then` gets the answer, unless the activity is over by then.
  Number ask(std::string method, json::object params, const RequestOptions& options,
             std::function<void(Result<json::object>)> then);
  /// Whether a notification is of the subscription that its request `number` has begun; 0 is none.
  [[nodiscard]] bool is_subscription(Number number, const json::object& params) const;
  /// Sends a request whose answer is not awaited; it outlives the activity.
  void tell(std::string method, json::object params);
  /// Drops a request; 0 is none.
  void drop(Number number);
  /// Does `then` after `wait`, in place of what was to be done later before.
  void later(Duration wait, std::function<void()> then);
  /// Tells the caller of something meanwhile. The callback may end the activity.
  void report(json::object said);

  [[nodiscard]] bool is_over() const { return session_ == nullptr; }
  [[nodiscard]] ClientSession& session() { return *session_; }
  [[nodiscard]] const RequestOptions& options() const { return options_; }
  /// The session's number of it.
  [[nodiscard]] Number number() const { return number_; }

 private:
  ClientSession* session_;  // null: it is over
  Executor* loop_;
  const RequestOptions options_;
  RequestCallbacks callbacks_;
  Number number_ = 0;
  std::set<Number> open_;  // its requests
  Executor::TimerId timer_ = 0;
  Executor::TimerId deadline_ = 0;
};

/// Whether a request that failed so may succeed if it is sent again later.
bool is_passing(const Error& why);

}  // namespace sluice
