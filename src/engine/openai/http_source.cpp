#include "engine/openai/http_source.hpp"

#include <utility>

#include "client/reply.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Bytes of a reply that is no stream.
constexpr std::size_t kMaxBody = std::size_t{16} << 20U;
constexpr SseDecoder::Limits kEventLimits = {.line = std::size_t{16} << 20U,
                                             .event = std::size_t{16} << 20U};
constexpr int kOk = 200;

}  // namespace

/// The reply to one attempt.
class HttpSource::Reply {
 public:
  explicit Reply(std::weak_ptr<Owner> owner) : owner_(std::move(owner)) {}

  void on_head(const HttpReplyHead& head) {
    status_ = head.status;
    is_stream_ = head.status == kOk && head.is_event_stream();
    wait_ = head.retry_after();
  }
  void on_body(std::string_view bytes) {
    const auto owner = owner_.lock();
    if (owner == nullptr) return;
    owner->on_heard();
    if (is_stream_) {
      const Result<void> fed = events_.feed(
          bytes, [&owner](const SseEvent& event) { owner->on_event(event.type, event.data); });
      if (!fed) return owner->on_nonsense(Error(kInternalError, fed.error().message, {}));
      return owner->on_caught_up();
    }
    if (body_.size() + bytes.size() > kMaxBody) {
      return owner->on_nonsense(
          Error(kLimitReached, "The reply of the model's server is too long", {}));
    }
    body_.append(bytes);
  }
  void on_complete() {
    const auto owner = owner_.lock();
    if (owner == nullptr) return;
    if (status_ != kOk) return owner->on_refusal(status_, body_, wait_);
    if (!is_stream_) owner->on_event({}, body_);
    owner->on_end();
  }
  void on_failure(const Error& why) {
    if (const auto owner = owner_.lock()) owner->on_failure(why);
  }

 private:
  std::weak_ptr<Owner> owner_;
  SseDecoder events_{kEventLimits};
  int status_ = 0;
  bool is_stream_ = false;
  std::optional<Duration> wait_;
  std::string body_;  // of a reply that is no stream
};

HttpSource::HttpSource(HttpClient& http, HttpClientRequest request)
    : http_(&http), request_(std::move(request)) {}

HttpSource::~HttpSource() = default;

void HttpSource::send(std::weak_ptr<Owner> owner) {
  drop();
  reply_ = std::make_shared<Reply>(std::move(owner));
  call_ = http_->send(request_, callbacks_of(std::weak_ptr(reply_)));
}

void HttpSource::drop() {
  call_ = {};
  reply_ = nullptr;
}

}  // namespace sluice
