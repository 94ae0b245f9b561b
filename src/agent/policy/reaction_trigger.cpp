#include "agent/policy/reaction_trigger.hpp"

#include <algorithm>
#include <re2/re2.h>
#include <utility>

namespace sluice {
namespace {

/// Of a longer line only the end is looked at.
constexpr std::size_t kMaxLine = 4096;

RE2::Options quiet_options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(1 << 20);
  return options;
}

}  // namespace

Result<void> check(const ReactionPolicy& policy) {
  using When = ReactionPolicy::When;
  const auto wrong = [](std::string text) { return fail(-32602, std::move(text)); };
  if (policy.when == When::every_n && policy.every == 0) {
    return wrong("every=0: a reaction needs at least one chunk");
  }
  if (policy.when == When::debounce && policy.max_bytes == 0) {
    return wrong("bytes=0: a reaction needs at least one byte");
  }
  if (policy.when != When::match) return {};
  if (policy.pattern.empty()) return wrong("match= needs a regular expression");
  const RE2 pattern(policy.pattern, quiet_options());
  if (!pattern.ok()) {
    return wrong("match=" + policy.pattern + ": no regular expression of RE2: " + pattern.error());
  }
  return {};
}

ReactionTrigger::ReactionTrigger(ReactionPolicy policy) {
  set_policy(std::move(policy));
}

ReactionTrigger::~ReactionTrigger() = default;
ReactionTrigger::ReactionTrigger(ReactionTrigger&&) noexcept = default;
ReactionTrigger& ReactionTrigger::operator=(ReactionTrigger&&) noexcept = default;

void ReactionTrigger::set_policy(ReactionPolicy policy) {
  policy_ = std::move(policy);
  for (Duration* const each : {&policy_.quiet, &policy_.max_wait, &policy_.min_interval}) {
    *each = at_most_forever(*each);
  }
  pattern_ = policy_.when == ReactionPolicy::When::match
                 ? std::make_unique<RE2>(policy_.pattern, quiet_options())
                 : nullptr;
  line_.clear();
  is_wanted_ = false;
}

void ReactionTrigger::on_chunk(std::string_view text, TimePoint now) {
  if (chunks_++ == 0) first_at_ = now;
  last_at_ = now;
  bytes_ += text.size();
  if (pattern_ == nullptr || is_wanted_) return;
  line_ += text;
  is_wanted_ = RE2::PartialMatch(line_, *pattern_);
  // What has matched does not match again.
  if (is_wanted_) return line_.clear();
  const std::size_t begin = line_.rfind('\n');
  line_.erase(0, begin == std::string::npos ? 0 : begin + 1);
  if (line_.size() > kMaxLine) line_.erase(0, line_.size() - kMaxLine);
}

void ReactionTrigger::on_reaction(TimePoint now) {
  is_wanted_ = false;
  chunks_ = 0;
  bytes_ = 0;
  reacted_at_ = now;
  ++reactions_;
}

bool ReactionTrigger::is_exhausted() const {
  return (policy_.max_reactions != 0 && reactions_ >= policy_.max_reactions) ||
         (policy_.max_reaction_tokens != 0 && tokens_ >= policy_.max_reaction_tokens);
}

std::optional<TimePoint> ReactionTrigger::wanted_at() const {
  using When = ReactionPolicy::When;
  switch (policy_.when) {
    case When::pass_through:
    case When::on_demand:  // tool_status shows it
      return std::nullopt;
    case When::every_chunk:
    case When::on_idle:
      if (chunks_ > 0) return last_at_;
      return std::nullopt;
    case When::every_n:
      if (chunks_ >= policy_.every) return last_at_;
      return std::nullopt;
    case When::debounce:
      if (chunks_ == 0) return std::nullopt;
      if (bytes_ >= policy_.max_bytes) return last_at_;
      return std::min(last_at_ + policy_.quiet, first_at_ + policy_.max_wait);
    case When::match:
      if (is_wanted_) return last_at_;
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<TimePoint> ReactionTrigger::next_look() const {
  if (is_exhausted()) return std::nullopt;
  const auto wanted = wanted_at();
  if (!wanted) return std::nullopt;
  return reacted_at_ ? std::max(*wanted, *reacted_at_ + policy_.min_interval) : *wanted;
}

bool ReactionTrigger::is_due(bool is_idle, TimePoint now) const {
  if (policy_.when == ReactionPolicy::When::on_idle && !is_idle) return false;
  const auto look = next_look();
  return look && *look <= now;
}

}  // namespace sluice
