#include "engine/function_engine.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxAnswers = 64;  // at a time
constexpr std::size_t kMaxWaiting = 10'000;

ModelRequest model_request(GenerationRequest request) {
  ModelRequest out{.messages = std::move(request.messages),
                   .sampling = request.sampling,
                   .max_tokens = request.max_tokens};
  if (out.messages.empty()) {
    out.messages.push_back({.role = "user", .content = std::move(request.prompt)});
  }
  const auto tools = parse_json(request.tools.empty() ? "[]" : request.tools);
  if (tools && tools->is_array()) out.tools = tools->get_array();
  return out;
}

/// An answer that the function is giving. Shared by its thread and its Generation.
class FunctionAnswer final : public ModelAnswer {
 public:
  explicit FunctionAnswer(std::shared_ptr<GenerationSink> sink) : sink_(std::move(sink)) {}
  ~FunctionAnswer() = default;
  FunctionAnswer(const FunctionAnswer&) = delete;
  FunctionAnswer& operator=(const FunctionAnswer&) = delete;

  bool text(std::string_view piece) override {
    return deliver({.kind = Delta::Kind::text, .text = std::string(piece)});
  }
  bool reasoning(std::string_view piece) override {
    return deliver({.kind = Delta::Kind::reasoning, .text = std::string(piece)});
  }
  bool call(std::string_view tool, json::object arguments, std::string_view id) override {
    has_calls_ = true;
    ++calls_;
    std::string own = id.empty() ? "call_" + std::to_string(calls_) : std::string(id);
    return deliver(
        {.kind = Delta::Kind::tool_call,
         .text = to_json(json::object{{"name", tool}, {"arguments", std::move(arguments)}}),
         .call = std::make_shared<const CallHead>(std::move(own), std::string(tool))});
  }
  void usage(std::uint32_t prompt_tokens, std::uint32_t completion_tokens) override {
    usage_ = {.prompt_tokens = prompt_tokens, .completion_tokens = completion_tokens};
  }
  void cut() override { is_cut_ = true; }
  std::stop_token stop() const override { return stop_.get_token(); }

  void cancel() { stop_.request_stop(); }
  void resume() {
    {
      const std::lock_guard lock(mutex_);
      ++resumed_;
    }
    changed_.notify_one();
  }
  /// At the end of the function. Nothing is delivered afterwards.
  Usage complete(std::optional<Error> error) {
    Completion completion;
    completion.usage = usage_;
    completion.reason = stop_.stop_requested() ? Completion::Reason::cancelled
                        : error                ? Completion::Reason::error
                        : is_cut_              ? Completion::Reason::length
                        : has_calls_           ? Completion::Reason::tool_calls
                                               : Completion::Reason::stop;
    if (completion.reason == Completion::Reason::error) completion.error = std::move(error);
    std::exchange(sink_, nullptr)->on_complete(std::move(completion));
    return usage_;
  }
  [[nodiscard]] bool is_cancelled() const { return stop_.stop_requested(); }

 private:
  bool deliver(Delta delta) {
    if (is_cancelled() || sink_ == nullptr) return false;
    std::unique_lock lock(mutex_);
    const std::uint64_t seen = resumed_;
    lock.unlock();
    if (sink_->on_delta(std::move(delta))) return true;
    lock.lock();
    return changed_.wait(lock, stop_.get_token(), [&] { return resumed_ != seen; });
  }

  std::shared_ptr<GenerationSink> sink_;  // the thread's; null once the answer has ended
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t resumed_ = 0;
  std::uint64_t calls_ = 0;
  bool has_calls_ = false;
  bool is_cut_ = false;
  Usage usage_;
};

/// The answers of an engine, and the threads that give them. Shared with the threads.
class FunctionAnswers final : public std::enable_shared_from_this<FunctionAnswers> {
 public:
  explicit FunctionAnswers(ModelFunction answer) : answer_(std::move(answer)) {}

