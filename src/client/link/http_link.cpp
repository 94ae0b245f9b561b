#include "client/link/http_link.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/link/nobody.hpp"
#include "client/link/reply_head.hpp"
#include "client/link/unknown_session.hpp"
#include "client/reply.hpp"
#include "client/session/handshake/handshake.hpp"
#include "core/log/log.hpp"
#include "core/text/text.hpp"
#include "json/json.hpp"
#include "net/http/http_types.hpp"
#include "net/http/sse.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/mirrored_headers.hpp"
#include "rpc/message.hpp"

namespace sluice {
namespace {

/// The longest session id that is kept.
constexpr std::size_t kMaxSessionId = 1024;
/// How long the stream of an answered request may take to end.
constexpr Duration kEpilogue = std::chrono::seconds(2);
/// How often a stream that belongs to no request is asked for again if the server may have none.
constexpr std::size_t kMaxRefusals = 8;
/// The shortest wait before a stream is resumed, whatever the server asks for.
constexpr Duration kShortestWait = std::chrono::milliseconds(100);

/// Visible ASCII (2025-11-25, Session Management).
bool is_session_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxSessionId &&
         std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}

/// So many bytes are kept of a reply that nobody awaits.
constexpr std::size_t kMaxRefusal = std::size_t{64} << 10U;

/// Whether the status says more than an error of MCP that answers no request.
bool is_about_http(int status) {
  return status == kUnauthorized || status == kForbidden || status == kNotFound ||
         status == kMethodNotAllowed || status == kTooManyRequests;
}

/// The longest reply in which an error without an id is looked for: each reply is searched for it.
constexpr std::size_t kMaxUnaddressed = std::size_t{4} << 10U;

/// Whether a message names no request.
bool is_unaddressed(const json::object& message) {
  const json::value* const id = message.if_contains("id");
  return id == nullptr || id->is_null();
}

/// What an HTTP status without a message of MCP means.
Error error_of_status(int status, std::string_view challenge, std::string_view body) {
  std::string message = "The server answers with HTTP " + std::to_string(status);
  if (const std::string_view phrase = reason_phrase(status); !phrase.empty()) {
    message.append(" ").append(phrase);
  }
  if (const std::string_view text = quotable(body); !text.empty()) {
    message.append(": ").append(text);
  }
  Error error(status, std::move(message));
  if (!challenge.empty()) error.data = to_json(json::object{{"wwwAuthenticate", challenge}});
  return error;
}

}  // namespace

