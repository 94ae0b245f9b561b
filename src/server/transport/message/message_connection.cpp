#include "server/transport/message/message_connection.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/release_memory.hpp"
#include "core/sharing/client.hpp"
#include "json/json.hpp"
#include "protocol/chunk_json.hpp"
#include "rpc/error_codes.hpp"
#include "server/dispatch/batch.hpp"
#include "server/notifications/change_notifier.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// The most unanswered requests of one connection.
constexpr std::size_t kMaxPending = 1024;
/// With this many long answers waiting for room, no more messages are handled.
constexpr std::size_t kMaxLongAnswers = 32;
/// The most bytes of an answer that may wait for room without being charged: enough for
/// kNoAnswerMemory.
constexpr std::size_t kAnswerRefusal = 512;

/// What a request that is not answered yet takes of its client's memory, beside its id, which is
/// kept several times.
constexpr std::size_t kPendingMemory = 1024;
std::size_t memory_of_pending(const RequestId& id) {
  return kPendingMemory + 4 * id.size();
}

const Error kNoAnswerMemory{
    kBusy,
    "The server has no memory to keep the answer until what was sent before it "
    "is read; the request was carried out",
    {}};

bool is_cancellation(const Message& message) {
  return message.kind == MessageKind::notification && message.method == "notifications/cancelled";
}

}  // namespace

/// The channel of one request of a connection.
class MessageConnection::Channel final : public ReplyChannel {
 public:
  Channel(std::shared_ptr<MessageConnection> connection, RequestId id)
      : connection_(std::move(connection)), id_(std::move(id)) {}
  ~Channel() override {
    if (connection_ == nullptr) return;
    connection_->remove_long_answer(*this);
    connection_->forget(id_);
  }

  void reply(int /*http_status*/, std::string message) override {
    const std::shared_ptr<MessageConnection> connection = connection_;
    if (connection == nullptr) return;
    connection->answer(id_, std::move(message));
    finish();
  }
  bool write(std::string_view block) override {
    return connection_ == nullptr || connection_->send_framed(block);
  }
  bool write(const Bytes& block) override {
    return connection_ == nullptr || connection_->send_framed(block);
  }
  void finish() override {
    if (const auto connection = std::exchange(connection_, nullptr)) {
      connection->remove_long_answer(*this);
      connection->forget(id_);
    }
    // The tasks may own what owns this channel, so they are destroyed last.
    const CloseTask released = std::exchange(close_task_, {});
    const Executor::Task unmade = std::exchange(long_answer_, {});
  }
  void drop(const Error& error) override {
    std::string message;
    append_error(message, id_, error);
    reply(200, std::move(message));
  }
  [[nodiscard]] const Framing& framing() const override { return *framing_; }
  [[nodiscard]] bool can_stream() const override { return true; }
  void on_close(CloseTask task) override {
    // The old task may own what owns this channel, so it is destroyed last.
    const CloseTask old = std::exchange(close_task_, std::move(task));
  }
  void on_drain(Executor::Task task) override { drain_task_ = std::move(task); }
  void when_writable(Executor::Task answer) override {
    if (connection_ == nullptr) return;
    long_answer_ = std::move(answer);
    connection_->add_long_answer(*this);
  }
  void give_way() override {
    if (connection_ != nullptr) connection_->remove_long_answer(*this);
  }
  void make_long_answer() {
    if (Executor::Task answer = std::exchange(long_answer_, {})) answer();
  }

  /// The caller has gone or has cancelled. A caller that has cancelled can still be sent messages
  /// while the close task runs.
  void close(DisconnectReason reason) {
    if (connection_ != nullptr) connection_->remove_long_answer(*this);
    const Executor::Task unmade = std::exchange(long_answer_, {});
    if (reason == DisconnectReason::gone) connection_ = nullptr;
    if (CloseTask task = std::exchange(close_task_, {})) task(reason);
    connection_ = nullptr;
  }
  void drain() {
    if (drain_task_) drain_task_();
  }

 private:
  std::shared_ptr<MessageConnection> connection_;  // null once answered or closed
  const Framing* framing_ = &connection_->encoder_->framing();
  RequestId id_;
  CloseTask close_task_;
  Executor::Task drain_task_;
  Executor::Task long_answer_;  // while it waits for room
};