  Result<void> add(const std::shared_ptr<FunctionAnswer>& answer, ModelRequest request) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return fail(kBusy, "The model is shutting down");
    if (waiting_.size() >= kMaxWaiting) {
      return fail(kBusy, std::to_string(kMaxWaiting) + " requests wait for the model already");
    }
    if (threads_ < kMaxAnswers) {
      try {
        std::thread([self = shared_from_this()] { self->work(); }).detach();
        ++threads_;
      } catch (const std::system_error&) {
        if (threads_ == 0) return fail(kBusy, "The system starts no thread for the model");
      }
    }
    waiting_.push_back({answer, std::move(request)});
    ++stats_.requests;
    return {};
  }

  /// One that waits for a thread ends at once.
  void cancel(const std::shared_ptr<FunctionAnswer>& answer) {
    answer->cancel();
    std::unique_lock lock(mutex_);
    const auto found = std::ranges::find(waiting_, answer, &Asked::answer);
    if (found == waiting_.end()) return;
    waiting_.erase(found);
    ++stats_.cancelled;
    lock.unlock();
    answer->complete({});
  }

  /// Ends all and waits for their threads, but for the calling one: an answer may end the engine.
  void close() {
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    for (const Given& each : given_) each.answer->cancel();
    const std::deque<Asked> waiting = std::exchange(waiting_, {});
    lock.unlock();
    for (const Asked& each : waiting) cancel_unasked(*each.answer);
    lock.lock();
    const auto is_own = [own = std::this_thread::get_id()](const Given& each) {
      return each.thread == own;
    };
    ended_.wait(lock, [&] { return std::ranges::all_of(given_, is_own); });
  }

  [[nodiscard]] EngineStats stats() const {
    const std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    stats.slots_busy = static_cast<std::uint32_t>(given_.size());
    stats.requests_queued = static_cast<std::uint32_t>(waiting_.size());
    return stats;
  }

 private:
  struct Asked {
    std::shared_ptr<FunctionAnswer> answer;
    ModelRequest request;
  };
  struct Given {
    std::shared_ptr<FunctionAnswer> answer;
    std::thread::id thread;
  };

  static void cancel_unasked(FunctionAnswer& answer) {
    answer.cancel();
    answer.complete({});
  }

  /// A thread: gives answers as long as any wait.
  void work() {
    std::unique_lock lock(mutex_);
    while (!waiting_.empty()) {
      const Asked next = std::move(waiting_.front());
      waiting_.pop_front();
      const auto place = given_.insert(given_.end(), {next.answer, std::this_thread::get_id()});
      lock.unlock();
      std::optional<Error> error = failure_of(next);
      const Usage usage = next.answer->complete(std::move(error));
      lock.lock();
      stats_.prompt_tokens += usage.prompt_tokens;
      stats_.completion_tokens += usage.completion_tokens;
      if (next.answer->is_cancelled()) ++stats_.cancelled;
      given_.erase(place);
      ended_.notify_all();
    }
    --threads_;
  }

  std::optional<Error> failure_of(const Asked& asked) {
    try {
      answer_(asked.request, *asked.answer);
      return std::nullopt;
    } catch (const Error& error) {
      return error;
    } catch (...) {
      log_exception(failures_, "a custom model has failed");
    }
    return Error{kInternalError, "The model failed", {}};
  }

  const ModelFunction answer_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<Asked> waiting_;
  std::list<Given> given_;
  std::size_t threads_ = 0;
  EngineStats stats_;
  bool is_closed_ = false;
  LogLimit failures_;
};

class FunctionEngine final : public Engine {
 public:
  FunctionEngine(std::string name, ModelFunction answer)
      : name_(std::move(name)), answers_(std::make_shared<FunctionAnswers>(std::move(answer))) {}
  ~FunctionEngine() override { answers_->close(); }
  FunctionEngine(const FunctionEngine&) = delete;
  FunctionEngine& operator=(const FunctionEngine&) = delete;

  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& /*home*/) override {
    if (request.is_raw) {
      return fail(kInvalidParams, "a custom model takes messages, and no raw prompt");
    }
    const auto answer = std::make_shared<FunctionAnswer>(std::move(sink));
    const Result<void> added = answers_->add(answer, model_request(std::move(request)));
    if (!added) return std::unexpected(added.error());
    return std::make_unique<Handle>(answers_, answer);
  }
  [[nodiscard]] EngineInfo info() const override {
    return {.engine = "custom", .model = name_, .takes_images = true};
  }
  [[nodiscard]] EngineStats stats() const override { return answers_->stats(); }
  void shutdown() override { answers_->close(); }

 private:
  class Handle final : public Generation {
   public:
    Handle(std::shared_ptr<FunctionAnswers> answers, std::shared_ptr<FunctionAnswer> answer)
        : answers_(std::move(answers)), answer_(std::move(answer)) {}
    ~Handle() override { answers_->cancel(answer_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    void cancel() override { answers_->cancel(answer_); }
    void resume() override { answer_->resume(); }
    [[nodiscard]] GenerationStatus status() const override {
      return {.phase = GenerationStatus::Phase::decode};
    }

   private:
    std::shared_ptr<FunctionAnswers> answers_;
    std::shared_ptr<FunctionAnswer> answer_;
  };

  std::string name_;
  std::shared_ptr<FunctionAnswers> answers_;
};

}  // namespace

std::unique_ptr<Engine> make_function_engine(std::string name, ModelFunction answer) {
  return std::make_unique<FunctionEngine>(std::move(name), std::move(answer));
}

}  // namespace sluice
