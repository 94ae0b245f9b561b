#include "server/sessions/session.hpp"

#include <algorithm>
#include <utility>

#include "protocol/input_rounds.hpp"
#include "rpc/error_codes.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

std::unexpected<Error> over() {
  return fail(kInvalidRequest, "The session has ended; begin another with initialize");
}

std::unexpected<Error> too_many(std::size_t most, std::string_view what) {
  return fail(kLimitReached, "This session has " + std::to_string(most) + " " + std::string(what) +
                                 ", the most it may");
}

/// The outcome in a response's body. A copy, because the body's memory belongs to the parser.
Result<json::value> outcome_of(const json::object& body) {
  if (const json::value* result = body.if_contains("result")) {
    if (size_of(*result, kMaxAnswerValues).values > kMaxAnswerValues) {
      return fail(kInternalError, "Its result has more than " + std::to_string(kMaxAnswerValues) +
                                      " values and names");
    }
    return json::value(*result, json::storage_ptr());
  }
  Error error{kInternalError, "The client answered with an error", {}};
  const json::value* const given = body.if_contains("error");
  const json::object* const members = given == nullptr ? nullptr : given->if_object();
  if (members == nullptr) return std::unexpected(std::move(error));
  if (const json::value* code = members->if_contains("code");
      code != nullptr && code->is_int64() && std::in_range<int>(code->get_int64())) {
    error.code = static_cast<int>(code->get_int64());
  }
  if (const json::value* text = members->if_contains("message");
      text != nullptr && text->is_string()) {
    error.message = text->get_string();
  }
  return std::unexpected(std::move(error));
}

}  // namespace

Error no_memory_for_subscriptions() {
  return {kLimitReached,
          "Your streams and subscriptions have used all the memory that one client may have; end "
          "some, or raise "
          "streams.max_total_bytes",
          {}};
}

Session::Session(std::string id, std::string principal, const Revision& revision,
                 ClientDescription client, Duration resume_window)
    : id_(std::move(id)),
      principal_(std::move(principal)),
      revision_(&revision),
      client_(std::move(client)),
      resume_window_(resume_window) {}

Result<void> Session::subscribe(const std::string& uri, std::shared_ptr<MemoryShare> memory) {
  const std::lock_guard lock(mutex_);
  if (ended_) return over();
  if (subscriptions_ == nullptr) subscriptions_ = std::make_unique<Subscriptions>();
  Subscriptions& held = *subscriptions_;
  if (held.uris.contains(uri)) return {};
  if (held.uris.size() >= kMaxSubscriptions) {
    return too_many(kMaxSubscriptions, "resource subscriptions");
  }
  if (held.bytes + uri.size() > kMaxSubscribedBytes) {
    return too_many(kMaxSubscribedBytes, "bytes of URIs subscribed to");
  }
  if (held.uris.empty()) held.memory = MemoryHold(std::move(memory));
  if (!held.memory.add(memory_of_subscription(uri))) {
    return std::unexpected(no_memory_for_subscriptions());
  }
  held.uris.insert(uri);
  held.bytes += uri.size();
  return {};
}

void Session::unsubscribe(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  if (subscriptions_ == nullptr || subscriptions_->uris.erase(uri) == 0) return;
  subscriptions_->bytes -= uri.size();
  subscriptions_->memory.remove(memory_of_subscription(uri));
  forget_missed_locked({Change::Kind::resource, uri});
}

std::set<std::string, std::less<>> Session::subscriptions() const {
  const std::lock_guard lock(mutex_);
  return subscriptions_ == nullptr ? std::set<std::string, std::less<>>() : subscriptions_->uris;
}

bool Session::subscribed(const std::string& uri) const {
  return wants({Change::Kind::resource, uri});
}

bool Session::wants(const Change& change) const {
  const std::lock_guard lock(mutex_);
  return wants_locked(change);
}

bool Session::wants_locked(const Change& change) const {
  switch (change.kind) {
    case Change::Kind::resource:
      return subscriptions_ != nullptr && subscriptions_->uris.contains(change.subject);
    case Change::Kind::elicitation:
      return asked_ != nullptr &&
             std::ranges::find(asked_->elicitations, change.subject) != asked_->elicitations.end();
    default:
      return !ended_;
  }
}

void Session::miss(const Change& change) {
  const std::lock_guard lock(mutex_);
  if (!wants_locked(change)) return;
  if (missed_ == nullptr) missed_ = std::make_unique<MissedChanges>();
  missed_->add(change);
}