class HttpLink::Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  /// `id`: of the request that is to be answered, or empty. `lane`: that it is in, or null.
  Exchange(HttpLink& link, std::uint64_t number, RequestId id, const Revision* revision, Lane* lane)
      : link_(&link),
        number_(number),
        lane_(lane),
        id_(std::move(id)),
        is_legacy_(revision != nullptr && revision->era == Era::legacy),
        backoff_(link.options_.resumption) {}
  ~Exchange() { detach(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] const RequestId& id() const { return id_; }
  /// The end of its reply is not waited for any more. Returns the lane that it was in, or null.
  Lane* leave_lane() {
    is_taken_ = true;
    return std::exchange(lane_, nullptr);
  }
  [[nodiscard]] bool is_legacy() const { return is_legacy_; }
  [[nodiscard]] bool is_standalone() const { return is_standalone_; }
  [[nodiscard]] bool is_aside() const { return id_.empty() && !is_standalone_; }
  /// A notification or an answer that the server may not have.
  [[nodiscard]] bool is_under_way_aside() const { return is_aside() && !is_taken_; }

  void keep(std::shared_ptr<void> memory) { memory_ = std::move(memory); }
  void post(HttpHeaderList headers, std::string body, std::string_view method) {
    is_probe_ = is_probe(method);
    begins_session_ = method == "initialize";
    session_ = link_->session_id_;
    if (method == "notifications/initialized") {
      link_->initializing_ = number_;
      timer_ = link_->loop_->schedule_at(
          link_->loop_->clock().now() + link_->options_.ready_patience, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->on_initialized();
          });
    }
    send({.method = "POST",
          .url = link_->options_.url,
          .headers = std::move(headers),
          .body = std::move(body)});
  }
  /// Reads the stream of messages that belong to no request, from its beginning or from where
  /// another one has left off.
  void listen(Reopening from) {
    is_standalone_ = true;
    was_open_ = from.after != 0;
    last_event_ = std::move(from.last_event);
    refusals_ = from.refusals;
    session_ = link_->session_id_;
    // Nobody would find out that the stream is gone, so it is opened again for as long as it takes.
    Backoff::Policy policy = link_->options_.resumption;
    policy.attempts = std::numeric_limits<std::uint32_t>::max();
    backoff_ = Backoff(policy);
    get();
  }
  void pause(bool is_paused) {
    is_paused_ = is_paused;
    call_.pause(is_paused);
  }
  /// Nobody is told of anything any more.
  void detach() {
    if (link_ != nullptr && timer_ != 0) link_->loop_->cancel(timer_);
    timer_ = 0;
    link_ = nullptr;
    call_.drop();
  }

  // HttpReplyCallbacks
  void on_connected() {
    if (link_ != nullptr) link_->owner_->on_connected(id_);
  }
  void on_head(const HttpReplyHead& head) {
    if (link_ == nullptr) return;
    status_ = head.status;
    const std::string_view type = media_type_of(head);
    other_type_ = equals_ignoring_case(type, "application/json") ? std::string_view() : type;
    redirect_ = is_redirect(status_) ? redirect_of(head) : std::string();
    const std::string_view coding = head.header("Content-Encoding");
    if (status_ == 200 && !coding.empty() && !equals_ignoring_case(coding, "identity")) {
      return fail({kLostConnection,
                   "The server's reply has a content coding that was not asked for: " +
                       std::string(quotable(coding)),
                   {}});
    }
    challenge_ = head.header("WWW-Authenticate");
    is_events_ = status_ == 200 && head.is_event_stream();
    if (is_events_) {
      events_ =
          SseDecoder({.line = link_->options_.max_message, .event = link_->options_.max_message});
      opened_at_ = link_->loop_->clock().now();
    }
    if (is_standalone_) link_->is_listening_ = is_events_;
    was_open_ |= is_events_;
    if (is_events_) refusals_ = 0;
    const bool is_resumed = !last_event_.empty();
    if (link_->is_listening_ && is_standalone_ && !is_resumed) link_->owner_->on_listening();
    if (begins_session_ && status_ == 200) {
      const std::string_view id = head.header("Mcp-Session-Id");
      if (is_session_id(id)) link_->session_id_ = session_ = id;
    }
    if (link_ == nullptr) return;
    if (!id_.empty() && status_ / 100 == 2) link_->reopen_stream(number_);
    on_initialized();
  }
  void on_sent() {
    if (link_ == nullptr) return;
    if (has_nothing_to_say()) return end();
    if (!is_under_way_aside()) return;
    if (status_ == kNotFound && !session_.empty()) return session_over();
    // The server has it, whatever it thinks of it. Others need not wait until the reply has ended.
    if (link_->last_words_.have_begun()) return end();
    memory_.reset();
    link_->keep_last(link_->taken_, kMaxTaken, number_);
    link_->send_next(leave_lane());
  }

  /// If the message was that the client is ready, it need not be waited for any more, whatever the
  /// server thinks of it.
  void on_initialized() {
    if (link_->initializing_ != number_) return;
    link_->loop_->cancel(std::exchange(timer_, 0));
    link_->initialized(true);
  }
  void on_body(std::string_view bytes) {
    if (link_ == nullptr || has_nothing_to_say()) return;
    const std::shared_ptr<Exchange> keep = shared_from_this();
    if (is_events_) {
      const auto fed = events_.feed(bytes, [this](const SseEvent& event) { on_event(event); });
      if (!fed && link_ != nullptr) fail(fed.error());
    } else if (is_aside()) {
      body_.append(bytes.substr(0, kMaxRefusal - body_.size()));
    } else if (body_.size() + bytes.size() > link_->options_.max_message) {
      fail({kBusy, "The server's answer is longer than this client takes", {}});
    } else {
      body_.append(bytes);
    }
  }
  void on_complete() {
    if (link_ == nullptr) return;
    const std::shared_ptr<Exchange> keep = shared_from_this();
    if (is_events_) {
      std::string why = "The stream ended before the answer came";
      if (is_misdirected_) why.append("; it answers another request");
      if (is_probe_) return fail({status_, std::move(why), {}});
      return stream_ended({kLostConnection, std::move(why), {}});
    }
    if (is_standalone_) return stream_refused();
    if (is_aside() && status_ / 100 == 2 && !body_.contains("\"jsonrpc\"")) return end();
    if (status_ / 100 == 2) {
      if (const auto error = unaddressed_error()) return fail(*error);
      // A page is no message, and why_unanswered() says that it is one.
      const bool is_page =
          !other_type_.empty() && !body_.starts_with('{') && !body_.starts_with('[');
      if (!body_.empty() && !is_page) is_misdirected_ |= !link_->owner_->on_reply(id_, body_);
      const bool is_wanted = link_ != nullptr && !id_.empty() && link_->owner_->awaits(id_);
      // Something answers a probe that does not know it, and the connection stands.
      const int code = is_probe_ ? status_ : kLostConnection;
      return is_wanted ? fail({code, why_unanswered(), {}}) : end();
    }
    if (is_get_ && is_passing_trouble(status_)) return stream_ended(not_resumed());
    if (is_get_) return fail(not_resumed());
    // An error with the id of the request is the answer to it, from a session that exists.
    const bool is_answered = !id_.empty() && response_id_of(body_) == id_;
    if (!session_.empty() && is_of_unknown_session(status_, body_, is_answered)) {
      return session_over();
    }
    const Result<json::value> body = parse_json(body_);
    const json::object* const members = body ? body->if_object() : nullptr;
    if (members != nullptr && members->contains("jsonrpc")) {
      const bool has_no_id = is_unaddressed(*members);
      // Whoever refuses the client by HTTP may put the request's id into its error all the same.
      const bool is_refusal = status_ == kUnauthorized || status_ == kForbidden;
      if (const auto error = error_of(*members); error && (has_no_id || is_refusal)) {
        return fail(is_about_http(status_) ? error_of_status(status_, challenge_, error->message)
                                           : *error);
      }
      link_->owner_->on_reply(id_, body_);
    }
    if (!redirect_.empty()) return fail({status_, redirect_, {}});
    fail(error_of_status(status_, challenge_, body_));
  }
  void on_failure(const Error& why) {
    if (link_ == nullptr) return;
    const std::shared_ptr<Exchange> keep = shared_from_this();
    // No connection was lost: there is no authorization, and the error says what to do. Nobody
    // reads that of a stream that was open.
    const bool is_refusal = why.code == kUnauthorized || why.code == kForbidden;
    if (is_refusal && is_standalone_ && was_open_ && ++refusals_ <= kMaxRefusals) {
      link_->reopening_ = {link_->last_number_, last_event_, refusals_};
    }
    if (is_refusal) return fail(why);
    stream_ended({kLostConnection, why.message, {}});
  }

 private:
  void session_over() {
    session_ == link_->session_id_ ? link_->owner_->on_session_over(id_)
                                   : link_->owner_->on_old_session_over(id_);
    end();
  }
  /// The server offers no stream of its own, at least not now. Some never do, and say so in ways of
  /// their own.
  void stream_refused() {
    const bool is_unknown = !session_.empty() && is_of_unknown_session(status_, body_, false);
    const bool is_trouble = status_ >= kInternalServerError || status_ == kRequestTimedOut ||
                            status_ == kConflict || status_ == kTooEarly;
    bool may_open = is_passing_trouble(status_);
    if (!may_open && was_open_ && !is_unknown) {
      may_open = status_ != kMethodNotAllowed;
    } else if (!may_open && (was_open_ || is_trouble)) {
      // Nothing else may tell an idle client that its session is gone.
      const bool waits = is_unknown && !link_->owner_->on_session_doubted();
      if (link_ == nullptr) return;
      may_open = waits || ++refusals_ <= kMaxRefusals;
    }
    // The server may not know the event any more from which it is to go on.
    if (status_ == kBadRequest || (is_unknown && refusals_ > 1)) last_event_.clear();
    if (may_open) return stream_ended(not_resumed());
    log_debug("the server offers no stream of its own", {{"status", status_}});
    end();
  }
  /// An error of MCP that names no request, in the reply to one.
  [[nodiscard]] std::optional<Error> unaddressed_error() const {
    const bool may_be_one =
        !id_.empty() && body_.size() <= kMaxUnaddressed && body_.contains("\"error\"");
    if (!may_be_one) return std::nullopt;
    const Result<json::value> body = parse_json(body_);
    const json::object* const members = body ? body->if_object() : nullptr;
    const bool is_one =
        members != nullptr && members->contains("jsonrpc") && is_unaddressed(*members);
    return is_one ? error_of(*members) : std::nullopt;
  }
  /// A stream in place of a 202 (2025-11-25, Sending Messages to the Server).
  [[nodiscard]] bool has_nothing_to_say() const { return is_events_ && is_aside(); }

  void send(HttpClientRequest request) {
    status_ = 0;
    is_events_ = false;
    body_.clear();
    // Whoever waits for an answer decides for how long. The standalone stream may have nothing to
    // say for days.
    request.is_patient = is_standalone_ || !id_.empty();
    HttpReplyCallbacks callbacks = callbacks_of(weak_from_this());
    if (!is_probe_) callbacks.on_connected = {};  // it would cost each request a task of the loop
    call_ = link_->http_.send(std::move(request), std::move(callbacks));
    call_.pause(is_paused_);
  }
  void get() {
    HttpHeaderList headers = link_->headers_for({.text = {}, .revision = link_->revision_});
    std::erase_if(headers, [](const auto& field) {
      return field.first == "Content-Type" || field.first == "Accept";
    });
    headers.emplace_back("Accept", "text/event-stream");
    if (!last_event_.empty()) headers.emplace_back("Last-Event-ID", last_event_);
    is_get_ = true;
    send({.method = "GET", .url = link_->options_.url, .headers = std::move(headers)});
  }

  void on_event(const SseEvent& event) {
    if (link_ == nullptr) return;
    last_event_ = event.last_event_id;
    backoff_.reset();
    if (event.type != "message" || event.data.empty()) return;
    if (!link_->owner_->on_reply(id_, event.data)) is_misdirected_ = true;
    // Nothing should follow the answer but the stream's end.
    const bool is_answered = link_ != nullptr && !id_.empty() && !link_->owner_->awaits(id_);
    if (!is_answered || timer_ != 0) return;
    timer_ = link_->loop_->schedule_at(link_->loop_->clock().now() + kEpilogue,
                                       [weak = weak_from_this()] {
                                         if (const auto self = weak.lock()) self->end();
                                       });
    link_->keep_last(link_->answered_, kMaxAnswered, number_);
  }

  [[nodiscard]] Error not_resumed() const {
    return {status_, "The stream broke off and cannot be resumed: HTTP " + std::to_string(status_)};
  }
  /// Why a reply of success, which is no stream, does not answer its request.
  [[nodiscard]] std::string why_unanswered() const {
    if (body_.empty()) return "The server accepted the request without an answer";
    if (!other_type_.empty()) return "The server's reply is no answer, but " + other_type_;
    if (is_misdirected_) return "The server's reply answers another request";
    const Result<json::value> body = parse_json(body_);
    return body ? "The server's reply is no answer"
                : "The server's answer cannot be read: " + body.error().message;
  }
  /// The stream has ended or broken off, perhaps before its answer.
  void stream_ended(Error why) {
    if (is_standalone_) link_->is_listening_ = false;
    const bool is_wanted = is_standalone_ || link_->owner_->awaits(id_);
    if (!is_wanted) return end();
    // Another session does not have what this one's streams have left to say.
    const bool is_over = is_legacy_ && session_ != link_->session_id_;
    const bool is_resumable =
        is_legacy_ && !is_over && (is_standalone_ || (!id_.empty() && !last_event_.empty()));
    const TimePoint now = link_->loop_->clock().now();
    if (is_events_ && now - opened_at_ >= link_->options_.lasting) backoff_.reset();
    std::optional<Duration> wait = is_resumable ? backoff_.next() : std::nullopt;
    if (!wait) {
      if (is_over) why.message.append("; the session of the stream is over");
      return fail(why, &ServerLink::Owner::on_broken_off);
    }
    if (const auto asked = events_.retry_milliseconds()) {
      using Milliseconds = std::chrono::duration<std::uint64_t, std::milli>;
      wait = std::max(at_most_forever(Milliseconds(*asked)), kShortestWait);
    }
    timer_ = link_->loop_->schedule_at(now + *wait, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr || self->link_ == nullptr) return;
      self->timer_ = 0;
      self->get();
    });
  }
  /// Tells why there is no answer, if one is awaited.
  void fail(const Error& why,
            void (ServerLink::Owner::*tell)(const RequestId&,
                                            const Error&) = &ServerLink::Owner::on_unanswered) {
    if (link_ != nullptr && !id_.empty()) (link_->owner_->*tell)(id_, why);
    end();
  }
  void end() {
    const std::shared_ptr<Exchange> keep = shared_from_this();
    HttpLink* const link = link_;
    detach();
    if (link == nullptr) return;
    if (link->initializing_ == number_) link->initialized(true);
    link->forget(number_);
  }

  std::shared_ptr<void> memory_;  // of the message
  HttpLink* link_;                // null: it is over
  const std::uint64_t number_;
  Lane* lane_;
  const RequestId id_;
  const bool is_legacy_;
  Backoff backoff_;
  AuthorizedHttp::Call call_;
  int status_ = 0;
  bool is_events_ = false;
  bool is_get_ = false;
  bool is_paused_ = false;
  bool is_standalone_ = false;
  bool was_open_ = false;     // the stream of events
  std::size_t refusals_ = 0;  // of the stream, in a row
  bool begins_session_ = false;
  bool is_probe_ = false;
  bool is_taken_ = false;  // by the server, or its session is over
  SseDecoder events_;
  TimePoint opened_at_{};  // the stream of events
  std::string body_;
  std::string other_type_;       // of the reply, if it is not JSON
  std::string redirect_;         // where the server wants the request to go
  bool is_misdirected_ = false;  // the reply has the answer to another request
  std::string challenge_;
  std::string session_;     // of the server that it belongs to; empty: none
  std::string last_event_;  // where the stream can be resumed
  Executor::TimerId timer_ = 0;
};

