#include "server/dispatch/request_chain.hpp"

#include <exception>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/sharing/client_memory.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/pending_request.hpp"
#include "server/channel/request_watch.hpp"
#include "server/dispatch/dispatcher.hpp"
#include "server/handlers/coroutine_run.hpp"
#include "server/handlers/handler_run.hpp"
#include "server/workers/long_messages.hpp"

namespace sluice {
namespace {

/// The name of what the request is about (Request::name()). The method decides which parameter that
/// is, so that a client cannot mislead with additional parameters.
std::string_view subject_of(const Message& message) {
  std::optional<std::string_view> parameter = mirrored_parameter(message.method);
  if (message.method == "resources/subscribe" || message.method == "resources/unsubscribe") {
    parameter = "uri";
  } else if (message.method == "tasks/result") {
    parameter = "taskId";
  }
  if (!parameter || message.params == nullptr) return {};
  const json::value* const name = message.params->if_contains(*parameter);
  return name != nullptr && name->is_string() ? std::string_view(name->get_string())
                                              : std::string_view();
}

FailureLog& middleware_failures() {
  static FailureLog failures("handler", "middleware");
  return failures;
}

}  // namespace

struct RequestChain::Arrived {
  Arrived(RequestChain& its_chain, const Message& its_message, const MirroredHeaders* its_headers,
          Caller& its_caller, std::string& its_out)
      : chain(&its_chain),
        message(&its_message),
        headers(its_headers),
        caller(&its_caller),
        out(&its_out) {
    chain->arrived_ = this;
  }
  ~Arrived() { chain->arrived_ = nullptr; }
  Arrived(const Arrived&) = delete;
  Arrived& operator=(const Arrived&) = delete;

  RequestChain* chain;
  const Message* message;
  const MirroredHeaders* headers;
  Caller* caller;
  std::string* out;
  std::optional<Outcome> outcome = {};
};

struct RequestChain::Kept {
  Kept(RetainedCaller its_caller, std::string_view its_text, LongMessages& all)
      : caller(std::move(its_caller)), text(its_text), messages(&all) {}
  RetainedCaller caller;
  std::string text;  // of the message
  LongMessages* messages;
  CoarseHold hold = {};                        // what the text is charged to
  std::unique_ptr<LongMessage> parsed = {};    // while a long text is being parsed
  std::shared_ptr<ReplyChannel> channel = {};  // null for notifications
};

/// Tells the chain how the call that answers its request has ended.
class RequestChain::Watch final : public RequestWatch {
 public:
  explicit Watch(std::weak_ptr<RequestChain> chain) : chain_(std::move(chain)) {}
  ~Watch() override { finish({.cancelled = true}); }

  void watch(PendingRequest& call) override {
    if (const auto chain = chain_.lock()) chain->call_ = call.weak_from_this();
  }
  void end(std::optional<int> error) override { finish({.error = error}); }

 private:
  void finish(const RequestEnd& end) {
    if (const auto chain = std::exchange(chain_, {}).lock()) chain->finish(end);
  }

