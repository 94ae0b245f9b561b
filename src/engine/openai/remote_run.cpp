#include "engine/openai/remote_run.hpp"

#include <charconv>
#include <utility>

#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr Backoff::Policy kRetries = {
    .first = std::chrono::milliseconds(500), .longest = std::chrono::seconds(4), .attempts = 2};
/// The longest wait that a server may ask for.
constexpr Duration kLongestAsked = std::chrono::seconds(30);
/// Bytes of a reply that is no stream.
constexpr std::size_t kMaxBody = std::size_t{16} << 20U;
constexpr SseDecoder::Limits kEventLimits = {.line = std::size_t{16} << 20U,
                                             .event = std::size_t{16} << 20U};

/// Whether the server may answer the same request later.
bool may_pass(int status) {
  return status == kTooManyRequests || status == kBadGateway || status == kServiceUnavailable ||
         status == kGatewayTimeout;
}

/// The value of Retry-After (RFC 9110, section 10.2.3) if it is a number of seconds.
std::optional<Duration> retry_after(const HttpReplyHead& head) {
  const std::string_view text = head.header("Retry-After");
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::min<Duration>(std::chrono::seconds(seconds), kLongestAsked);
}

std::chrono::microseconds between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from);
}

}  // namespace

RemoteRun::RemoteRun(EventLoop& loop, HttpClient& http, HttpClientRequest request,
                     Duration idle_timeout, std::shared_ptr<GenerationSink> sink, Done done)
    : loop_(&loop),
      http_(&http),
      request_(std::move(request)),
      idle_timeout_(idle_timeout),
      sink_(std::move(sink)),
      done_(std::move(done)),
      retries_(kRetries) {}

void RemoteRun::begin() {
  began_at_ = loop_->clock().now();
  phase_ = GenerationStatus::Phase::prefill;
  send();
}

void RemoteRun::send() {
  events_ = SseDecoder(kEventLimits);
  answer_ = ChatDecoder();
  status_code_ = 0;
  body_.clear();
  heard_at_ = loop_->clock().now();
  call_ = http_->send(request_, callbacks_of(weak_from_this()));
  watch_silence();
}

void RemoteRun::watch_silence() {
  loop_->cancel(std::exchange(timer_, 0));
  timer_ = loop_->schedule_at(heard_at_ + idle_timeout_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    // A server that is held up has no chance to say anything.
    if (self->is_full_) self->heard_at_ = self->loop_->clock().now();
    if (self->loop_->clock().now() - self->heard_at_ < self->idle_timeout_) {
      return self->watch_silence();
    }
    self->stop(Error(kTimedOut, "The model's server has said nothing for too long", {}));
  });
}

GenerationStatus RemoteRun::status() const {
  return {.phase = phase_, .completion_tokens = deltas_};
}

void RemoteRun::cancel() {
  if (sink_ == nullptr) return;
  waiting_.clear();
  Completion completion;
  completion.reason = Completion::Reason::cancelled;
  complete(std::move(completion));
}

void RemoteRun::resume() {
  if (!std::exchange(is_full_, false)) return;
  heard_at_ = loop_->clock().now();  // it could not be heard before
  const auto keep = shared_from_this();
  deliver();
  if (!is_full_ && !ending_) call_.pause(false);
}

void RemoteRun::on_head(const HttpReplyHead& head) {
  status_code_ = head.status;
  is_stream_ = head.status == 200 && head.header("Content-Type").starts_with("text/event-stream");
  asked_wait_ = retry_after(head);
}

void RemoteRun::on_body(std::string_view bytes) {
  const auto keep = shared_from_this();
  heard_at_ = loop_->clock().now();
  if (!is_stream_) {
    if (body_.size() + bytes.size() > kMaxBody) {
      return stop(Error(kLimitReached, "The reply of the model's server is too long", {}));
    }
    body_.append(bytes);
    return;
  }
  const Result<void> fed =
      events_.feed(bytes, [this](const SseEvent& event) { take_event(event.data); });
  if (!fed && !ending_) stop(Error(kInternalError, fed.error().message, {}));
  deliver();
}

