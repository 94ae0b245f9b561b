#include "server/transport/http/message_body.hpp"

#include <algorithm>
#include <utility>

#include "core/sharing/client.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/error_codes.hpp"
#include "server/transport/http/http_refusal.hpp"

namespace sluice {
MessageBody::MessageBody(Service& service, const HttpRequest& request, HttpExchangePtr exchange,
                         Principal principal, HttpChannel::Format format, std::size_t max_line)
    : service_(&service),
      exchange_(std::move(exchange)),
      principal_(std::move(principal)),
      key_(*service.access, request),
      format_(format),
      max_line_(max_line),
      head_(request),
      headers_(mirrored_headers(head_.get(), fields_)),
      reply_(std::make_shared<SharedReply>(SharedReply::Form::messages, exchange_->executor(),
                                           exchange_->memory())),
      reader_(max_line),
      memory_(exchange_->memory()) {
  // Not required, because one set of fields cannot mirror messages that differ.
  headers_.required = false;
}

bool MessageBody::open() {
  if (const auto session = find_session(); !session) {
    refuse(*exchange_, kNotFound, session.error().code, session.error().message);
    return false;
  }
  reply_->attach(std::make_shared<HttpChannel>(exchange_, Acceptance::by_name, format_));
  // The task keeps this alive while lines wait, even after the body has ended.
  reply_->on_progress([self = shared_from_this()] {
    if (!self->waiting_) return;
    self->exchange_->executor().post([self] { self->go_on(); });
  });
  return draw();
}

bool MessageBody::on_body(std::string_view bytes) {
  reader_.append(bytes);
  stopped_ = !handle_lines();
  return draw() && !stopped_;
}

/// Charges what is held of the request to the client's memory. If there is none left, the request
/// fails.
bool MessageBody::draw() {
  if (hold_.hold(memory_, head_.size() + reader_.held_bytes() + held_bytes_)) return true;
  break_off(
      503, kBusy,
      "The server is out of memory for buffers (http.max_total_buffers); send less at once, or "
      "try it again");
  return false;
}

void MessageBody::break_off(int status, int code, std::string_view message) {
  const std::shared_ptr<MessageBody> keep = shared_from_this();
  if (exchange_->is_open() && !exchange_->is_streaming()) {
    refuse(*exchange_, status, code, std::string(message));
  }
  reply_->abandon();
}

void MessageBody::on_body_end() {
  ended_ = true;
  reader_.end();
  handle_lines();
}

void MessageBody::on_shutdown() {
  ended_ = true;
  handle_lines();
}

void MessageBody::go_on() {
  if (!waiting_ || !exchange_->is_open()) return;
  const bool more = handle_lines();
  if (!draw() || !more || ended_ || !std::exchange(stopped_, false)) return;
  exchange_->resume_body();
}

bool MessageBody::handle_lines() {
  waiting_ = false;
  for (std::size_t taken = 0; exchange_->is_open(); ++taken) {
    const bool is_held = !held_.empty() && (held_.front().id.empty() || !is_full());
    if (long_ != nullptr || !reply_->has_capacity() ||
        (!is_held && held_.size() >= kMaxHeld && !awaits_response())) {
      waiting_ = true;
      return false;
    }
    if (taken == kMaxTurn) {
      waiting_ = true;
      exchange_->executor().post([self = shared_from_this()] { self->go_on(); });
      return false;
    }
    if (is_held) {
      taken_ = std::move(held_.front());
      held_.pop_front();
      held_bytes_ -= taken_->text.size();
      take(std::exchange(taken_->text, {}));
      continue;
    }
    const LineReader::Next next = reader_.next();
    if (next.kind != LineReader::Next::Kind::none) ++lines_;
    switch (next.kind) {
      case LineReader::Next::Kind::line:
        take(next.line);
        break;
      case LineReader::Next::Kind::too_long: {
        std::string response;
        append_error(
            response, {},
            {kInvalidRequest,
             "Invalid Request: the message is longer than " + std::to_string(max_line_) + " bytes",
             {}});
        reply_->respond(response);
        break;
      }
      case LineReader::Next::Kind::none:
        waiting_ = !held_.empty();
        if (ended_ && !waiting_) reply_->complete();
        return true;
    }
  }
  return true;
}

void MessageBody::take(std::string_view text) {
  if (is_batch(text)) {
    handle(std::unexpected(MessageError{
        {kInvalidRequest,
         "Invalid Request: an array cannot be part of a body of many messages; send each of its "
         "messages as a line",
         {}},
        {}}));
    return;
  }
  if (LongMessages::is_long(text)) {
    long_ =
        service_->long_messages.parse(std::string(text), [this] { handle_long(); }, principal_.id);
    if (!taken_) long_->arrived_in(find_session().value_or(nullptr));
    return;
  }
  const auto message = service_->parser.parse(text);
  if (taken_) {
    handle(message);
  } else {
    receive(message, text);
  }
}

void MessageBody::receive(const std::expected<Message, MessageError>& message,
                          std::string_view text) {
  if (!message || message->kind == MessageKind::response) {
    handle(message);
  } else if (Dispatcher::cancelled_by(*message)) {
    cancel_held(*message);
    handle(message);
  } else if (!held_.empty() || (message->kind == MessageKind::request && is_full())) {
    hold(*message, text);
  } else {
    handle(message);
  }
}

void MessageBody::hold(const Message& message, std::string_view text) {
  if (held_.size() < kMaxHeld) {
    Held& held = held_.emplace_back(std::string(text), message.id);
    held_bytes_ += text.size();
    const auto session = find_session();
    if (message.id.empty() || !session || *session == nullptr) return;
    // If there can be no entry, the request is answered with that error when it is handled. Until
    // then, only this body can cancel it.
    held.entry = Session::add_call(*session, message.id, exchange_->executor(),
                                   [weak = weak_from_this(), id = message.id] {
                                     if (const auto self = weak.lock()) self->forget_held(id);
                                   })
                     .value_or(nullptr);
  } else if (message.id.empty()) {
    handle(message);
  } else {
    std::string refusal;
    append_error(refusal, message.id,
                 {kBusy,
                  "Too many requests of this body are unanswered, and the server waits for a "
                  "response of this client; send the request again when some have been answered",
                  {}});
    reply_->respond(refusal, message.id);
  }
}

void MessageBody::cancel_held(const Message& message) {
  const auto session = find_session();
  if (session && *session != nullptr) forget_held(*Dispatcher::cancelled_by(message));
}

void MessageBody::forget_held(const RequestId& id) {
  if (long_ != nullptr && taken_ && taken_->id == id) {
    long_ = nullptr;
    taken_.reset();
    exchange_->executor().post([self = shared_from_this()] { self->go_on(); });
    return;
  }
  const auto found = std::ranges::find(held_, id, &Held::id);
  if (found == held_.end()) return;
  held_bytes_ -= found->text.size();
  held_.erase(found);
}

void MessageBody::handle_long() {
  const std::shared_ptr<MessageBody> keep = shared_from_this();
  const std::unique_ptr<LongMessage> parsed = std::move(long_);
  if (taken_) {
    handle(parsed->message());
  } else if (!parsed->message() || !parsed->is_cancelled(*parsed->message())) {
    receive(parsed->message(), parsed->text());
  }
  go_on();
}

void MessageBody::handle(const std::expected<Message, MessageError>& message) {
  if (!key_.is_valid(principal_.id)) {
    break_off(401, kInvalidRequest, KeptKey::kRemoved);
    return;
  }
  std::string response;
  session_ = nullptr;
  if (!message) {
    Dispatcher::reject(message.error(), response);
  } else {
    service_->dispatcher.dispatch(*message, &headers_, *this, response);
  }
  taken_.reset();
  if (!response.empty()) reply_->respond(response, message ? message->id : message.error().id);
  service_->trim();
}

Result<std::shared_ptr<ReplyChannel>> MessageBody::open_channel(const RequestId& id) {
  return reply_->open(id, session_, taken_ ? std::move(taken_->entry) : nullptr);
}

RetainedCaller MessageBody::keep() {
  return {std::shared_ptr<Caller>(shared_from_this(), this), &headers_};
}

Result<std::shared_ptr<Session>> MessageBody::find_session() const {
  const std::string_view id = head_.get().header(KnownHeader::mcp_session_id);
  if (id.data() == nullptr || !service_->sessions->enabled()) return nullptr;
  std::shared_ptr<Session> session = service_->sessions->find(id, principal_.id);
  if (session == nullptr) return fail(kInvalidRequest, std::string(kNoSuchSession));
  return session;
}

bool MessageBody::awaits_response() const {
  const auto session = find_session();
  return session && *session != nullptr && (*session)->awaits_response();
}

Result<std::shared_ptr<Session>> MessageBody::session() {
  Result<std::shared_ptr<Session>> session = find_session();
  session_ = session.value_or(nullptr);
  return session;
}

Result<std::shared_ptr<Session>> MessageBody::begin_session(const Revision& /*revision*/,
                                                            const ClientDescription& /*client*/) {
  return fail(
      kInvalidRequest,
      "Invalid Request: send initialize in a POST of its own, whose reply names the session");
}

}  // namespace sluice