  std::weak_ptr<RequestChain> chain_;
};

/// The channel for the answer of a stream method. Tells the middleware when the request ends.
class RequestChain::ThroughChannel final : public ReplyChannel,
                                           public std::enable_shared_from_this<ThroughChannel> {
 public:
  ThroughChannel(std::weak_ptr<RequestChain> chain, RequestId id,
                 std::shared_ptr<ReplyChannel> channel)
      : chain_(std::move(chain)), id_(std::move(id)), channel_(std::move(channel)) {}

  void reply(int http_status, std::string message) override {
    if (abandoned_) return;
    const std::shared_ptr<ThroughChannel> keep = shared_from_this();
    tell({.error = error_code_of(message, id_)});
    channel_->reply(http_status, std::move(message));
  }
  bool write(std::string_view block) override { return channel_->write(block); }
  bool write(const Bytes& block) override { return channel_->write(block); }
  bool take(std::string& block) override { return channel_->take(block); }
  void finish() override {
    const std::shared_ptr<ThroughChannel> keep = shared_from_this();
    tell({});
    channel_->finish();
  }
  void drop(const Error& error) override {
    const std::shared_ptr<ThroughChannel> keep = shared_from_this();
    tell({.error = error.code});
    channel_->drop(error);
  }
  [[nodiscard]] const Framing& framing() const override { return channel_->framing(); }
  [[nodiscard]] bool can_stream() const override { return channel_->can_stream(); }
  [[nodiscard]] bool is_shared() const override { return channel_->is_shared(); }
  void may_take_long() override { channel_->may_take_long(); }
  void when_writable(Executor::Task answer) override { channel_->when_writable(std::move(answer)); }
  void give_way() override { channel_->give_way(); }
  void on_close(CloseTask task) override {
    // The old task may own what owns this channel, so it is destroyed last.
    const CloseTask old = std::exchange(close_task_, std::move(task));
    if (!close_task_) {
      channel_->on_close({});
      return;
    }
    channel_->on_close([self = shared_from_this()](DisconnectReason reason) {
      self->tell({.cancelled = true});
      if (CloseTask closed = std::exchange(self->close_task_, {})) closed(reason);
    });
  }
  void on_drain(Executor::Task task) override { channel_->on_drain(std::move(task)); }

  /// Cancels the answer that was to come, and answers with `error` instead.
  void abandon(const Error& error) {
    const std::shared_ptr<ThroughChannel> keep = shared_from_this();
    if (CloseTask stop = std::exchange(close_task_, {})) stop(DisconnectReason::cancelled);
    channel_->on_close({});
    std::string message;
    append_error(message, id_, error);
    reply(200, message);
    abandoned_ = true;
  }

 private:
  void tell(const RequestEnd& end) {
    if (const auto chain = std::exchange(chain_, {}).lock()) chain->finish(end);
  }

  std::weak_ptr<RequestChain> chain_;
  RequestId id_;
  std::shared_ptr<ReplyChannel> channel_;
  CloseTask close_task_;
  bool abandoned_ = false;
};

/// The caller, as seen by what answers the request. Reports to the chain how an answer that comes
/// later ends.
class RequestChain::ThroughCaller final : public Caller {
 public:
  /// `channel` was opened while the request waited; null if none was.
  ThroughCaller(RequestChain& chain, Caller& caller, std::shared_ptr<ReplyChannel> channel)
      : chain_(&chain), caller_(&caller), channel_(std::move(channel)) {}

  /// Whether the answer comes through a channel, now or later.
  [[nodiscard]] bool opened() const { return opened_; }