void RemoteRun::take_event(std::string_view data) {
  if (ending_ || sink_ == nullptr) return;
  std::vector<Delta> said;
  const Result<void> taken = answer_.take(data, said);
  if (!said.empty() && phase_ != GenerationStatus::Phase::decode) {
    first_at_ = loop_->clock().now();
    phase_ = GenerationStatus::Phase::decode;
  }
  for (Delta& delta : said) waiting_.push_back(std::move(delta));
  if (!taken) {
    stop(taken.error());
  } else if (answer_.is_done()) {
    stop(std::nullopt);
  }
}

void RemoteRun::on_complete() {
  const auto keep = shared_from_this();
  if (ending_ || sink_ == nullptr) return;
  if (is_stream_) return stop(std::nullopt);
  if (status_code_ == 200) {
    take_event(body_);
    if (!ending_) stop(std::nullopt);
  } else if (!may_pass(status_code_) || !retry()) {
    stop(refusal());
  }
  deliver();
}

void RemoteRun::on_failure(const Error& why) {
  const auto keep = shared_from_this();
  if (ending_ || sink_ == nullptr) return;
  if (answer_.has_begun()) return stop(std::nullopt);
  if (!retry()) stop(Error(kBusy, "The model's server does not answer: " + why.message, {}));
}

bool RemoteRun::retry() {
  const std::optional<Duration> wait = retries_.next();
  if (!wait) return false;
  call_ = {};
  loop_->cancel(std::exchange(timer_, 0));
  const Duration pause = std::max(*wait, asked_wait_.value_or(Duration()));
  timer_ = loop_->schedule_at(loop_->clock().now() + pause, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->sink_ == nullptr) return;
    self->timer_ = 0;
    self->send();
  });
  return true;
}

Error RemoteRun::refusal() const {
  std::string text = "The model's server refuses the request with HTTP ";
  text.append(std::to_string(status_code_));
  if (const Result<json::value> body = parse_json(body_); body && body->is_object()) {
    if (const auto said = model_error_of(body->get_object())) text.append(": ").append(*said);
  }
  const bool is_ours = status_code_ / 100 == 4 && status_code_ != kUnauthorized &&
                       status_code_ != kForbidden && status_code_ != kTooManyRequests;
  return {is_ours                  ? kInvalidParams
          : may_pass(status_code_) ? kBusy
                                   : kInternalError,
          std::move(text),
          {}};
}

void RemoteRun::stop(std::optional<Error> why) {
  if (ending_ || sink_ == nullptr) return;
  call_ = {};
  loop_->cancel(std::exchange(timer_, 0));
  std::vector<Delta> calls;
  Result<Completion> end = why ? std::unexpected(*std::move(why)) : answer_.end(calls);
  for (Delta& delta : calls) waiting_.push_back(std::move(delta));
  ending_.emplace();
  if (end) {
    ending_ = *std::move(end);
  } else {
    ending_->reason = Completion::Reason::error;
    ending_->error = std::move(end.error());
  }
  deliver();
}

void RemoteRun::deliver() {
  while (!waiting_.empty() && !is_full_ && sink_ != nullptr) {
    Delta delta = std::move(waiting_.front());
    waiting_.pop_front();
    ++deltas_;
    is_full_ = !sink_->on_delta(std::move(delta));
  }
  if (is_full_) return call_.pause(true);
  if (ending_ && sink_ != nullptr) complete(*std::exchange(ending_, Completion()));
}

void RemoteRun::complete(Completion completion) {
  const auto keep = shared_from_this();
  const auto sink = std::exchange(sink_, nullptr);
  call_ = {};
  loop_->cancel(std::exchange(timer_, 0));
  const TimePoint now = loop_->clock().now();
  const bool has_answered = phase_ == GenerationStatus::Phase::decode;
  completion.timings.prefill = between(began_at_, has_answered ? first_at_ : now);
  if (has_answered) completion.timings.decode = between(first_at_, now);
  phase_ = GenerationStatus::Phase::done;
  done_(completion, answer_.repairs());
  sink->on_complete(std::move(completion));
}

}  // namespace sluice
