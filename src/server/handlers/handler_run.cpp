#include "server/handlers/handler_run.hpp"

#include <chrono>
#include <semaphore>
#include <stdexcept>

#include "core/log/log.hpp"
#include "core/sharing/client.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {
namespace {

/// How many messages of a worker may be on their way to the loop.
constexpr std::ptrdiff_t kMessagesUnderWay = 16;

/// How often a worker that waits for room checks whether other jobs wait for its thread.
constexpr std::chrono::milliseconds kPatience{100};

/// Returns the beginning of `text`: at most `most` bytes, and only whole characters.
std::string_view cut(std::string_view text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, complete_utf8_prefix(text.substr(0, most)));
}

Error cut(const Error& error, FailureLog& log) {
  Error out{error.code, std::string(cut(error.message, Error::kMaxText)), {}};
  if (error.data.size() <= Error::kMaxText) {
    out.data = error.data;
  } else {
    log.write("the data of an Error is too long, it is left out");
  }
  return out;
}

const json::value& too_long_to_log() {
  static const json::value kInstead("(the data of this log message is too long)");
  return kInstead;
}

/// Returns `data`, or the text that is logged instead.
const json::value& loggable(const json::value& data) {
  static const json::value kTooDeep("(the data of this log message is nested too deep)");
  if (is_longer_than(data, Call::kMaxMessage)) return too_long_to_log();
  return is_deeper_than(data, kMaxNestedDepth) ? kTooDeep : data;
}

/// The JSON text of loggable(data).
std::string log_text(const json::value& data) {
  std::string text = to_json(loggable(data));
  return text.size() <= Call::kMaxMessage ? text : to_json(too_long_to_log());
}

/// The call as a worker thread sees it. It sends through the loop, and blocks while too many of its
/// messages are on their way there. It also blocks while the caller reads slowly, unless other jobs
/// wait for the thread: from then on, its messages are kept in the client's share of the streams'
/// memory, and the call fails when that is used up.
class WorkerCall final : public detail::CallBackend, private detail::LoopBackend {
 public:
  /// `workers` runs the thread that uses this object, and so outlives that use.
  WorkerCall(detail::CallBackend& call, WorkerPool& workers,
             std::shared_ptr<detail::Mailbox> mailbox)
      : call_(&call),
        workers_(&workers),
        facts_(call.facts()),
        client_(client_of(facts_.principal.id)),
        key_(call.idempotency_key()),
        mailbox_(std::move(mailbox)) {}

  LoopBackend& loop() override { return *this; }
  const detail::CallFacts& facts() const override { return facts_; }
  const json::object& meta() override { return *facts_.meta; }

  bool text(std::string_view text) override {
    return send([text = std::string(text)](CallBackend& call) { return call.text(text); });
  }
  bool progress(double progress, std::optional<double> total, std::string_view message) override {
    return send([progress, total, message = std::string(message)](CallBackend& call) {
      return call.progress(progress, total, message);
    });
  }
  bool log(LoggingLevel level, std::string_view logger, const json::value& data) override {
    return send([level, logger = std::string(logger), data = loggable(data)](CallBackend& call) {
      return call.log(level, logger, data);
    });
  }
  void disconnect(std::chrono::milliseconds retry) override {
    send([retry](CallBackend& call) {
      call.disconnect(retry);
      return true;
    });
  }

  const std::string& idempotency_key() override { return key_; }

  void begin_task() override { refuse(); }
  std::uint64_t when_room(detail::Job /*job*/) override { refuse(); }
  void forget_room(std::uint64_t /*wait*/) override { refuse(); }
  detail::Job ask(std::vector<Question> /*questions*/, Answer /*answer*/) override { refuse(); }
  std::shared_ptr<CallBackend> for_worker() override { refuse(); }

 private:
  // LoopBackend
  std::uint64_t after(std::chrono::nanoseconds /*duration*/, detail::Job /*job*/) override {
    refuse();
  }
  void cancel(std::uint64_t /*timer*/) override { refuse(); }
  void work(detail::Job /*job*/, detail::Job /*refuse*/) override { refuse(); }
  std::shared_ptr<detail::Mailbox> mailbox() override { return mailbox_; }
  std::weak_ptr<detail::LoopBackend> weak() override { refuse(); }
  void resume(std::coroutine_handle<> /*coroutine*/, detail::Branch* /*branch*/) override {
    refuse();
  }

