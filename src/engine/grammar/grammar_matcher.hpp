#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/grammar/grammar.hpp"

namespace sluice {

/// Limits on the cost of following a grammar. Work is counted in steps, each of some tens of
/// nanoseconds.
struct MatcherLimits {
  std::size_t work = 200'000;      // steps for one token of the model
  std::size_t positions = 20'000;  // positions in the grammar at which the text may be at once
  std::size_t kept = 50'000;       // entries that are kept between two tokens
};

/// Follows a text through a grammar, one code point at a time. A state is the set of all places at
/// which the text may be. A place is an element of the grammar together with the places to return
/// to. Sets and the transitions between them are cached, so that nothing is computed twice. Belongs
/// to one thread.
class GrammarMatcher {
 public:
  using State = std::uint32_t;
  static constexpr State kNowhere = 0;  // the text does not match

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar, const MatcherLimits& limits = {});
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  /// The state before the first character. Invalid after the first begin_token().
  [[nodiscard]] State start() const { return start_; }
  /// The state after one more code point, or kNowhere if it does not match.
  State next(State from, char32_t c);
  [[nodiscard]] bool may_end(State state) const;
  /// Whether the text may end, and nothing may follow.
  [[nodiscard]] bool must_end(State state) const;
  /// Whether some code point from `low` to `high`, both inclusive, may follow.
  [[nodiscard]] bool may_follow(State state, char32_t low, char32_t high);

  /// Whether the limits have been exceeded. The grammar is then too ambiguous to be followed, and
  /// whatever next() and may_follow() have returned since is meaningless. This does not change
  /// again.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  /// Begins the work of another token. May clear the cache; returns the new name of `state`. All
  /// other states, except kNowhere, become invalid.
  State begin_token(State state);

 private:
  /// An element and the place to return to after its sequence. Position 0 is the end of the root
  /// rule.
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
  std::vector<std::uint32_t> reached_;  // by place: the last closure that has reached it
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // (element, parent) -> place
  std::map<Positions, State> states_;
  std::vector<const Positions*> sets_;  // by state
  std::unordered_map<std::uint64_t, State> ways_;
  std::size_t members_ = 0;  // total size of all sets
  std::vector<std::uint32_t> todo_;
  std::uint32_t closure_ = 0;
  std::size_t work_ = 0;
  bool exhausted_ = false;
  State start_ = kNowhere;
};

}  // namespace sluice