  [[nodiscard]] const Principal& principal() const override { return chain_->info_.principal; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override {
    std::shared_ptr<ReplyChannel> channel = std::move(channel_);
    if (channel == nullptr) {
      Result<std::shared_ptr<ReplyChannel>> opened = caller_->open_channel(id);
      if (!opened) return opened;
      channel = std::move(*opened);
    }
    opened_ = true;
    if (chain_->request_.kind != UnderstoodRequest::Kind::stream_method) return channel;
    auto through =
        std::make_shared<ThroughChannel>(chain_->weak_from_this(), id, std::move(channel));
    chain_->channel_ = through;
    return through;
  }
  std::unique_ptr<RequestWatch> watch() override {
    return std::make_unique<Watch>(chain_->weak_from_this());
  }
  Result<std::shared_ptr<Session>> session() override { return caller_->session(); }
  [[nodiscard]] bool has_capacity() const override { return caller_->has_capacity(); }
  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override {
    return caller_->begin_session(revision, client);
  }
  std::shared_ptr<SessionStorage> storage() override { return caller_->storage(); }
  [[nodiscard]] std::optional<std::string> field(std::string_view name) const override {
    return caller_->field(name);
  }
  bool serve(const Message& message, Caller& asker, std::string& out) override {
    return caller_->serve(message, asker, out);
  }
  void add_listener(std::weak_ptr<ChangeListener> listener) override {
    caller_->add_listener(std::move(listener));
  }
  RetainedCaller keep() override { return caller_->keep(); }

 private:
  RequestChain* chain_;
  Caller* caller_;
  std::shared_ptr<ReplyChannel> channel_;
  bool opened_ = false;
};

/// The run of one middleware for the request.
class RequestChain::Stage final : public CoroutineRun, private detail::RequestBackend {
 public:
  Stage(std::shared_ptr<RequestChain> chain, std::size_t index, Executor& executor, Calls& calls)
      : CoroutineRun(executor, calls, chain->catalog_->definition().workers),
        chain_(std::move(chain)),
        index_(index),
        request_(static_cast<detail::RequestBackend&>(*this)) {}
  ~Stage() override { end(); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void begin() { go(drive(*this, chain_->catalog_->definition().middleware[index_])); }

  /// The request has ended.
  void on_end(const RequestEnd& end) {
    if (over_) return;
    if (!went_on_) {
      stop();
      return;
    }
    if (const auto waiting = std::exchange(end_, nullptr)) waiting->succeed(RequestEnd(end));
    // The middleware may still wait for something else.
    if (!over_ && !is_running()) on_wait();
  }
  using CoroutineRun::stop;

 private:
  static Root drive(Stage& stage, const Middleware& middleware) {
    std::exception_ptr failure;
    try {
      co_await middleware(stage.request_);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!std::exchange(stage.over_, true)) stage.chain_->on_stage_end(stage.went_on_, failure);
  }

  // RequestBackend
  LoopBackend& loop() override { return *this; }
  [[nodiscard]] const detail::RequestInfo& info() const override { return chain_->info_; }
  void next(std::shared_ptr<Awaiting<RequestEnd>::Arrival> end) override {
    if (over_) return;  // called from a destructor
    if (std::exchange(went_on_, true)) throw std::logic_error("a request goes on once");
    end_ = std::move(end);
    chain_->start(index_ + 1);
  }

  // CoroutineRun
  [[nodiscard]] std::string_view principal() const override { return chain_->info_.principal.id; }
  [[nodiscard]] TurnWatch::Work what() const override {
    return {"middleware", chain_->info_.method};
  }
  std::shared_ptr<void> on_release() override { return nullptr; }
  void on_wait() override {
    if (!chain_->may_wait()) stop();
  }

  std::shared_ptr<RequestChain> chain_;
  std::size_t index_;
  Request request_;
  bool went_on_ = false;
  std::shared_ptr<Awaiting<RequestEnd>::Arrival> end_;  // that next() waits for
};

RequestChain::RequestChain(Dispatcher& dispatcher, const Message& message,
                           UnderstoodRequest request, const Caller& caller)
    : dispatcher_(&dispatcher),
      catalog_(dispatcher.catalog_),
      info_{.method = std::string(message.method),
            .name = std::string(subject_of(message)),
            .principal = caller.principal(),
            .revision = {}},
      id_(message.kind == MessageKind::request ? message.id : RequestId()),
      request_(std::move(request)),
      revision_(request_.context.revision) {
  if (revision_ != nullptr) info_.revision = revision_->name;
  dispatcher.chains_.add(*this);
}

RequestChain::~RequestChain() {
  if (dispatcher_ != nullptr) dispatcher_->chains_.remove(*this);
}

Outcome RequestChain::run(Dispatcher& dispatcher, const Message& message,
                          const MirroredHeaders* headers, UnderstoodRequest request, Caller& caller,
                          std::string& out) {
  const auto chain =
      std::make_shared<RequestChain>(dispatcher, message, std::move(request), caller);
  Arrived arrived(*chain, message, headers, caller, out);
  chain->start(0);
  if (!arrived.outcome) chain->keep();
  if (arrived.outcome) return *arrived.outcome;
  return {.kind = chain->id_.empty() ? Outcome::Kind::accepted : Outcome::Kind::pending};
}

void RequestChain::start(std::size_t stage) {
  if (dispatcher_ == nullptr || ended_) return;
  if (stage == catalog_->definition().middleware.size()) {
    go_on();
    return;
  }
  const auto next = std::make_shared<Stage>(shared_from_this(), stage,
                                            dispatcher_->streams_->executor(), dispatcher_->calls_);
  stages_.push_back(next);
  next->begin();
}

/// Keeps the request after run(): it is not answered yet, and its middleware waits.
void RequestChain::keep() {
  if (const Result<void> admitted = admit(); !admitted) refuse(admitted.error());
}

Result<void> RequestChain::admit() {
  Result<CallPermit> permit = dispatcher_->calls_.admit(info_.principal);
  if (!permit) return std::unexpected(std::move(permit.error()));
  std::shared_ptr<ReplyChannel> channel;
  if (!id_.empty()) {
    Result<std::shared_ptr<ReplyChannel>> opened = arrived_->caller->open_channel(id_);
    if (!opened) return std::unexpected(std::move(opened.error()));
    channel = std::move(*opened);
  }
  auto kept = std::make_unique<Kept>(arrived_->caller->keep(), arrived_->message->text,
                                     *dispatcher_->long_messages_);
  if (!kept->hold.hold(kept->messages->memory_of(info_.principal.id), kept->text.size())) {
    return fail(kBusy, "The server has no memory for this message; try it again");
  }
  kept->channel = channel;
  kept_ = std::move(kept);
  permit_ = std::move(*permit);
  if (channel == nullptr) return {};
  channel->on_close([weak = weak_from_this()](DisconnectReason) {
    if (const auto self = weak.lock()) self->on_caller_left();
  });
  // The head of the reply to initialize names the session, so it must not be sent early.
  if (request_.kind != UnderstoodRequest::Kind::initialize) channel->may_take_long();
  return {};
}

/// Whether the middleware may wait. It may while the request is under way. After that it needs a
/// permit, as a call does.
bool RequestChain::may_wait() {
  if (!ended_ || permit_) return true;
  if (dispatcher_ == nullptr) return false;
  Result<CallPermit> permit = dispatcher_->calls_.admit(info_.principal);
  if (permit) {
    permit_ = std::move(*permit);
    return true;
  }
  static LogLimit limit;
  if (const auto left_out = limit.take()) {
    log_warning("A middleware is stopped: its client has no room for another call",
                {{"method", std::string_view(info_.method)}, {"left_out", *left_out}});
  }
  return false;
}

/// Passes the request on to the dispatcher.
void RequestChain::go_on() {
  if (arrived_ != nullptr) {
    arrived_->outcome =
        answer(*arrived_->message, arrived_->headers, *arrived_->caller, nullptr, *arrived_->out);
    return;
  }
  if (!LongMessages::is_long(kept_->text)) {
    MessageParser parser;
    go_on_later(parser.parse(kept_->text));
    return;
  }
  kept_->hold.release();
  kept_->parsed = kept_->messages->parse(
      std::move(kept_->text),
      [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->go_on_later(self->kept_->parsed->message());
      },
      info_.principal.id);
}

void RequestChain::go_on_later(const std::expected<Message, MessageError>& message) {
  if (!message) {
    refuse(message.error().error);
    return;
  }
  const std::unique_ptr<Kept> kept = std::move(kept_);
  // What answers the request has its own permit.
  permit_.leave();
  const std::shared_ptr<ReplyChannel> channel = kept->channel;
  if (channel != nullptr) channel->on_close({});
  std::string out;
  const Outcome outcome =
      answer(*message, kept->caller.headers, *kept->caller.caller, channel, out);
  if (channel == nullptr || outcome.kind != Outcome::Kind::answered) return;
  if (out.empty()) {
    channel->finish();  // the response has gone ahead of the stream that it started
  } else {
    channel->reply(outcome.http_status, std::move(out));
  }
}

Outcome RequestChain::answer(const Message& message, const MirroredHeaders* headers, Caller& caller,
                             std::shared_ptr<ReplyChannel> channel, std::string& out) {
  went_on_ = true;
  ThroughCaller through(*this, caller, std::move(channel));
  const std::size_t before = out.size();
  Outcome outcome;
  try {
    outcome = dispatcher_->answer(message, headers, std::move(request_), through, out);
  } catch (...) {
    // Caught here, so that it does not reach the middleware that called next().
    const Error error = error_of(std::current_exception(), middleware_failures());
    out.resize(before);
    outcome = through.opened() ? Outcome{.kind = Outcome::Kind::pending} : refusal(error, out);
  }
  if (outcome.kind != Outcome::Kind::pending) {
    // A `run` that pushes has sent its response already: then nothing is in `out`.
    finish({.error = out.size() > before ? error_code_of(std::string_view(out).substr(before), id_)
                                         : std::nullopt});
  }
  return outcome;
}

void RequestChain::on_stage_end(bool went_on, const std::exception_ptr& failure) {
  if (ended_) {
    if (failure) error_of(failure, middleware_failures());
  } else if (failure) {
    refuse(error_of(failure, middleware_failures()));
  } else if (!went_on) {
    middleware_failures().write("it has ended without next()");
    refuse({kInternalError, "Internal error", {}});
  }
}

/// The outcome of answering with `error`. Notifications get no answer.
Outcome RequestChain::refusal(const Error& error, std::string& out) const {
  if (id_.empty()) return {.kind = Outcome::Kind::accepted};
  return dispatcher_->error(id_, error, revision_, out);
}

/// Answers the request with `error`, whatever it waits for.
void RequestChain::refuse(const Error& error) {
  if (ended_ || dispatcher_ == nullptr) return;
  const std::shared_ptr<RequestChain> self = shared_from_this();
  const std::unique_ptr<Kept> kept = std::move(kept_);
  if (went_on_) {
    if (const auto call = call_.lock()) {
      call->abandon(error);
    } else if (const auto channel = channel_.lock()) {
      channel->abandon(error);
    }
  } else if (arrived_ != nullptr) {
    arrived_->outcome = refusal(error, *arrived_->out);
  } else if (kept != nullptr && kept->channel != nullptr) {
    std::string out;
    const Outcome outcome = refusal(error, out);
    kept->channel->on_close({});
    kept->channel->reply(outcome.http_status, std::move(out));
  }
  finish({.error = error.code});
}

/// Ends the request. Middleware that waits for the end is told of it. Middleware that has not
/// called next() is destroyed where it waits.
void RequestChain::finish(const RequestEnd& end) {
  if (std::exchange(ended_, true)) return;
  const std::shared_ptr<RequestChain> self = shared_from_this();
  permit_.leave();
  const auto stages = stages_;
  for (auto weak = stages.rbegin(); weak != stages.rend(); ++weak) {
    if (const auto stage = weak->lock()) stage->on_end(end);
  }
}

void RequestChain::on_caller_left() {
  const std::shared_ptr<RequestChain> self = shared_from_this();
  const std::unique_ptr<Kept> kept = std::move(kept_);
  finish({.cancelled = true});
}

void RequestChain::refuse_waiting(const Error& error) {
  if (!went_on_) refuse(error);
}

void RequestChain::stop() {
  const std::shared_ptr<RequestChain> self = shared_from_this();
  dispatcher_ = nullptr;
  kept_ = nullptr;
  permit_.leave();
  const auto stages = stages_;
  for (auto weak = stages.rbegin(); weak != stages.rend(); ++weak) {
    if (const auto stage = weak->lock()) stage->stop();
  }
}

RequestChains::~RequestChains() {
  stop();
}

void RequestChains::add(RequestChain& chain) {
  chain.number_ = chains_.size();
  chains_.push_back(&chain);
}

void RequestChains::remove(const RequestChain& chain) {
  RequestChain* const last = chains_.back();
  chains_[chain.number_] = last;
  last->number_ = chain.number_;
  chains_.pop_back();
}

std::vector<std::weak_ptr<RequestChain>> RequestChains::all() const {
  std::vector<std::weak_ptr<RequestChain>> all;
  all.reserve(chains_.size());
  for (RequestChain* const chain : chains_) all.push_back(chain->weak_from_this());
  return all;
}

void RequestChains::refuse_waiting(const Error& error) {
  for (const auto& weak : all()) {
    if (const auto chain = weak.lock()) chain->refuse_waiting(error);
  }
}

void RequestChains::stop() {
  for (const auto& weak : all()) {
    if (const auto chain = weak.lock()) chain->stop();
  }
  chains_.clear();
}

}  // namespace sluice