HttpLink::HttpLink(EventLoop& loop, HttpLinkOptions options)
    : loop_(&loop), options_(std::move(options)), http_(loop, options_.http, options_.authorizer) {}

HttpLink::~HttpLink() {
  leave();
}

void HttpLink::close(std::function<void()> done) {
  last_words_.begin(std::move(done), [this] { leave(); });
  owner_ = &nobody();
  std::erase_if(held_, [](const OutgoingMessage& held) { return !held.id.empty(); });
  std::erase_if(exchanges_, [](const auto& each) {
    if (each.second->is_under_way_aside()) return false;
    each.second->detach();
    return true;
  });
  if (exchanges_.empty()) leave();
}

void HttpLink::leave() {
  held_.clear();
  forget_waiting();
  for (const auto& [number, exchange] : std::exchange(exchanges_, {})) exchange->detach();
  std::function<void()> done = last_words_.end();
  if (session_id_.empty()) return done();
  HttpHeaderList headers = headers_for({.text = {}, .revision = revision_});
  session_id_.clear();
  http_.send_last(
      {.method = "DELETE", .url = options_.url, .headers = std::move(headers), .body = {}},
      kFarewell, std::move(done));
}

Result<void> HttpLink::send(OutgoingMessage message) {
  if (exchanges_.size() + held_.size() >= kMaxPosts) {
    return fail(kBusy,
                "There are " + std::to_string(kMaxPosts) + " requests to this server under way");
  }
  const bool begins_session = message.method == "initialize";
  const bool is_initialized = message.method == "notifications/initialized";
  if (begins_session) {
    session_id_.clear();
    if (initializing_ != 0) initialized(false);
    forget_session();
  }
  if (initializing_ != 0) {
    held_.push_back(std::move(message));
    return {};
  }
  if (is_initialized) revision_ = message.revision;
  const Lane* const lane = lane_of(message);
  if (lane != nullptr && !lane->waiting.empty() &&
      (lane->waiting.size() >= kMaxPosts ||
       lane->waiting_bytes + message.text.size() > kMaxWaiting)) {
    return fail(kBusy, "The server is too slow: " + std::to_string(lane->waiting.size()) +
                           " messages of " + std::to_string(lane->waiting_bytes) +
                           " bytes already wait to be sent");
  }
  dispatch(std::move(message));
  return {};
}