/// The session of a connection, which is told of changes.
class MessageConnection::Agreement final : public ChangeListener {
 public:
  Agreement(std::weak_ptr<MessageConnection> connection, const std::string& principal,
            const Revision& revision, const ClientDescription& client)
      : session(std::string(), principal, revision, client), connection_(std::move(connection)) {}

  [[nodiscard]] bool wants(const Change& change) const override { return session.wants(change); }
  void tell(const Change& change) override {
    const auto connection = connection_.lock();
    if (connection == nullptr) return;
    if (connection->blocked_) {
      session.miss(change);
      missed(*connection);
    } else {
      connection->send(message_of(change));
    }
  }
  /// As Session::Outlet.
  void say(const std::string& state_of, const std::string& message) {
    const auto connection = connection_.lock();
    if (connection == nullptr) return;
    if (!connection->blocked_) {
      connection->send(message);
    } else if (!state_of.empty()) {
      missed(*connection).add(state_of, message);
    }
  }
  void tell_missed() {
    const auto connection = connection_.lock();
    if (connection == nullptr || missed_ == nullptr) return;
    const bool all_sent = missed_->send(session, [&connection](const std::string& message) {
      if (connection->blocked_) return false;
      connection->send(message);
      return true;
    });
    if (all_sent) missed_ = nullptr;
  }
  void close() override {}

  Session session;

 private:
  MissedMessages& missed(const MessageConnection& connection) {
    if (missed_ == nullptr) {
      missed_ = std::make_unique<MissedMessages>(
          MemoryHold(connection.service_->memory_of(session.principal())));
    }
    return *missed_;
  }

  std::weak_ptr<MessageConnection> connection_;
  /// What came while the peer did not keep up; null: nothing. There are no more states than tasks
  /// of the session, because a peer whose messages are not read begins no more tasks.
  std::unique_ptr<MissedMessages> missed_;
};

/// Marks that serve_waiting() is running.
class MessageConnection::TakingTurns {
 public:
  explicit TakingTurns(MessageConnection& connection) : connection_(&connection) {
    connection.takes_turns_ = true;
  }
  ~TakingTurns() { connection_->takes_turns_ = false; }
  TakingTurns(const TakingTurns&) = delete;
  TakingTurns& operator=(const TakingTurns&) = delete;

 private:
  MessageConnection* connection_;
};

MessageConnection::MessageConnection(Service& service, Principal principal,
                                     const PushedChunkEncoder& encoder,
                                     std::vector<RequestField> fields)
    : service_(&service), principal_(std::move(principal)), encoder_(&encoder) {
  if (!fields.empty()) rare().fields = std::move(fields);
}

MessageConnection::~MessageConnection() = default;

void MessageConnection::attach(MessageOutput& output) {
  output_ = &output;
}

bool MessageConnection::on_message(std::string_view text, Executor::Task& handled) {
  if (LongMessages::is_long(text)) {
    handle_later(std::string(text), std::move(handled));
    return false;
  }
  const UnhandledPtr unhandled = handle(text, nullptr);
  if (unhandled == nullptr) return may_go_on(handled);
  unhandled->handled = std::move(handled);
  return false;
}

bool MessageConnection::on_kept_message(std::string text, Executor::Task& handled) {
  if (!LongMessages::is_long(text)) return on_message(text, handled);
  handle_later(std::move(text), std::move(handled));
  return false;
}

/// Returns false if many long answers wait. Then `handled` has been moved from, and runs when fewer
/// wait.
bool MessageConnection::may_go_on(Executor::Task& handled) {
  LongAnswers* const long_ones = long_answers();
  if (long_ones == nullptr || long_ones->waiting.size() < kMaxLongAnswers) return true;
  long_ones->held.push_back(std::move(handled));
  return false;
}

MessageConnection::UnhandledPtr MessageConnection::handle(std::string_view text,
                                                          LongMessage* parsed) {
  std::string response;
  if (parsed != nullptr && !is_batch(text) && parsed->message() &&
      parsed->is_cancelled(*parsed->message())) {
    return nullptr;
  }
  UnhandledPtr unhandled =
      is_batch(text)
          ? handle_batch(text, parsed, response)
          : handle(parsed != nullptr ? parsed->message() : service_->parser.parse(text), response);
  if (!response.empty()) send(std::move(response));
  service_->trim();
  return unhandled;
}

