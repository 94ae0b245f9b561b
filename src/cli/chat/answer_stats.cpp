#include "cli/chat/answer_stats.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

namespace sluice {
namespace {

double milliseconds(Duration duration) {
  return to_seconds(duration) * 1000;
}

template <class... Args>
std::string formatted(const char* format, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

}  // namespace

void AnswerStats::on_delta(TimePoint at) {
  if (!first_) first_ = at;
  last_ = at;
  ++deltas_;
}

void AnswerStats::on_end(TimePoint at, const AnswerEnd& end) {
  ended_ = at;
  end_ = end;
}

std::int64_t AnswerStats::tokens() const {
  return end_.completion_tokens.value_or(deltas_);
}

std::optional<Duration> AnswerStats::first_token() const {
  if (!first_) return std::nullopt;
  return *first_ - asked_;
}

std::optional<double> AnswerStats::tokens_per_second() const {
  if (tokens() < 2 || !first_) return std::nullopt;
  const double time =
      end_.decode_ms.value_or(0) > 0 ? *end_.decode_ms / 1000 : to_seconds(last_ - *first_);
  if (time <= 0) return std::nullopt;
  return static_cast<double>(tokens() - 1) / time;
}

std::string AnswerStats::summary() const {
  std::string out = std::to_string(tokens()) + (tokens() == 1 ? " token" : " tokens");
  if (const auto rate = tokens_per_second()) out += formatted(", %.1f tokens/s", *rate);
  if (const auto first = first_token()) {
    out += *first < std::chrono::seconds(1)
               ? formatted(", first after %.0f ms", milliseconds(*first))
               : formatted(", first after %.1f s", to_seconds(*first));
  }
  if (end_.outcome == AnswerEnd::Outcome::cancelled) return out + ", stopped";
  return out;
}

json::object AnswerStats::to_object() const {
  json::object out;
  if (!end_.finish_reason.empty()) out["finish_reason"] = end_.finish_reason;
  const auto put = [](json::object& into, std::string_view name, const auto& value) {
    if (value) into[name] = *value;
  };
  json::object usage;
  put(usage, "prompt_tokens", end_.prompt_tokens);
  put(usage, "cached_tokens", end_.cached_tokens);
  put(usage, "completion_tokens", end_.completion_tokens);
  if (!usage.empty()) out["usage"] = std::move(usage);
  json::object timings;
  put(timings, "queue_ms", end_.queue_ms);
  put(timings, "prefill_ms", end_.prefill_ms);
  put(timings, "decode_ms", end_.decode_ms);
  if (!timings.empty()) out["timings"] = std::move(timings);
  if (const auto first = first_token()) out["first_token_ms"] = milliseconds(*first);
  out["total_ms"] = milliseconds(ended_ - asked_);
  put(out, "tokens_per_second", tokens_per_second());
  return out;
}

}  // namespace sluice