void HttpLink::forget_session() {
  // A new session may use the ids of the old one again.
  forget_waiting();
  reopening_ = {};
  std::erase_if(exchanges_, [](const auto& each) { return each.second->is_standalone(); });
  std::vector<std::uint64_t> left;
  for (const auto& [number, exchange] : exchanges_) {
    if (!exchange->is_under_way_aside()) continue;
    left.push_back(number);
    if (Lane* const lane = exchange->leave_lane(); lane != nullptr) --lane->under_way;
  }
  for (const std::uint64_t number : left) keep_last(taken_, kMaxTaken, number);
}

void HttpLink::forget_waiting() {
  for (Lane* const lane : {&notifications_, &answers_}) {
    lane->waiting.clear();
    lane->waiting_bytes = 0;
  }
}

HttpLink::Lane* HttpLink::lane_of(const OutgoingMessage& message) {
  if (!message.id.empty()) return nullptr;
  if (message.method.empty()) return &answers_;
  // All others wait for this one anyway, but not for ever.
  return message.method == "notifications/initialized" ? nullptr : &notifications_;
}

void HttpLink::dispatch(OutgoingMessage message) {
  Lane* const lane = lane_of(message);
  if (lane == nullptr || lane->under_way < lane->most) return transmit(std::move(message), lane);
  lane->waiting_bytes += message.text.size();
  lane->waiting.push_back(std::move(message));
}

