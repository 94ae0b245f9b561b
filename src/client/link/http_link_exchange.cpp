#include "client/link/http_link_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "client/link/reply_head.hpp"
#include "client/link/unknown_session.hpp"
#include "client/reply.hpp"
#include "client/session/handshake/handshake.hpp"
#include "core/log/log.hpp"
#include "core/text/field_value.hpp"
#include "core/text/text.hpp"
#include "json/json.hpp"
#include "net/http/http_types.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// The longest session id that is kept.
constexpr std::size_t kMaxSessionId = 1024;
/// How long the stream of an answered request may take to end.
constexpr Duration kEpilogue = std::chrono::seconds(2);
/// How often a stream that belongs to no request is asked for again if the server may have none.
constexpr std::size_t kMaxRefusals = 8;
/// How long a stream that never was is not asked for again after it was refused authorization. Some
/// servers have none, and say so in this way; each time costs them a new token.
constexpr Duration kReopeningPause = std::chrono::seconds(30);
/// The shortest wait before a stream is resumed, whatever the server asks for.
constexpr Duration kShortestWait = std::chrono::milliseconds(100);

/// How often it is asked to go on from an event that it may not know; a gateway may refuse it, too.
constexpr std::size_t kMaxRefusalsOfEvent = 4;
/// The longest id of an event that is sent back to the server.
constexpr std::size_t kMaxEventId = 4096;

/// So many bytes are kept of a reply that nobody awaits.
constexpr std::size_t kMaxRefusal = std::size_t{64} << 10U;

/// Whether the status says more than an error of MCP that answers no request.
bool is_about_http(int status) {
  return status == kUnauthorized || status == kForbidden || status == kNotFound ||
         status == kMethodNotAllowed || status == kTooManyRequests;
}

/// The longest message in which an error without an id is looked for: each is searched for it.
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

/// Visible ASCII (2025-11-25, Session Management).
bool HttpLink::Exchange::is_session_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxSessionId &&
         std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}

/// A field's value has no blanks at its ends (RFC 9110, 5.5).
bool HttpLink::Exchange::is_event_id(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const bool has_blanks =
      !text.empty() && (kBlanks.contains(text.front()) || kBlanks.contains(text.back()));
  return text.size() <= kMaxEventId && is_field_value(text) && !has_blanks;
}

void HttpLink::Exchange::post(HttpHeaderList headers, std::string body, std::string_view method) {
  is_probe_ = is_probe(method);
  begins_session_ = method == "initialize";
  session_ = link_->session_id_;
  if (method == "notifications/initialized") {
    link_->initializing_ = number_;
    timer_ = link_->loop_->schedule_at(link_->loop_->clock().now() + link_->options_.ready_patience,
                                       [weak = weak_from_this()] {
                                         if (const auto self = weak.lock()) self->on_initialized();
                                       });
  }
  send({.method = "POST",
        .url = link_->options_.url,
        .headers = std::move(headers),
        .body = std::move(body)});
}

void HttpLink::Exchange::listen(Reopening from) {
  is_standalone_ = true;
  was_open_ = from.was_open;
  last_event_ = std::move(from.last_event);
  refusals_ = from.refusals;
  session_ = link_->session_id_;
  // Nobody would find out that the stream is gone, so it is opened again for as long as it takes.
  Backoff::Policy policy = link_->options_.resumption;
  policy.attempts = std::numeric_limits<std::uint32_t>::max();
  backoff_ = Backoff(policy);
  get();
}

void HttpLink::Exchange::take_up(std::string last_event) {
  session_ = link_->session_id_;
  last_event_ = std::move(last_event);
  get();
}

void HttpLink::Exchange::detach() {
  if (link_ != nullptr && timer_ != 0) link_->loop_->cancel(timer_);
  timer_ = 0;
  link_ = nullptr;
  call_.drop();
}

void HttpLink::Exchange::on_connected() {
  if (link_ != nullptr) link_->owner_->on_connected(id_);
}

