#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/log.hpp"
#include "core/log_limit.hpp"
#include "server/background_jobs.hpp"
#include "server/call_facts.hpp"
#include "server/pending_request.hpp"
#include "server/worker_pool.hpp"
#include "sluice/call.hpp"
#include "sluice/task.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// Logs what one handler lets out, by its name and as often as a log bears. Thread-safe.
class FailureLog {
 public:
  /// `kind` is what the handler makes, such as "tool"; it outlives this.
  FailureLog(std::string_view kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  void write(std::string_view what);

 private:
  std::string_view kind_;
  std::string name_;
  LogLimit limit_;
};

/// What a peer is told of an exception that a handler let out: an Error as it is, a ToolError's
/// text, and of any other only that there was one, which goes to `log`.
Error error_of(const std::exception_ptr& exception, FailureLog& log);

/// One run of a handler's coroutine for a request. Keeps itself alive until the handler has
/// answered or the request is over; then the coroutine is destroyed where it waits. Belongs to the
/// loop of the request.
class HandlerRun final : public detail::CallBackend,
                         private StreamProducer,
                         public std::enable_shared_from_this<HandlerRun> {
 public:
  struct Options {
    Duration timeout{};  // zero: none
    std::shared_ptr<WorkerPool> workers;
  };

  /// Runs the task that `begin` returns, and hands what becomes of it to `then`.
  template <class Result>
  static void start(std::shared_ptr<PendingRequest> request, const Options& options,
                    const std::function<Task<Result>(Call&)>& begin,
                    std::function<void(PendingRequest&, Result)> then,
                    std::function<void(PendingRequest&, const std::exception_ptr&)> otherwise) {
    const auto run = std::make_shared<HandlerRun>(std::move(request), options);
    run->go(drive<Result>(*run, begin, std::move(then), std::move(otherwise)));
  }

  HandlerRun(std::shared_ptr<PendingRequest> request, const Options& options);
  ~HandlerRun() override;
  HandlerRun(const HandlerRun&) = delete;
  HandlerRun& operator=(const HandlerRun&) = delete;

  const detail::CallFacts& facts() const override { return facts_; }
  bool text(std::string_view text) override;
  bool progress(double progress, std::optional<double> total, std::string_view message) override;
  bool log(LoggingLevel level, std::string_view logger, const json::value& data) override;
  void disconnect(std::chrono::milliseconds retry) override;
  void begin_task() override;
  const std::string& idempotency_key() override;
  void when_room(detail::Job job) override;
  void after(std::chrono::nanoseconds duration, detail::Job job) override;
  void ask(std::vector<Question> questions, Answer answer) override;
  bool work(detail::Job job) override;
  std::shared_ptr<detail::Mailbox> mailbox() override;
  std::shared_ptr<detail::CallBackend> for_worker() override;
  void resume(std::coroutine_handle<> coroutine) override;

 private:
  class LoopMailbox;

  /// The outermost coroutine.
  struct Root {
    struct promise_type {  // NOLINT(readability-identifier-naming)
      Root get_return_object() {
        return {std::coroutine_handle<promise_type>::from_promise(*this)};
      }
      std::suspend_always initial_suspend() noexcept { return {}; }
      std::suspend_always final_suspend() noexcept { return {}; }
      void return_void() noexcept {}
      void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
  };

  template <class Result>
  static Root drive(HandlerRun& run, std::function<Task<Result>(Call&)> begin,
                    std::function<void(PendingRequest&, Result)> then,
                    std::function<void(PendingRequest&, const std::exception_ptr&)> otherwise) {
    std::exception_ptr exception;
    try {
      Result result = co_await begin(run.call_);
      if (!run.over_) then(*run.request_, std::move(result));
    } catch (...) {
      exception = std::current_exception();
    }
    if (exception && !run.over_) otherwise(*run.request_, exception);
    run.over_ = true;
  }

  void go(Root root);
  void on_room() override;
  void on_cancel() override;
  /// Destroys the coroutine, as soon as no worker uses it, and lets go of everything.
  void release();
  void destroy_coroutine();

  std::string key_;  // once it has been asked for, or a task has begun
  std::shared_ptr<PendingRequest> request_;
  Calls* calls_;
  std::shared_ptr<WorkerPool> workers_;
  std::shared_ptr<BackgroundJobs> jobs_;  // if there were any
  detail::CallFacts facts_;
  Call call_;
  std::coroutine_handle<> root_;
  std::shared_ptr<LoopMailbox> mailbox_;  // if somebody has asked for it
  std::shared_ptr<HandlerRun> self_;
  std::vector<detail::Job> when_room_;
  std::set<Executor::TimerId> timers_;
  bool full_ = false;
  bool running_ = false;
  bool over_ = false;
};

}  // namespace sluice