void HttpLink::transmit(OutgoingMessage message, Lane* lane) {
  const std::uint64_t number = ++last_number_;
  const auto exchange =
      std::make_shared<Exchange>(*this, number, message.id, message.revision, lane);
  exchange->keep(std::move(message.memory));
  exchanges_.emplace(number, exchange);
  if (lane != nullptr) ++lane->under_way;
  HttpHeaderList headers = headers_for(message);
  exchange->post(std::move(headers), std::move(message.text), message.method);
}

/// The server has been told that the client is ready. `is_current`: in a session that goes on.
void HttpLink::initialized(bool is_current) {
  initializing_ = 0;
  // Messages that belong to no request have a place to go before the first request comes.
  if (is_current && !last_words_.have_begun()) listen({});
  // There is room: they count while they are held.
  for (OutgoingMessage& message : std::exchange(held_, {})) dispatch(std::move(message));
}

bool HttpLink::drop(const RequestId& id) {
  if (std::erase_if(held_, [&id](const OutgoingMessage& held) { return held.id == id; }) > 0) {
    return true;
  }
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->id() != id) continue;
    const std::shared_ptr<Exchange> dropped = exchange;
    dropped->detach();
    exchanges_.erase(number);
    return !dropped->is_legacy();
  }
  return false;
}