std::optional<Change> Session::take_missed() {
  const std::lock_guard lock(mutex_);
  if (missed_ == nullptr || missed_->empty()) return std::nullopt;
  return missed_->take();
}

void Session::forget_missed_locked(const Change& change) {
  if (missed_ != nullptr) missed_->remove(change);
}

Result<std::unique_ptr<Session::Call>> Session::add_call(const std::shared_ptr<Session>& session,
                                                         RequestId request_id, Executor& loop,
                                                         std::function<void()> cancel) {
  const std::lock_guard lock(session->mutex_);
  if (session->ended_) return over();
  if (session->calls_.size() >= kMaxCalls) return too_many(kMaxCalls, "unanswered requests");
  const bool added =
      session->calls_.try_emplace(request_id, CallEntry{{&loop, std::move(cancel)}}).second;
  if (!added) {
    return fail(kInvalidRequest, "Invalid Request: a request with this id is still unanswered");
  }
  return std::make_unique<Call>(session, std::move(request_id));
}

void Session::cancel_call(const RequestId& request_id) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(request_id);
  if (found == calls_.end()) {
    if (arrivals_ == nullptr || request_id.size() > kMaxEarlyId) return;
    std::deque<RequestId>& cancelled = arrivals_->cancelled;
    cancelled.push_back(request_id);
    if (cancelled.size() > kMaxEarlyCancellations) cancelled.pop_front();
    return;
  }
  found->second.is_cancelled = true;
  found->second.cancel.post();
}

Session::Arrival::Arrival(std::shared_ptr<Session> session) : session_(std::move(session)) {
  const std::lock_guard lock(session_->mutex_);
  if (session_->arrivals_ == nullptr) session_->arrivals_ = std::make_unique<Arrivals>();
  ++session_->arrivals_->count;
}

Session::Arrival::~Arrival() {
  const std::lock_guard lock(session_->mutex_);
  if (--session_->arrivals_->count == 0) session_->arrivals_ = nullptr;
}

bool Session::Arrival::is_cancelled(const RequestId& request_id) const {
  const std::lock_guard lock(session_->mutex_);
  return std::ranges::find(session_->arrivals_->cancelled, request_id) !=
         session_->arrivals_->cancelled.end();
}

void Session::hand_over_call(const RequestId& request_id, Executor& loop,
                             std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  CallEntry& call = calls_.at(request_id);
  call.cancel = {&loop, std::move(cancel)};
  if (call.is_cancelled || ended_) call.cancel.post();
}

void Session::forget_call(const RequestId& request_id) {
  const std::lock_guard lock(mutex_);
  calls_.erase(request_id);
}

void Session::ask_to_open(std::string elicitation_id) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string>& elicitations = asked().elicitations;
  if (elicitations.size() >= kMaxElicitations) {
    forget_missed_locked({Change::Kind::elicitation, elicitations.front()});
    elicitations.erase(elicitations.begin());
  }
  elicitations.push_back(std::move(elicitation_id));
}

bool Session::asked_to_open(std::string_view elicitation_id) const {
  return wants({Change::Kind::elicitation, std::string(elicitation_id)});
}

Result<RequestId> Session::expect_response(Executor& loop, Answer answer) {
  const std::lock_guard lock(mutex_);
  if (ended_) return over();
  std::unordered_map<RequestId, Expected>& expected = asked().expected;
  if (expected.size() >= kMaxRequests) return too_many(kMaxRequests, "requests to its client");
  RequestId id = std::to_string(++last_number_);
  expected.try_emplace(id, Expected{&loop, std::move(answer)});
  return id;
}

void Session::forget_response(const RequestId& id) {
  Answer released;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  if (asked_ == nullptr) return;
  const auto found = asked_->expected.find(id);
  if (found == asked_->expected.end()) return;
  released = std::move(found->second.answer);
  asked_->expected.erase(found);
}

bool Session::awaits_response() const {
  const std::lock_guard lock(mutex_);
  return asked_ != nullptr && !asked_->expected.empty();
}

bool Session::on_response(const Message& message) {
  std::unordered_map<RequestId, Expected>::node_type expected;
  {
    const std::lock_guard lock(mutex_);
    if (asked_ != nullptr) expected = asked_->expected.extract(message.id);
  }
  if (expected.empty()) return false;
  expected.mapped().loop->post(
      [answer = std::move(expected.mapped().answer),
       outcome = outcome_of(*message.body)]() mutable { answer(std::move(outcome)); });
  return true;
}