MessageConnection::UnhandledPtr MessageConnection::handle_batch(std::string_view text,
                                                                LongMessage* parsed,
                                                                std::string& response) {
  auto unhandled = std::make_shared<Unhandled>();
  Executor::Task handled = [this, unhandled] { go_on(unhandled); };
  sluice::handle_batch(
      text, parsed, nullptr, *service_, *this, SharedReply::Form::array,
      [this](const Message& message, const MirroredHeaders* /*headers*/, Caller& caller,
             std::string& out) { return dispatch_batched(message, caller, out); },
      handled, response);
  // If it was moved from, the batch is handled in parts.
  return handled ? nullptr : std::move(unhandled);
}

/// Posts the task of a message that held up others and has been handled.
void MessageConnection::go_on(UnhandledPtr handled) {
  service_->streams.executor().post([weak = weak_from_this(), message = std::move(handled)] {
    const auto self = weak.lock();
    if (self != nullptr && self->output_ != nullptr && message->handled) message->handled();
  });
}

void MessageConnection::handle_later(std::string text, Executor::Task handled) {
  std::unique_ptr<std::list<Later>>& later = rare().later;
  if (later == nullptr) later = std::make_unique<std::list<Later>>();
  later->push_back({nullptr, std::move(handled)});
  const auto at = std::prev(later->end());
  at->message = service_->long_messages.parse(
      std::move(text), [this, at] { handle_long(at); }, principal_.id);
  at->message->arrived_in(agreed_);
}

void MessageConnection::handle_long(std::list<Later>::iterator at) {
  const std::shared_ptr<MessageConnection> keep = shared_from_this();
  Later later = std::move(*at);
  rare_->later->erase(at);
  const UnhandledPtr unhandled = handle(later.message->text(), later.message.get());
  later.message = nullptr;
  if (unhandled == nullptr) {
    if (may_go_on(later.handled)) later.handled();
  } else {
    unhandled->handled = std::move(later.handled);
  }
  check_idle();
}

MessageConnection::UnhandledPtr MessageConnection::handle(
    const std::expected<Message, MessageError>& message, std::string& response) {
  if (!message) {
    Dispatcher::reject(message.error(), response);
  } else if (is_cancellation(*message)) {
    cancel_request(*message);
  } else {
    if (message->method == "initialize") was_quiet_ = pending_.empty();
    service_->dispatcher.dispatch(*message, nullptr, *this, response);
    // Messages behind an initialize belong to its session, and those behind a subscribe may be
    // about its stream. They wait.
    if (message->kind == MessageKind::request && pending_.contains(message->id) &&
        (message->method == "initialize" || message->method == "subscribe")) {
      return rare().held_up.emplace_back(std::make_shared<Unhandled>(message->id));
    }
  }
  return nullptr;
}

/// Pushed chunks follow the reply to their request, so a request that starts a push cannot be
/// answered together with others.
Outcome MessageConnection::dispatch_batched(const Message& message, Caller& caller,
                                            std::string& out) {
  if (is_cancellation(message)) {
    cancel_request(message);
    return {.kind = Outcome::Kind::accepted};
  }
  if (message.kind == MessageKind::request && pushes(message)) {
    append_error(
        out, message.id,
        {kInvalidRequest, "Invalid Request: what pushes a stream cannot be part of a batch", {}});
    return {};
  }
  return service_->dispatcher.dispatch(message, nullptr, caller, out);
}

void MessageConnection::refuse(const Error& error) {
  std::string response;
  append_error(response, {}, error);
  send(std::move(response));
}

void MessageConnection::on_drain() {
  blocked_ = false;
  send_kept();
  if (blocked_) return;
  if (const auto agreement = agreement_.lock()) agreement->tell_missed();
  serve_waiting();
}

/// Lets streams, calls and long answers send that waited for the output. Each sends one block at a
/// time. The next call begins where the output became full, so that none keeps the others waiting.
void MessageConnection::serve_waiting() {
  // A reader may end and leave its table during the loop, so this uses copies.
  std::vector<std::weak_ptr<Subscription>> readers;
  readers.reserve(subscriptions_.size());
  for (const auto& [id, subscribed] : subscriptions_) readers.push_back(subscribed.reader);
  std::vector<std::weak_ptr<Channel>> channels;
  channels.reserve(pending_.size());
  for (const auto& [id, channel] : pending_) channels.push_back(channel);
  // Long answers are the last.
  const std::size_t count = readers.size() + channels.size() + 1;
  const auto serve = [&](std::size_t which) {
    if (which < readers.size()) {
      if (const auto reader = readers[which].lock()) reader->resume();
    } else if (which < readers.size() + channels.size()) {
      if (const auto channel = channels[which - readers.size()].lock()) channel->drain();
    } else {
      next_long_answer();
    }
  };
  const TakingTurns turns(*this);
  do {
    stopped_ = false;
    for (std::size_t served = 0; served < count && !blocked_; ++served) {
      next_served_ %= static_cast<std::uint32_t>(count);
      serve(next_served_++);
    }
  } while (stopped_ && !blocked_);
}

