#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "server/calls/pending_request.hpp"
#include "server/handlers/call_facts.hpp"
#include "server/handlers/coroutine_run.hpp"
#include "sluice/call.hpp"
#include "sluice/task.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// Logs the exceptions that escape from one handler, with its name: ten at once, which shows a
/// developer what happens, and one in ten seconds on the average.
/// Thread-safe.
class FailureLog {
 public:
  /// `kind` is the kind of handler, such as "tool". It must be a literal.
  FailureLog(std::string_view kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  void write(std::string_view what);
  [[nodiscard]] TurnWatch::Work handler() const { return {kind_, name_}; }

 private:
  std::string_view kind_;
  std::string name_;
  LogLimit limit_{10, std::chrono::seconds(100)};
};

/// The error that a peer gets for an exception that escaped from a handler: an Error as it is, the
/// text of a ToolError, or just "Internal error" for any other, which is written to `log`.
Error error_of(const std::exception_ptr& exception, FailureLog& log);

/// One run of a handler's coroutine for a request, until the handler has answered or the request is
/// over.
class HandlerRun final : public CoroutineRun, public detail::CallBackend, private StreamProducer {
 public:
  struct Options {
    Duration timeout{};  // zero: none
    std::shared_ptr<WorkerPool> workers;
    std::shared_ptr<FailureLog> failures = {};  // the handler's name, for the log; or null
  };

  /// Runs the task that `begin` returns. Passes its result to `then`, or its exception to
  /// `otherwise`.
  template <class Result>
  static void start(std::shared_ptr<PendingRequest> request, const Options& options,
                    const std::function<Task<Result>(Call&)>& begin,
                    std::function<void(PendingRequest&, Result)> then,
                    std::function<void(PendingRequest&, const std::exception_ptr&)> otherwise) {
    if (request->over()) return;  // nobody is there to answer
    const auto run = std::make_shared<HandlerRun>(std::move(request), options);
    run->begin(drive<Result>(*run, begin, std::move(then), std::move(otherwise)));
  }

  HandlerRun(std::shared_ptr<PendingRequest> request, const Options& options);
  ~HandlerRun() override;
  HandlerRun(const HandlerRun&) = delete;
  HandlerRun& operator=(const HandlerRun&) = delete;

  LoopBackend& loop() override { return *this; }
  const detail::CallFacts& facts() const override { return facts_; }
  const json::object& meta() override;
  bool text(std::string_view text) override;
  bool progress(double progress, std::optional<double> total, std::string_view message) override;
  bool log(LoggingLevel level, std::string_view logger, const json::value& data) override;
  void disconnect(std::chrono::milliseconds retry) override;
  void begin_task() override;
  const std::string& idempotency_key() override;
  std::uint64_t when_room(detail::Job job) override;
  void forget_room(std::uint64_t wait) override { when_room_.erase(wait); }
  detail::Job ask(std::vector<Question> questions, Answer answer) override;
  std::shared_ptr<detail::CallBackend> for_worker() override;

 private:
  template <class Result>
  static Root drive(HandlerRun& run, std::function<Task<Result>(Call&)> begin,
                    std::function<void(PendingRequest&, Result)> then,
                    std::function<void(PendingRequest&, const std::exception_ptr&)> otherwise) {
    std::exception_ptr exception;
    try {
      Result result = co_await begin(run.call_);
      if (!run.over_) run.end_text();
      if (!run.over_) then(*run.request_, std::move(result));
    } catch (...) {
      exception = std::current_exception();
    }
    if (exception && !run.over_) otherwise(*run.request_, exception);
    run.over_ = true;
  }

  void begin(Root root);
  /// Sends the beginning of a character that has no end.
  void end_text();
  // StreamProducer
  void on_writable() override;
  void on_cancel() override;
  // CoroutineRun
  [[nodiscard]] std::string_view principal() const override { return facts_.principal.id; }
  [[nodiscard]] TurnWatch::Work what() const override {
    return failures_ == nullptr ? TurnWatch::Work() : failures_->handler();
  }
  void on_wait() override {
    if (params_ != nullptr) keep_meta();
  }
  std::shared_ptr<void> on_release() override;

  /// So many texts and messages are sent before others have a turn.
  static constexpr std::uint32_t kSentAtOnce = 256;
  bool has_sent(bool has_room);

  /// Copies `_meta`, because the parameters do not exist once the coroutine waits.
  void keep_meta();

  std::shared_ptr<FailureLog> failures_;  // or null
  std::string key_;                       // once it has been asked for, or a task has begun
  std::shared_ptr<PendingRequest> request_;
  const json::object* params_;  // of the request; null when they are not needed or exist no more
  detail::CallFacts facts_;
  Call call_;
  std::string split_;  // the beginning of a character, whose end is in the next text
  std::map<std::uint64_t, detail::Job> when_room_;  // in the order of the waits
  std::uint64_t last_wait_ = 0;
  std::uint32_t sent_ = 0;  // texts and messages
  bool full_ = false;
};

}  // namespace sluice