  using Credits = std::counting_semaphore<kMessagesUnderWay>;

  /// Is returned when the message is destroyed: after it was sent, or with the request.
  class Credit {
   public:
    explicit Credit(std::shared_ptr<Credits> credits) : credits_(std::move(credits)) {}
    Credit(Credit&&) noexcept = default;
    Credit& operator=(Credit&&) = delete;
    ~Credit() {
      if (credits_ != nullptr) credits_->release();
    }

   private:
    std::shared_ptr<Credits> credits_;
  };

  [[noreturn]] static void refuse() {
    throw std::logic_error(
        "a blocking() handler can neither wait nor begin a task: make it a coroutine");
  }

  template <class Send>
  bool send(Send send) {
    while (!credits_->try_acquire_for(kPatience)) {
      if (!waits_for_room_ || !workers_->is_wanted(client_)) continue;
      waits_for_room_ = false;
      credits_ = std::make_shared<Credits>(kMessagesUnderWay);
    }
    // `call_` exists as long as the mailbox runs jobs.
    mailbox_->post([call = call_, send = std::move(send), waits = waits_for_room_,
                    credit = Credit(credits_)]() mutable {
      if (!send(*call) && waits) call->when_room([credit = std::move(credit)] {});
    });
    return !facts_.stop.stop_requested();
  }

  detail::CallBackend* call_;
  WorkerPool* workers_;
  detail::CallFacts facts_;
  std::string client_;
  std::string key_;
  std::shared_ptr<detail::Mailbox> mailbox_;
  std::shared_ptr<Credits> credits_ = std::make_shared<Credits>(kMessagesUnderWay);
  bool waits_for_room_ = true;
};

}  // namespace

void FailureLog::write(std::string_view what) {
  const std::optional<std::int64_t> left_out = limit_.take();
  if (!left_out) return;
  log_error("a handler failed",
            {{kind_, std::string_view(name_)}, {"what", what}, {"left_out", *left_out}});
}

Error error_of(const std::exception_ptr& exception, FailureLog& log) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return cut(error, log);
  } catch (const ToolError& failure) {
    return {kInternalError, std::string(cut(what_of(failure), Error::kMaxText)), {}};
  } catch (const std::exception& surprise) {
    log.write(what_of(surprise));
  } catch (...) {
    log.write("an unknown exception");
  }
  return {kInternalError, "Internal error", {}};
}

HandlerRun::HandlerRun(std::shared_ptr<PendingRequest> request, const Options& options)
    : CoroutineRun(request->executor(), *request->calls(), options.workers),
      failures_(options.failures),
      request_(std::move(request)),
      params_(request_->params()),
      call_(*this) {
  facts_.principal = request_->principal();
  facts_.sender = request_->context().sender;
  facts_.revision = request_->context().revision;
  if (const auto& trace = request_->context().trace) {
    facts_.trace = std::make_shared<const TraceContext>(*trace);
  }
  const ClientCapabilities& client = request_->client();
  facts_.client = {.elicitation = client.elicitation_form,
                   .elicitation_url = client.elicitation_url,
                   .sampling = client.sampling,
                   .sampling_tools = client.sampling_tools,
                   .roots = client.roots};
  if (options.timeout <= Duration::zero()) return;
  facts_.deadline = executor().clock().now() + at_most_forever(options.timeout);
  after(options.timeout, [this] {
    if (failures_ != nullptr) failures_->write("it took longer than call_timeout");
    request_->fail(call_timed_out());
    on_cancel();
  });
}

HandlerRun::~HandlerRun() {
  end();
}

void HandlerRun::begin(Root root) {
  request_->set_producer(this);
  go(root);
}

// Destructors may call these when a coroutine is given up. Then the run is over, and the request
// may be gone.

/// Whether the handler may send more now. A client that does not want what it sends never stops it,
/// so it makes way for others from time to time.
bool HandlerRun::has_sent(bool has_room) {
  if (!has_room) {
    full_ = true;
  } else if (!full_ && ++sent_ % kSentAtOnce == 0) {
    full_ = true;
    after({}, [this] { on_writable(); });
  }
  return !full_;
}