/// Whether a sender that has just sent a block may send another one.
bool MessageConnection::may_send_more() {
  if (takes_turns_) stopped_ = true;
  return !blocked_ && !takes_turns_;
}

void MessageConnection::on_close() {
  output_ = nullptr;
  if (rare_ != nullptr) {
    rare_->idle_task = nullptr;
    rare_->held_up.clear();
    rare_->later = nullptr;
    rare_->long_answers = nullptr;
    rare_->kept = nullptr;
  }
  subscriptions_.clear();
  if (agreed_ != nullptr) agreed_->end();
  const auto pending = std::exchange(pending_, {});
  pending_bytes_ = 0;
  pending_hold_.release();
  for (const auto& [id, weak] : pending) {
    if (const auto channel = weak.lock()) channel->close(DisconnectReason::gone);
  }
}

void MessageConnection::when_idle(Executor::Task task) {
  rare().idle_task = std::make_unique<Executor::Task>(std::move(task));
  for (const auto& weak : std::exchange(rare_->listeners, {})) {
    if (const auto listener = weak.lock()) listener->close();
  }
  check_idle();
}

/// Posted, because what ends here may still be on the stack, or about to send its last message.
void MessageConnection::check_idle() {
  if (rare_ == nullptr || rare_->idle_task == nullptr || !is_idle()) return;
  service_->streams.executor().post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || !self->is_idle()) return;
    if (const auto task = std::exchange(self->rare_->idle_task, nullptr)) (*task)();
  });
}

Result<std::shared_ptr<ReplyChannel>> MessageConnection::open_channel(const RequestId& id) {
  if (pending_.size() >= kMaxPending) {
    return fail(kBusy, "This connection has " + std::to_string(kMaxPending) +
                           " unanswered requests; wait for some of them");
  }
  if (pending_.contains(id)) {
    return fail(kInvalidRequest, "Invalid Request: a request with this id is still unanswered");
  }
  // A channel for several requests gets a name that is no request's id.
  const RequestId name = id.empty() ? "batch " + std::to_string(++batches_) : id;
  const std::size_t bytes = pending_bytes_ + memory_of_pending(name);
  if (!pending_hold_.hold(service_->memory_of(principal_.id), bytes)) {
    return fail(
        kBusy,
        "Your unanswered requests have used all the memory that one client may have; wait for some "
        "of them");
  }
  auto channel = std::make_shared<Channel>(shared_from_this(), name);
  pending_.emplace(name, channel);
  pending_bytes_ = bytes;
  return channel;
}

Result<std::shared_ptr<Session>> MessageConnection::begin_session(const Revision& revision,
                                                                  const ClientDescription& client) {
  // What is under way speaks to the client in this session, and hears its answers there.
  if (agreed_ != nullptr && (!was_quiet_ || agreed_->has_tasks())) {
    return fail(kInvalidRequest,
                "Invalid Request: requests or tasks of this connection are under way; wait for "
                "them, or initialize on another connection");
  }
  const auto agreement =
      std::make_shared<Agreement>(weak_from_this(), principal_.id, revision, client);
  service_->changes->add(service_->streams.executor(), agreement);
  agreement->session.set_outlet(
      service_->streams.executor(),
      [weak = std::weak_ptr(agreement)](const std::string& state_of, const std::string& message) {
        if (const auto self = weak.lock()) self->say(state_of, message);
      });
  agreed_ = std::shared_ptr<Session>(agreement, &agreement->session);
  agreement_ = agreement;
  return agreed_;
}

std::shared_ptr<SessionStorage> MessageConnection::storage() {
  std::shared_ptr<SessionStorage>& storage = rare().storage;
  if (storage == nullptr) storage = std::make_shared<SessionStorage>();
  return storage;
}

std::optional<std::string> MessageConnection::field(std::string_view name) const {
  if (rare_ == nullptr) return {};
  const auto found = std::ranges::find(rare_->fields, name, &RequestField::name);
  if (found == rare_->fields.end()) return {};
  return found->value;
}

