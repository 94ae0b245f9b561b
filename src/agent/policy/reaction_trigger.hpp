#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "sluice/agent_options.hpp"

namespace re2 {
class RE2;
}

namespace sluice {

/// Nothing, or what is wrong with it (-32602): a number that must not be 0, a pattern that is none.
Result<void> check(const ReactionPolicy& policy);

/// Says when to react to a running call, as its policy wants. A state machine without input and
/// output.
class ReactionTrigger {
 public:
  /// The policy must have passed check().
  explicit ReactionTrigger(ReactionPolicy policy);
  ~ReactionTrigger();
  ReactionTrigger(ReactionTrigger&&) noexcept;
  ReactionTrigger& operator=(ReactionTrigger&&) noexcept;

  /// Goes on with another policy. What was counted so far counts.
  void set_policy(ReactionPolicy policy);
  /// The tool has written `text`, a chunk.
  void on_chunk(std::string_view text, TimePoint now);
  /// The model is shown all that was written.
  void on_reaction(TimePoint now);
  /// It has answered with so many tokens.
  void on_answer(std::uint32_t tokens) { tokens_ += tokens; }

  /// Whether to react now. `is_idle`: the model has nothing else to do.
  [[nodiscard]] bool is_due(bool is_idle, TimePoint now) const;
  /// When it can become due without a further chunk; nothing if it cannot.
  [[nodiscard]] std::optional<TimePoint> next_look() const;
  /// Whether a limit keeps it from reacting to this call any more.
  [[nodiscard]] bool is_exhausted() const;
  [[nodiscard]] const ReactionPolicy& policy() const { return policy_; }
  [[nodiscard]] std::uint32_t reactions() const { return reactions_; }

 private:
  /// What the policy waits for has happened, or will at this time.
  [[nodiscard]] std::optional<TimePoint> wanted_at() const;

  ReactionPolicy policy_;
  std::unique_ptr<re2::RE2> pattern_;
  std::string line_;  // the beginning of a line, for `match`
  bool is_wanted_ = false;
  std::uint32_t chunks_ = 0;  // unseen, as are the bytes
  std::size_t bytes_ = 0;
  TimePoint first_at_{};  // of the unseen chunks
  TimePoint last_at_{};
  std::optional<TimePoint> reacted_at_;
  std::uint32_t reactions_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace sluice