void HttpLink::pause(const RequestId& id, bool is_paused) {
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->id() == id) exchange->pause(is_paused);
  }
}

HttpHeaderList HttpLink::headers_for(const OutgoingMessage& message) const {
  static constexpr std::size_t kOwn = 6;  // the most that are added here
  HttpHeaderList headers;
  headers.reserve(options_.headers.size() + message.headers.size() + kOwn);
  headers = options_.headers;
  headers.emplace_back("Content-Type", "application/json");
  headers.emplace_back("Accept", "application/json, text/event-stream");
  if (message.revision != nullptr && message.method != "initialize") {
    headers.emplace_back("MCP-Protocol-Version", message.revision->name);
    if (!session_id_.empty()) headers.emplace_back("Mcp-Session-Id", session_id_);
  }
  if (message.revision != nullptr && message.revision->routing_headers && !message.method.empty()) {
    headers.emplace_back("Mcp-Method", message.method);
    if (!message.name.empty()) headers.emplace_back("Mcp-Name", encode_header_value(message.name));
    for (const auto& field : message.headers) headers.push_back(field);
  }
  return headers;
}

void HttpLink::forget(std::uint64_t number) {
  const auto ended = exchanges_.extract(number);
  if (ended.empty()) return;
  send_next(ended.mapped()->leave_lane());
  if (last_words_.have_begun() && exchanges_.empty()) leave();
}

void HttpLink::keep_last(std::deque<std::uint64_t>& kept, std::size_t most, std::uint64_t number) {
  kept.push_back(number);
  if (kept.size() <= most) return;
  // Most have ended meanwhile.
  const auto oldest = exchanges_.extract(kept.front());
  kept.pop_front();
  if (!oldest.empty()) oldest.mapped()->detach();
}

void HttpLink::send_next(Lane* lane) {
  if (lane == nullptr) return;
  --lane->under_way;
  if (lane->waiting.empty()) return;
  OutgoingMessage next = std::move(lane->waiting.front());
  lane->waiting.pop_front();
  lane->waiting_bytes -= next.text.size();
  transmit(std::move(next), lane);
}

void HttpLink::reopen_stream(std::uint64_t number) {
  if (reopening_.after != 0 && number > reopening_.after) listen(std::exchange(reopening_, {}));
}

void HttpLink::listen(Reopening from) {
  const std::uint64_t number = ++last_number_;
  const auto exchange = std::make_shared<Exchange>(*this, number, RequestId(), revision_, nullptr);
  exchanges_.emplace(number, exchange);
  exchange->listen(std::move(from));
}

}  // namespace sluice
