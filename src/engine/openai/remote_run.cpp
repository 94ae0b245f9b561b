#include "engine/openai/remote_run.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "client/reply.hpp"
#include "engine/openai/model_error.hpp"
#include "engine/openai/model_refusal.hpp"
#include "engine/openai/remote_model.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr Backoff::Policy kRetries = {
    .first = std::chrono::milliseconds(500), .longest = std::chrono::seconds(4), .attempts = 2};

/// Whether a server that does not have an API refuses it with this status.
bool is_wrong_place(int status) {
  return status < kBadRequest || status == kNotFound || status == kMethodNotAllowed ||
         status == kUpgradeRequired;
}

std::chrono::microseconds between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from);
}

}  // namespace

RemoteRun::RemoteRun(EventLoop& loop, RemoteRunOptions options,
                     std::shared_ptr<GenerationSink> sink, Done done)
    : loop_(&loop),
      options_(std::move(options)),
      sink_(std::move(sink)),
      done_(std::move(done)),
      answer_(options_.make_decoder()),
      retries_(kRetries) {}

void RemoteRun::begin(std::unique_ptr<AnswerSource> source) {
  source_ = std::move(source);
  began_at_ = loop_->clock().now();
  phase_ = GenerationStatus::Phase::prefill;
  send();
}

void RemoteRun::send() {
  answer_ = options_.make_decoder();
  heard_at_ = loop_->clock().now();
  source_->send(weak_from_this());
  watch_silence();
}

void RemoteRun::watch_silence() {
  loop_->cancel(std::exchange(timer_, 0));
  timer_ = loop_->schedule_at(heard_at_ + options_.idle_timeout, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    // A server that is held up has no chance to say anything.
    if (self->is_full_) self->heard_at_ = self->loop_->clock().now();
    if (self->loop_->clock().now() - self->heard_at_ < self->options_.idle_timeout) {
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
  completion.usage = answer_->told_usage();
  // Most servers tell it at the end alone, and send each token by itself.
  if (completion.usage.completion_tokens == 0) completion.usage.completion_tokens = deltas_;
  complete(std::move(completion));
}

void RemoteRun::resume() {
  if (!std::exchange(is_full_, false)) return;
  heard_at_ = loop_->clock().now();  // it could not be heard before
  const auto keep = shared_from_this();
  deliver();
  if (!is_full_ && !is_over()) source_->pause(false);
}

void RemoteRun::on_heard() {
  heard_at_ = loop_->clock().now();
}

void RemoteRun::on_event(std::string_view name, std::string_view data) {
  if (is_over()) return;
  const auto keep = shared_from_this();
  std::vector<Delta> said;
  const Result<void> taken = answer_->take(name, data, said);
  if (!said.empty() && phase_ != GenerationStatus::Phase::decode) {
    first_at_ = loop_->clock().now();
    phase_ = GenerationStatus::Phase::decode;
  }
  for (Delta& delta : said) {
    source_->note(delta);
    waiting_.push_back(std::move(delta));
  }
  if (!taken) {
    stop(taken.error());
  } else if (answer_->is_done()) {
    stop(std::nullopt);
  }
}

void RemoteRun::on_caught_up() {
  const auto keep = shared_from_this();
  deliver();
}

void RemoteRun::on_end() {
  const auto keep = shared_from_this();
  if (!is_over()) stop(std::nullopt);
}

void RemoteRun::on_refusal(int status, std::string_view body, std::optional<Duration> wait) {
  const auto keep = shared_from_this();
  if (is_over()) return;
  if (is_passing_trouble(status) && retry(wait)) return;
  stop(refusal(status, body));
}

void RemoteRun::on_failure(const Error& why) {
  const auto keep = shared_from_this();
  if (is_over()) return;
  if (answer_->has_begun()) return stop(std::nullopt);
  if (!retry({})) stop(Error(kBusy, "The model's server does not answer: " + why.message, {}));
}

void RemoteRun::on_nonsense(const Error& why) {
  const auto keep = shared_from_this();
  if (!is_over()) stop(why);
}

bool RemoteRun::retry(std::optional<Duration> asked_wait) {
  const std::optional<Duration> wait = retries_.next();
  if (!wait) return false;
  source_->drop();
  loop_->cancel(std::exchange(timer_, 0));
  const Duration pause = std::max(*wait, asked_wait.value_or(Duration()));
  timer_ = loop_->schedule_at(loop_->clock().now() + pause, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->sink_ == nullptr) return;
    self->timer_ = 0;
    self->send();
  });
  return true;
}

Error RemoteRun::refusal(int status, std::string_view body) const {
  std::string text(kModelRefusal);
  text.append(std::to_string(status));
  if (const auto said = model_error_in(body)) text.append(": ").append(*said);
  if (is_wrong_place(status)) text.append(options_.hint);
  const bool is_ours = status / 100 == 4 && status != kUnauthorized && status != kForbidden &&
                       status != kTooManyRequests;
  return {is_ours                      ? kInvalidParams
          : is_passing_trouble(status) ? kBusy
                                       : kInternalError,
          std::move(text),
          {}};
}

void RemoteRun::stop(std::optional<Error> why) {
  if (is_over()) return;
  loop_->cancel(std::exchange(timer_, 0));
  std::vector<Delta> calls;
  Result<Completion> end = why ? std::unexpected(*std::move(why)) : answer_->end(calls);
  if (!end) end.error().message = without_keys(std::move(end.error().message), options_.secrets);
  for (Delta& delta : calls) {
    source_->note(delta);
    waiting_.push_back(std::move(delta));
  }
  if (end && answer_->is_done()) {
    source_->finish(*end, answer_->response_id());
  } else {
    source_->drop();
  }
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
  if (is_full_) {
    if (!is_over()) source_->pause(true);
    return;
  }
  if (ending_ && sink_ != nullptr) complete(*std::exchange(ending_, Completion()));
}

void RemoteRun::complete(Completion completion) {
  const auto keep = shared_from_this();
  const auto sink = std::exchange(sink_, nullptr);
  if (source_ != nullptr) source_->drop();
  loop_->cancel(std::exchange(timer_, 0));
  const TimePoint now = loop_->clock().now();
  const bool has_answered = phase_ == GenerationStatus::Phase::decode;
  completion.timings.prefill = between(began_at_, has_answered ? first_at_ : now);
  if (has_answered) completion.timings.decode = between(first_at_, now);
  phase_ = GenerationStatus::Phase::done;
  done_(completion, answer_->repairs());
  sink->on_complete(std::move(completion));
}

}  // namespace sluice