bool HandlerRun::text(std::string_view text) {
  std::string joined;
  if (!split_.empty()) {
    joined = std::exchange(split_, {}).append(text);
    text = joined;
  }
  const std::size_t whole = complete_utf8_prefix(text);
  split_ = text.substr(whole);
  return has_sent(!over_ && (whole == 0 || request_->emit(text.substr(0, whole))));
}

void HandlerRun::end_text() {
  if (!split_.empty()) request_->emit(std::exchange(split_, {}));
}

bool HandlerRun::progress(double progress, std::optional<double> total, std::string_view message) {
  return has_sent(!over_ && request_->progress(progress, total, cut(message, Call::kMaxMessage)));
}

bool HandlerRun::log(LoggingLevel level, std::string_view logger, const json::value& data) {
  return has_sent(!over_ && request_->log(level, cut(logger, Call::kMaxMessage), log_text(data)));
}

void HandlerRun::disconnect(std::chrono::milliseconds retry) {
  if (!over_) request_->disconnect(retry);
}

const std::string& HandlerRun::idempotency_key() {
  if (key_.empty()) key_ = request_->idempotency_key();
  return key_;
}

void HandlerRun::begin_task() {
  if (over_) return;
  // Remembers the key, which comes from the rounds: the task does not have them.
  idempotency_key();
  Result<std::shared_ptr<PendingRequest>> task = request_->begin_task();
  if (!task) throw std::move(task.error());
  if (*task == request_) return;
  request_->set_producer(nullptr);
  request_ = std::move(*task);
  request_->set_producer(this);
  // The old request does not report room any more. Posted, because a coroutine that waits for room
  // must not be resumed from here.
  mailbox()->post([this] { on_writable(); });
}

std::uint64_t HandlerRun::when_room(detail::Job job) {
  ++last_wait_;
  if (full_) {
    when_room_.emplace(last_wait_, std::move(job));
  } else {
    job();
  }
  return last_wait_;
}

void HandlerRun::on_writable() {
  full_ = false;
  const std::shared_ptr<CoroutineRun> keep = shared_from_this();
  for (auto& [wait, job] : std::exchange(when_room_, {})) {
    if (!over_) job();
  }
}

detail::Job HandlerRun::ask(std::vector<Question> questions, Answer answer) {
  if (over_) return {};
  std::vector<InputRequest> requests;
  for (Question& question : questions) {
    requests.push_back(
        {std::move(question.key), std::move(question.method), std::move(question.params)});
  }
  PendingRequest::Withdraw withdraw =
      request_->ask(std::move(requests),
                    [answer = std::move(answer)](Result<std::vector<json::value>> answers) mutable {
                      answer(std::move(answers));
                    });
  // The client gets the questions as the result of the call, so this run does not go on.
  if (request_->over()) {
    on_cancel();
    return {};
  }
  if (!withdraw) return {};
  // Posted, because the owner of this job is being destroyed, and withdrawing may end the call if
  // the client accepts no more output.
  return [box = mailbox(), withdraw = std::move(withdraw)]() mutable noexcept {
    try {
      box->post(std::move(withdraw));
    } catch (const std::bad_alloc&) {
      // The questions are withdrawn at the end of the call.
    }
  };
}

const json::object& HandlerRun::meta() {
  keep_meta();
  return *facts_.meta;
}

void HandlerRun::keep_meta() {
  static const auto kNone = std::make_shared<const json::object>();
  const json::object* const params = std::exchange(params_, nullptr);
  if (facts_.meta != nullptr) return;
  const json::value* const meta = params == nullptr ? nullptr : params->if_contains("_meta");
  facts_.meta = meta == nullptr || !meta->is_object()
                    ? kNone
                    : std::make_shared<const json::object>(meta->get_object(), json::storage_ptr());
}

std::shared_ptr<detail::CallBackend> HandlerRun::for_worker() {
  if (workers() == nullptr) return nullptr;  // there is no worker thread to use it
  keep_meta();
  return std::make_shared<WorkerCall>(*this, *workers(), mailbox());
}

void HandlerRun::on_cancel() {
  const std::shared_ptr<CoroutineRun> keep = shared_from_this();
  over_ = true;
  facts_.stop.request_stop();
  stop();
}

std::shared_ptr<void> HandlerRun::on_release() {
  when_room_.clear();
  if (has_coroutine()) idempotency_key();
  request_->set_producer(nullptr);
  params_ = nullptr;
  return std::move(request_);
}

}  // namespace sluice