std::unique_ptr<Session::Reader> Session::add_reader(const std::shared_ptr<Session>& session,
                                                     Executor& loop, std::function<void()> close) {
  const std::lock_guard lock(session->mutex_);
  if (session->ended_) return nullptr;
  const std::uint64_t number = ++session->last_number_;
  session->readers_.try_emplace(number, PostedTask{&loop, std::move(close)});
  return std::make_unique<Reader>(session, number);
}

void Session::forget_reader(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  readers_.erase(number);
}

SessionStorage& Session::storage() {
  const std::lock_guard lock(mutex_);
  if (storage_ == nullptr) storage_ = std::make_unique<SessionStorage>();
  return *storage_;
}

Session::Streams& Session::streams_locked() {
  if (streams_ == nullptr) streams_ = std::make_unique<Streams>();
  return *streams_;
}

std::optional<StreamId> Session::standalone_stream() const {
  const std::lock_guard lock(mutex_);
  return streams_ == nullptr ? std::nullopt : streams_->standalone;
}

std::shared_ptr<StandaloneStream> Session::standalone_writer() const {
  const std::lock_guard lock(mutex_);
  return streams_ == nullptr ? nullptr : streams_->standalone_writer;
}

StreamId Session::offer_standalone_stream(const std::shared_ptr<ChunkStream>& stream,
                                          Executor& loop,
                                          std::shared_ptr<StandaloneStream> writer) {
  const std::lock_guard lock(mutex_);
  Streams& streams = streams_locked();
  if (!streams.standalone) {
    streams.standalone = stream->id();
    streams.standalone_writer = std::move(writer);
    keep_locked(stream, loop);
  }
  return *streams.standalone;
}

void Session::forget_standalone_stream(const StreamId& stream) {
  const std::lock_guard lock(mutex_);
  if (streams_ == nullptr || streams_->standalone != stream) return;
  streams_->standalone.reset();
  streams_->standalone_writer.reset();
}

void Session::keep(const std::shared_ptr<ChunkStream>& stream, Executor& loop) {
  const std::lock_guard lock(mutex_);
  keep_locked(stream, loop);
}

void Session::keep_locked(const std::shared_ptr<ChunkStream>& stream, Executor& loop) {
  auto& [standalone, writer, kept, sweep_at] = streams_locked();
  if (kept.size() >= sweep_at) {
    std::erase_if(kept, [](const Kept& each) { return each.stream.expired(); });
    sweep_at = std::max<std::size_t>(8, 2 * kept.size());
  }
  kept.push_back({&loop, stream});
  if (ended_) kept.back().discard();
}

/// Runs on the stream's loop. Only there is the stream locked, so that it is destroyed nowhere
/// else.
void Session::Kept::discard() const {
  loop->post([weak = stream] {
    if (const auto ended = weak.lock()) ended->discard();
  });
}

void Session::set_outlet(Executor& loop, Outlet outlet) {
  const std::lock_guard lock(mutex_);
  connected_ = std::make_unique<Connected>(&loop, std::move(outlet));
}

bool Session::send(const std::string& state_of, const std::shared_ptr<const std::string>& message) {
  const std::lock_guard lock(mutex_);
  if (connected_ == nullptr) return false;
  connected_->loop->post(
      [outlet = connected_->outlet, state_of, message] { outlet(state_of, *message); });
  return true;
}

std::optional<TimePoint> Session::idle_since() const {
  const std::lock_guard lock(mutex_);
  if (!calls_.empty() || !readers_.empty()) return std::nullopt;
  return TimePoint(TimePoint::duration(used_.load()));
}

bool Session::expired(TimePoint now, Duration expiry) {
  const std::optional<TimePoint> used = idle_since();
  if (!used) touch(now);
  return used && *used <= now - expiry;
}

void Session::end() {
  std::unique_ptr<Asked> asked;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (const auto& [id, call] : calls_) call.cancel.post();
  for (const auto& [number, close] : readers_) close.post();
  if (streams_ != nullptr) {
    for (const Kept& each : streams_->kept) each.discard();
  }
  subscriptions_ = nullptr;
  missed_ = nullptr;
  // The answers do not run: the calls that wait for them are being cancelled.
  asked = std::move(asked_);
}

bool Session::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace sluice
