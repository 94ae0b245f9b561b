#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/llama/grammar/grammar.hpp"

namespace sluice {

/// What following a grammar may cost. Work is counted in steps of some tens of nanoseconds.
struct MatcherLimits {
  std::size_t work = 200'000;      // for one token of the model
  std::size_t positions = 20'000;  // at which the text may be in the grammar at once
  std::size_t kept = 50'000;       // entries of the memory between two tokens
};

/// Follows a text through a grammar, one code point after the other. A state is the set of all
/// places at which the text may be: elements of the grammar, each with the places to return to.
/// Sets and the ways between them are remembered, so that what was worked out once is looked up.
/// Belongs to one thread.
class GrammarMatcher {
 public:
  using State = std::uint32_t;
  static constexpr State kNowhere = 0;  // the text does not fit

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar, const MatcherLimits& limits = {});
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  /// The state before the first character; void once begin_token() was called.
  [[nodiscard]] State start() const { return start_; }
  /// The state after one more code point, or kNowhere.
  State next(State from, char32_t c);
  [[nodiscard]] bool may_end(State state) const;
  /// Whether some code point from `low` to `high`, both inclusive, may come next.
  [[nodiscard]] bool may_follow(State state, char32_t low, char32_t high) const;

  /// The limits have been exceeded: the grammar is too ambiguous to be followed, and what next()
  /// has returned since means nothing. Stays so.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  /// Another token's work begins. What is remembered may be forgotten but for `state`; returns what
  /// it is called now. All other states, but kNowhere, are void.
  State begin_token(State state);

 private:
  /// An element, and the place to return to behind its sequence. Position 0 is the end of the root.
  struct Position {
    std::uint32_t element = 0;
    std::uint32_t parent = 0;
  };
  using Positions = std::vector<std::uint32_t>;  // sorted

  std::uint32_t position(std::uint32_t element, std::uint32_t parent);
  void reach(std::uint32_t position);
  State close();
  State state_of(Positions positions);
  void forget_all();
  [[nodiscard]] std::size_t kept() const;

  const std::shared_ptr<const Grammar> grammar_;
  const MatcherLimits limits_;
  std::vector<Position> positions_;
  std::vector<std::uint32_t> reached_;  // by place: the closure that has seen it last
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // of places
  std::map<Positions, State> states_;
  std::vector<const Positions*> sets_;  // by state
  std::unordered_map<std::uint64_t, State> ways_;
  std::size_t members_ = 0;  // of all sets
  std::vector<std::uint32_t> todo_;
  std::uint32_t closure_ = 0;
  std::size_t work_ = 0;
  bool exhausted_ = false;
  State start_ = kNowhere;
};

}  // namespace sluice
