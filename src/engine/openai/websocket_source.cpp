#include "engine/openai/websocket_source.hpp"

#include <optional>
#include <utility>

#include "json/members.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kForgotten = "previous_response_not_found";
constexpr std::string_view kTooOld = "websocket_connection_limit_reached";

/// An error instead of an answer: {"type":"error","status":...,"error":{"code":...,...}}.
struct TurnError {
  std::optional<int> status;
  std::string code;
};

std::optional<TurnError> turn_error_of(std::string_view text) {
  const Result<json::value> parsed = parse_json(text);
  const json::object* const event = parsed ? parsed->if_object() : nullptr;
  if (event == nullptr || text_at(*event, "type") != "error") return std::nullopt;
  TurnError out;
  for (const std::string_view name : {"status", "status_code"}) {
    const json::value* const status = event->if_contains(name);
    if (status != nullptr && status->is_int64() && status->get_int64() >= 400 &&
        status->get_int64() < 600) {
      out.status = static_cast<int>(status->get_int64());
    }
  }
  const json::object* const error = object_at(*event, "error");
  out.code = text_at(error == nullptr ? *event : *error, "code");
  return out;
}

}  // namespace

/// One attempt. It may take two sockets, or send the request twice on one.
class WebSocketSource::Turn final : public ResponseSocket::User,
                                    public std::enable_shared_from_this<Turn> {
 public:
  Turn(ResponseSockets& sockets, std::shared_ptr<const GenerationRequest> request,
       MakeBody make_body, std::weak_ptr<Owner> owner)
      : sockets_(&sockets),
        request_(std::move(request)),
        make_body_(std::move(make_body)),
        owner_(std::move(owner)) {}

  void begin() {
    socket_ = sockets_->take(*request_);
    if (socket_ == nullptr) return open();
    is_reused_ = true;
    socket_->set_user(weak_from_this());
    if (!create()) open();
  }
  void pause(bool is_paused) {
    is_paused_ = is_paused;
    if (socket_ != nullptr) socket_->client().pause(is_paused);
  }
  void note(const Delta& said) {
    if (socket_ != nullptr) socket_->chain().note(said);
  }
  void finish(bool is_chained, std::string_view response_id) {
    if (socket_ == nullptr) return;
    socket_->note_response(response_id);
    if (is_chained) {
      socket_->chain().finish(response_id);
    } else {
      socket_->chain().forget();
    }
    if (is_paused_) socket_->client().pause(false);
    sockets_->give_back(std::move(socket_));
  }

 private:
  void open() {
    is_reused_ = false;
    socket_ = sockets_->open();
    socket_->set_user(weak_from_this());
    if (is_paused_) socket_->client().pause(true);
  }
  /// Sends the request. False if the socket takes nothing.
  bool create() {
    ResponseChain& chain = socket_->chain();
    auto rest = chain.continuation(*request_);
    is_continued_ = rest.has_value();
    json::object body;
    if (is_continued_) {
      GenerationRequest more = *request_;
      more.messages = *std::move(rest);
      body = make_body_(more);
      body["previous_response_id"] = chain.response_id();
    } else {
      body = make_body_(*request_);
    }
    body["type"] = "response.create";
    chain.begin(*request_);
    return socket_->client().send_text(to_json(body));
  }
  void create_or_fail(Owner& owner) {
    if (!create()) owner.on_failure(Error(kBadGateway, "the WebSocket takes no message", {}));
  }

  /// Whether an event is about the answer before, whose server has said more than its end. Some
  /// servers give all answers the same id.
  bool is_late(std::string_view text) {
    const std::string& last = socket_->last_response();
    if (last.empty() || has_same_id_ || !text.contains(last)) return false;
    const Result<json::value> parsed = parse_json(text);
    const json::object* const event = parsed ? parsed->if_object() : nullptr;
    const json::object* const response = event == nullptr ? nullptr : object_at(*event, "response");
    if (response == nullptr || text_at(*response, "id") != last) return false;
    has_same_id_ = text_at(*event, "type") == "response.created";
    return !has_same_id_;
  }

  void on_refused(const HttpReplyHead& head) override {
    refused_ = head.status;
    wait_ = head.retry_after();
  }
  void on_open() override {
    if (const auto owner = owner_.lock()) create_or_fail(*owner);
  }
  void on_message(std::string_view text) override {
    const auto owner = owner_.lock();
    if (owner == nullptr) return;
    const auto keep = shared_from_this();
    owner->on_heard();
    if (is_late(text)) return;
    if (!std::exchange(has_heard_, true)) {
      if (const auto error = turn_error_of(text)) {
        if (error->code == kForgotten && is_continued_) {
          has_heard_ = false;
          socket_->chain().forget();
          return create_or_fail(*owner);
        }
        if (error->code == kTooOld && is_reused_) {
          has_heard_ = false;
          return open();
        }
        if (error->status) return owner->on_refusal(*error->status, text, {});
      }
    }
    owner->on_event({}, text);
    owner->on_caught_up();
  }
  void on_end(const Error& why) override {
    const auto keep = shared_from_this();
    const auto owner = owner_.lock();
    socket_ = nullptr;
    if (owner == nullptr) return;
    if (refused_ != 0) return owner->on_refusal(refused_, {}, wait_);
    // The server has closed it while nobody used it.
    if (is_reused_ && !has_heard_) return open();
    owner->on_failure(why);
  }

  ResponseSockets* sockets_;
  std::shared_ptr<const GenerationRequest> request_;
  MakeBody make_body_;
  std::weak_ptr<Owner> owner_;
  std::unique_ptr<ResponseSocket> socket_;  // null before and after
  std::optional<Duration> wait_;
  int refused_ = 0;  // HTTP status
  bool is_reused_ = false;
  bool is_continued_ = false;
  bool is_paused_ = false;
  bool has_heard_ = false;    // a message of the answer
  bool has_same_id_ = false;  // as the answer before
};

WebSocketSource::WebSocketSource(ResponseSockets& sockets, GenerationRequest request,
                                 MakeBody make_body)
    : sockets_(&sockets),
      request_(std::make_shared<const GenerationRequest>(std::move(request))),
      make_body_(std::move(make_body)) {}

WebSocketSource::~WebSocketSource() = default;

void WebSocketSource::send(std::weak_ptr<Owner> owner) {
  turn_ = std::make_shared<Turn>(*sockets_, request_, make_body_, std::move(owner));
  turn_->begin();
}

void WebSocketSource::pause(bool is_paused) {
  if (turn_ != nullptr) turn_->pause(is_paused);
}

void WebSocketSource::drop() {
  turn_ = nullptr;
}

void WebSocketSource::note(const Delta& said) {
  if (turn_ != nullptr) turn_->note(said);
}

void WebSocketSource::finish(const Completion& completion, std::string_view response_id) {
  if (turn_ == nullptr) return;
  const bool is_whole = completion.reason == Completion::Reason::stop ||
                        completion.reason == Completion::Reason::tool_calls;
  turn_->finish(is_whole && !response_id.empty(), response_id);
  turn_ = nullptr;
}

}  // namespace sluice
