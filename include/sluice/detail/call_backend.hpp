#pragma once

// What stands behind sluice::Call.

#include <coroutine>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/detail/duration.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/logging_level.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

struct Revision;

/// A request to the client: `elicitation/create`, `sampling/createMessage` or `roots/list`.
struct Question {
  std::string method;
  json::object params = {};
  /// Names it among the questions of one handler; empty: its number.
  std::string key = {};
};

/// What a client says it can be asked for.
struct ClientFeatures {
  bool elicitation = false;
  bool elicitation_url = false;
  bool sampling = false;
  bool sampling_tools = false;
  bool roots = false;
};

namespace detail {

using Job = std::move_only_function<void()>;

/// What is known of a request.
struct CallFacts;

/// The value of what returns none.
struct Unit {};

/// What a coroutine gets that waits for what nobody will hand over.
std::exception_ptr dropped_resolver() noexcept;

/// Runs jobs on the loop of a request as long as that is under way. Thread-safe.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Drops `job` when the request is over.
  virtual void post(Job job) = 0;
};

/// A request as its handler sees it. On the loop of the request, unless it says otherwise.
class CallBackend {
 public:
  using Answer = std::move_only_function<void(std::expected<std::vector<json::value>, Error>)>;

  virtual ~CallBackend() = default;
  virtual const CallFacts& facts() const = 0;

  // False: there is no room for more until when_room() says so.
  virtual bool text(std::string_view text) = 0;
  virtual bool progress(double progress, std::optional<double> total, std::string_view message) = 0;
  virtual bool log(LoggingLevel level, std::string_view logger, const json::value& data) = 0;
  virtual void disconnect(std::chrono::milliseconds retry) = 0;
  virtual void begin_task() = 0;
  virtual const std::string& idempotency_key() = 0;

  virtual void when_room(Job job) = 0;
  virtual void after(std::chrono::nanoseconds duration, Job job) = 0;
  virtual void ask(std::vector<Question> questions, Answer answer) = 0;

  /// Runs `job` on a worker thread, unless the request is over before; the handler's coroutine is
  /// there until it has run. False: too many are waiting.
  virtual bool work(Job job) = 0;
  virtual std::shared_ptr<Mailbox> mailbox() = 0;
  /// The same call for a worker thread, which waits where a coroutine would be suspended.
  virtual std::shared_ptr<CallBackend> for_worker() = 0;

  /// Goes on with a coroutine of the handler.
  virtual void resume(std::coroutine_handle<> coroutine) = 0;
};

}  // namespace detail

/// Something a handler's coroutine waits for with co_await. Dropping it forgets the wait.
template <class T>
class [[nodiscard]] Awaiting {
  using Value = std::conditional_t<std::is_void_v<T>, detail::Unit, T>;

 public:
  /// Where the value arrives; on the loop of the call, and at most once.
  class Arrival {
   public:
    explicit Arrival(detail::CallBackend& call) : call_(&call) {}

    void succeed(Value value) {
      value_.emplace(std::move(value));
      wake();
    }
    void fail(std::exception_ptr failure) {
      failure_ = std::move(failure);
      wake();
    }

   private:
    friend class Awaiting;

    void wake() {
      if (awaiter_) call_->resume(std::exchange(awaiter_, nullptr));
    }

    detail::CallBackend* call_;  // outlives its awaiter
    std::coroutine_handle<> awaiter_;
    std::optional<Value> value_;
    std::exception_ptr failure_;
  };

  explicit Awaiting(std::shared_ptr<Arrival> arrival) : arrival_(std::move(arrival)) {}
  Awaiting(Awaiting&&) noexcept = default;
  Awaiting& operator=(Awaiting&&) noexcept = default;
  ~Awaiting() {
    if (arrival_ != nullptr) arrival_->awaiter_ = nullptr;
  }

  bool await_ready() const noexcept { return arrival_->value_ || arrival_->failure_; }
  void await_suspend(std::coroutine_handle<> awaiter) noexcept { arrival_->awaiter_ = awaiter; }
  T await_resume() {
    if (arrival_->failure_) std::rethrow_exception(arrival_->failure_);
    if constexpr (!std::is_void_v<T>) return std::move(*arrival_->value_);
  }

 private:
  std::shared_ptr<Arrival> arrival_;
};

}  // namespace sluice