void HttpLink::Exchange::on_head(const HttpReplyHead& head) {
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
    events_.begin_stream(last_event_);
    opened_at_ = link_->loop_->clock().now();
  }
  if (is_standalone_) link_->is_listening_ = is_events_;
  was_open_ |= is_events_;
  if (is_events_) refusals_ = refusals_of_event_ = 0;
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

void HttpLink::Exchange::on_sent() {
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

void HttpLink::Exchange::on_initialized() {
  if (link_->initializing_ != number_) return;
  link_->loop_->cancel(std::exchange(timer_, 0));
  link_->initialized(true);
}

void HttpLink::Exchange::on_body(std::string_view bytes) {
  if (link_ == nullptr || has_nothing_to_say()) return;
  const std::shared_ptr<Exchange> keep = shared_from_this();
  if (is_events_) {
    const auto fed = events_.feed(bytes, [this](const SseEvent& event) { on_event(event); });
    if (link_ == nullptr) return;
    keep_place();
    // An id may come without a message.
    tell_place();
    if (!fed && link_ != nullptr) fail(fed.error());
  } else if (is_aside()) {
    body_.append(bytes.substr(0, kMaxRefusal - body_.size()));
  } else if (body_.size() + bytes.size() > link_->options_.max_message) {
    fail({kBusy, "The server's answer is longer than this client takes", {}});
  } else {
    body_.append(bytes);
  }
}

void HttpLink::Exchange::on_complete() {
  if (link_ == nullptr) return;
  const std::shared_ptr<Exchange> keep = shared_from_this();
  if (is_events_) {
    std::string why = "The stream ended before the answer came";
    if (is_misdirected_) why.append("; it answers another request");
    if (is_probe_) return fail(unaddressed_.value_or(Error{status_, std::move(why), {}}));
    return stream_ended({kLostConnection, std::move(why), {}});
  }
  if (is_standalone_) return stream_refused();
  if (status_ / 100 == 2) return on_success();
  // Some servers refuse a second reader until they notice that the first one is gone.
  const bool may_pass = is_passing_trouble(status_) || status_ == kConflict;
  if (is_get_ && may_pass) return stream_ended(not_resumed());
  if (is_get_) return fail(unaddressed_.value_or(not_resumed()));
  on_refused();
}

void HttpLink::Exchange::on_success() {
  if (is_aside() && !body_.contains("\"jsonrpc\"")) return end();
  if (const auto error = unaddressed_error(body_)) return fail(unaddressed_.value_or(*error));
  // A page is no message, and why_unanswered() says that it is one.
  const bool is_page = !other_type_.empty() && !body_.starts_with('{') && !body_.starts_with('[');
  if (!body_.empty() && !is_page) is_misdirected_ |= !link_->owner_->on_reply(id_, body_);
  const bool is_wanted = link_ != nullptr && !id_.empty() && link_->owner_->awaits(id_);
  // Something answers a probe that does not know it, and the connection stands.
  const int code = is_probe_ ? status_ : kLostConnection;
  return is_wanted ? fail({code, why_unanswered(), {}}) : end();
}

void HttpLink::Exchange::on_refused() {
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

void HttpLink::Exchange::on_failure(const Error& why) {
  if (link_ == nullptr) return;
  const std::shared_ptr<Exchange> keep = shared_from_this();
  // No connection was lost: there is no authorization, and the error says what to do. Nobody
  // reads that of a stream that belongs to no request.
  const bool is_refusal = why.code == kUnauthorized || why.code == kForbidden;
  if (is_refusal && is_standalone_ && ++refusals_ <= kMaxRefusals) {
    const TimePoint now = link_->loop_->clock().now();
    link_->reopening_ = {.after = link_->last_number_,
                         .not_before = was_open_ ? now : now + kReopeningPause,
                         .was_open = was_open_,
                         .last_event = last_event_,
                         .refusals = refusals_};
  }
  if (is_refusal) {
    return fail(unaddressed_.value_or(is_resuming() ? not_resumed(why.message) : why));
  }
  stream_ended({kLostConnection, why.message, {}});
}

void HttpLink::Exchange::session_over() {
  session_ == link_->session_id_ ? link_->owner_->on_session_over(id_)
                                 : link_->owner_->on_old_session_over(id_);
  end();
}

void HttpLink::Exchange::stream_refused() {
  const bool is_unknown = !session_.empty() && is_of_unknown_session(status_, body_, false);
  const bool is_trouble = status_ >= kInternalServerError || status_ == kRequestTimedOut ||
                          status_ == kConflict || status_ == kTooEarly;
  bool may_open = is_passing_trouble(status_);
  if (!may_open && was_open_) {
    // Nothing else may tell an idle client that its session is gone.
    if (is_unknown) link_->owner_->on_session_doubted();
    if (link_ == nullptr) return;
    may_open = is_unknown || status_ != kMethodNotAllowed;
  } else if (!may_open && is_trouble) {
    may_open = ++refusals_ <= kMaxRefusals;
  }
  // The server may not know the event any more from which it is to go on. Not all say so with 400.
  const bool is_of_event = !last_event_.empty() && !is_passing_trouble(status_);
  if (is_of_event && (status_ == kBadRequest || ++refusals_of_event_ >= kMaxRefusalsOfEvent)) {
    last_event_.clear();
    refusals_of_event_ = 0;
  }
  if (may_open) return stream_ended(not_resumed());
  log_debug("the server offers no stream of its own", {{"status", status_}});
  end();
}

std::optional<Error> HttpLink::Exchange::unaddressed_error(std::string_view text) const {
  if (id_.empty() || text.size() > kMaxUnaddressed) return std::nullopt;
  // Each answer comes here. string_view::find() would stop at every quotation mark.
  constexpr std::string_view kMember = "\"error\"";
  if (::memmem(text.data(), text.size(), kMember.data(), kMember.size()) == nullptr) {
    return std::nullopt;
  }
  const Result<json::value> body = parse_json(text);
  const json::object* const members = body ? body->if_object() : nullptr;
  const bool is_one =
      members != nullptr && members->contains("jsonrpc") && is_unaddressed(*members);
  std::optional<Error> error = is_one ? error_of(*members) : std::nullopt;
  // The server has taken the request before, and may have carried it out.
  if (error && is_resuming()) return not_resumed(error->message);
  return error;
}

void HttpLink::Exchange::send(HttpClientRequest request) {
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

void HttpLink::Exchange::get() {
  HttpHeaderList headers = link_->headers_for({.text = {}, .revision = link_->revision_});
  std::erase_if(headers, [](const auto& field) {
    return field.first == "Content-Type" || field.first == "Accept";
  });
  headers.emplace_back("Accept", "text/event-stream");
  if (!last_event_.empty()) headers.emplace_back("Last-Event-ID", last_event_);
  is_get_ = true;
  if (unaddressed_) end_soon();
  send({.method = "GET", .url = link_->options_.url, .headers = std::move(headers)});
}

void HttpLink::Exchange::keep_place() {
  const std::string& id = events_.last_event_id();
  if (id == last_event_) return;
  // A server that names its events so cannot be asked to go on from one.
  const bool is_sendable = is_event_id(id);
  has_unsendable_event_id_ = !is_sendable;
  last_event_ = is_sendable ? id : std::string();
  is_place_told_ = last_event_.empty();
}

void HttpLink::Exchange::tell_place() {
  if (std::exchange(is_place_told_, true) || !is_legacy_ || id_.empty()) return;
  link_->owner_->on_position(id_, session_, last_event_);
}

void HttpLink::Exchange::on_event(const SseEvent& event) {
  if (link_ == nullptr) return;
  keep_place();
  backoff_.reset();
  // The place of an event before it, which had nothing else.
  if (!event.has_id) tell_place();
  if (link_ == nullptr) return;
  if (event.type == "message" && !event.data.empty()) take_message(event.data);
  // It is behind all that the event has said.
  if (link_ != nullptr) tell_place();
}

void HttpLink::Exchange::take_message(std::string_view text) {
  // The server goes on, so the answer may follow.
  const bool is_put_off = unaddressed_ && timer_ != 0 && link_->owner_->awaits(id_);
  if (is_put_off) link_->loop_->cancel(std::exchange(timer_, 0));
  if (auto error = unaddressed_error(text)) {
    if (!unaddressed_) unaddressed_ = std::move(error);
    return end_soon();
  }
  if (!link_->owner_->on_reply(id_, text)) is_misdirected_ = true;
  if (link_ == nullptr || id_.empty()) return;
  if (link_->owner_->awaits(id_)) return unaddressed_ ? end_soon() : void();
  if (timer_ != 0) return;
  end_soon();
  link_->keep_last(link_->answered_, kMaxAnswered, number_);
}

void HttpLink::Exchange::end_soon() {
  if (timer_ != 0) return;
  timer_ =
      link_->loop_->schedule_at(link_->loop_->clock().now() + kEpilogue, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr || self->link_ == nullptr) return;
        self->timer_ = 0;
        if (self->is_paused_) return self->end_soon();
        const bool is_wanted = self->unaddressed_ && self->link_->owner_->awaits(self->id_);
        is_wanted ? self->fail(*self->unaddressed_) : self->end();
      });
}

Error HttpLink::Exchange::not_resumed(std::string_view why) const {
  std::string message = "The stream broke off and cannot be resumed: ";
  why.empty() ? message.append("HTTP ").append(std::to_string(status_)) : message.append(why);
  return {kLostConnection, std::move(message), {}};
}

std::string HttpLink::Exchange::why_unanswered() const {
  if (body_.empty()) return "The server accepted the request without an answer";
  if (!other_type_.empty()) return "The server's reply is no answer, but " + other_type_;
  if (is_misdirected_) return "The server's reply answers another request";
  const Result<json::value> body = parse_json(body_);
  return body ? "The server's reply is no answer"
              : "The server's answer cannot be read: " + body.error().message;
}

void HttpLink::Exchange::stream_ended(Error why) {
  if (is_standalone_) link_->is_listening_ = false;
  const bool is_wanted = is_standalone_ || link_->owner_->awaits(id_);
  if (!is_wanted) return end();
  // Another session does not have what this one's streams have left to say.
  const bool is_over = is_legacy_ && session_ != link_->session_id_;
  const bool is_resumable =
      is_legacy_ && !is_over && (is_standalone_ || (!id_.empty() && !last_event_.empty()));
  const TimePoint now = link_->loop_->clock().now();
  if (is_events_ && now - opened_at_ >= link_->options_.lasting) backoff_.reset();
  // For an answer behind an error that names no request, once.
  const bool is_vain = unaddressed_ && std::exchange(is_last_resumption_, true);
  std::optional<Duration> wait = is_resumable && !is_vain ? backoff_.next() : std::nullopt;
  if (!wait) {
    if (unaddressed_) return fail(*unaddressed_);
    if (is_over) why.message.append("; the session of the stream is over");
    if (is_legacy_ && has_unsendable_event_id_) {
      why.message.append(
          "; it cannot be resumed, as this client sends no Last-Event-ID of more than " +
          std::to_string(kMaxEventId) + " bytes or with control characters");
    }
    return fail(why, &ServerLink::Owner::on_broken_off);
  }
  if (const auto asked = events_.retry_milliseconds()) {
    using Milliseconds = std::chrono::duration<std::uint64_t, std::milli>;
    const Duration named = std::max(at_most_forever(Milliseconds(*asked)), kShortestWait);
    // It is about streams that have ended, not about requests that are refused.
    wait = is_events_ ? named : std::max(named, *wait);
  }
  if (timer_ != 0) link_->loop_->cancel(timer_);
  timer_ = link_->loop_->schedule_at(now + *wait, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->link_ == nullptr) return;
    self->timer_ = 0;
    self->get();
  });
}

void HttpLink::Exchange::fail(const Error& why,
                              void (ServerLink::Owner::*tell)(const RequestId&, const Error&)) {
  if (link_ != nullptr && !id_.empty()) (link_->owner_->*tell)(id_, why);
  end();
}

void HttpLink::Exchange::end() {
  const std::shared_ptr<Exchange> keep = shared_from_this();
  HttpLink* const link = link_;
  detach();
  if (link == nullptr) return;
  if (link->initializing_ == number_) link->initialized(true);
  link->forget(number_);
}

}  // namespace sluice