void MessageConnection::add_listener(std::weak_ptr<ChangeListener> listener) {
  std::vector<std::weak_ptr<ChangeListener>>& listeners = rare().listeners;
  std::erase_if(listeners, [](const auto& each) { return each.expired(); });
  listeners.push_back(std::move(listener));
}

void MessageConnection::forget(const RequestId& id) {
  if (pending_.erase(id) > 0) {
    pending_bytes_ -= memory_of_pending(id);
    // Holding less cannot fail.
    std::ignore = pending_hold_.hold(service_->memory_of(principal_.id), pending_bytes_);
  }
  if (rare_ == nullptr) return;
  const auto waited = std::ranges::find(rare_->held_up, id, &Unhandled::id);
  if (waited != rare_->held_up.end()) {
    go_on(std::move(*waited));
    rare_->held_up.erase(waited);
  }
  check_idle();
}

void MessageConnection::add_long_answer(Channel& channel) {
  std::unique_ptr<LongAnswers>& long_ones = rare().long_answers;
  if (long_ones == nullptr) long_ones = std::make_unique<LongAnswers>();
  long_ones->waiting.push_back(&channel);
  next_long_answer();
}

void MessageConnection::remove_long_answer(const Channel& channel) {
  LongAnswers* const long_ones = long_answers();
  if (long_ones == nullptr) return;
  if (std::erase(long_ones->waiting, &channel) != 0) let_go_on(*long_ones);
  if (long_ones->current != &channel) return;
  long_ones->current = nullptr;
  if (long_ones->waiting.empty()) return;
  // Posted, because the previous answer is on the stack.
  service_->streams.executor().post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->next_long_answer();
  });
}

void MessageConnection::next_long_answer() {
  LongAnswers* const long_ones = long_answers();
  if (blocked_ || long_ones == nullptr || long_ones->current != nullptr ||
      long_ones->waiting.empty()) {
    return;
  }
  Channel* const next = long_ones->waiting.front();
  long_ones->waiting.pop_front();
  long_ones->current = next;
  let_go_on(*long_ones);
  next->make_long_answer();
}

/// Lets input that was held up continue, if few enough long answers wait.
void MessageConnection::let_go_on(LongAnswers& long_ones) {
  if (long_ones.waiting.size() >= kMaxLongAnswers) return;
  for (Executor::Task& handled : std::exchange(long_ones.held, {})) {
    const auto held = std::make_shared<Unhandled>();
    held->handled = std::move(handled);
    go_on(held);
  }
}

void MessageConnection::send(std::string message) {
  if (output_ == nullptr) return;
  if (!output_->send(std::move(message))) blocked_ = true;
}

/// Any number of requests may be answered in one turn, in which the peer can read nothing. What
/// exceeds the output's high-water mark waits here.
void MessageConnection::answer(const RequestId& id, std::string message) {
  if (output_ == nullptr) return;
  if (!blocked_) {
    send(std::move(message));
    return;
  }
  MemoryHold memory(service_->memory_of(principal_.id));
  if (message.size() > kAnswerRefusal && !memory.add(message.capacity())) {
    release_memory(message);
    append_error(message, id, kNoAnswerMemory);
  }
  std::unique_ptr<std::deque<KeptAnswer>>& kept = rare().kept;
  if (kept == nullptr) kept = std::make_unique<std::deque<KeptAnswer>>();
  kept->push_back({std::move(message), std::move(memory), service_->streams.answer_mark()});
}

void MessageConnection::send_kept() {
  while (!blocked_ && has_kept()) {
    KeptAnswer next = std::move(rare_->kept->front());
    rare_->kept->pop_front();
    // The output charges the message to the same share.
    next.memory.release();
    send(std::move(next.message));
  }
  check_idle();
}

void MessageConnection::cancel_request(const Message& message) {
  const json::value* const request = params_of(message).if_contains("requestId");
  if (request == nullptr) return;
  const std::optional<std::string> id = exact_text(*request, message.text, {"params", "requestId"});
  if (!id) return;
  const auto found = pending_.find(*id);
  if (found == pending_.end()) {
    // Requests of a batch are known to the session.
    if (agreed_ != nullptr) agreed_->cancel_call(*id);
    return;
  }
  const std::shared_ptr<Channel> channel = found->second.lock();
  forget(*id);
  if (channel != nullptr) channel->close(DisconnectReason::cancelled);
}

}  // namespace sluice
