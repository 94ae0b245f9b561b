#include "engine/grammar/grammar_matcher.hpp"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

using MatchedKind = Grammar::Element::Kind;

std::uint64_t pair_key(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint64_t>(a) << 32U | b;
}

/// How many positions are looked at in the time of one step.
constexpr std::size_t kLooksPerStep = 16;

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar, const MatcherLimits& limits)
    : grammar_(std::move(grammar)), limits_(limits) {
  forget_all();
  ++closure_;
  for (const std::uint32_t first : grammar_->alternatives(grammar_->root())) {
    reach(position(first, 0));
  }
  start_ = close();
}

GrammarMatcher::State GrammarMatcher::next(State from, char32_t c) {
  if (from == kNowhere || exhausted_) return kNowhere;
  const std::uint64_t key = pair_key(from, grammar_->class_of(c));
  const auto [way, added] = ways_.try_emplace(key, kNowhere);
  if (!added) return way->second;
  ++closure_;
  const Positions& positions = *sets_[from];
  work_ += positions.size();
  for (const std::uint32_t at : positions) {
    const Position here = positions_[at];
    if (at == 0 || !grammar_->takes(here.element, c, c)) continue;
    reach(position(here.element + 1, here.parent));
  }
  const State to = close();
  ways_[key] = to;
  return to;
}

bool GrammarMatcher::may_end(State state) const {
  const Positions& positions = *sets_[state];
  return !positions.empty() && positions.front() == 0;
}

bool GrammarMatcher::must_end(State state) const {
  return may_end(state) && sets_[state]->size() == 1;
}

bool GrammarMatcher::may_follow(State state, char32_t low, char32_t high) {
  if (exhausted_) return false;
  const Positions& positions = *sets_[state];
  work_ += positions.size() / kLooksPerStep;
  if (work_ > limits_.work) exhausted_ = true;
  return std::ranges::any_of(positions, [&](std::uint32_t at) {
    return at != 0 && grammar_->takes(positions_[at].element, low, high);
  });
}

GrammarMatcher::State GrammarMatcher::begin_token(State state) {
  work_ = 0;
  if (state == kNowhere || kept() <= limits_.kept) return state;
  // Keep what `state` needs and renumber it. A parent always has a smaller number than its
  // children.
  const std::vector<Position> old = std::move(positions_);
  const Positions members = *sets_[state];
  std::vector<bool> needed(old.size());
  for (std::uint32_t at : members) {
    for (; at != 0 && !needed[at]; at = old[at].parent) needed[at] = true;
  }
  forget_all();
  std::vector<std::uint32_t> renamed(old.size());
  for (std::uint32_t at = 1; at < old.size(); ++at) {
    if (needed[at]) renamed[at] = position(old[at].element, renamed[old[at].parent]);
  }
  Positions positions;
  for (const std::uint32_t at : members) positions.push_back(renamed[at]);
  return state_of(std::move(positions));
}

std::uint32_t GrammarMatcher::position(std::uint32_t element, std::uint32_t parent) {
  const auto [at, added] = numbers_.try_emplace(pair_key(element, parent),
                                                static_cast<std::uint32_t>(positions_.size()));
  if (added) {
    positions_.push_back({.element = element, .parent = parent});
    reached_.push_back(0);
  }
  return at->second;
}

void GrammarMatcher::reach(std::uint32_t position) {
  if (reached_[position] == closure_) return;
  reached_[position] = closure_;
  todo_.push_back(position);
}

/// The state of all places that can be reached from todo_ and where a character is accepted or the
/// text may end. The last element of a sequence returns directly to where its sequence returns; so
/// neither a repetition, nor a rule that ends with itself, increases the depth.
GrammarMatcher::State GrammarMatcher::close() {
  Positions found;
  while (!todo_.empty()) {
    const std::uint32_t at = todo_.back();
    todo_.pop_back();
    if (++work_ > limits_.work || found.size() > limits_.positions) exhausted_ = true;
    if (exhausted_) {
      todo_.clear();
      return kNowhere;
    }
    if (at == 0) {
      found.push_back(0);
      continue;
    }
    const Position here = positions_[at];
    const Grammar::Element& element = grammar_->element(here.element);
    if (element.kind == MatchedKind::end) {
      reach(here.parent);
    } else if (element.kind == MatchedKind::rule) {
      const std::uint32_t behind = here.element + 1;
      const std::uint32_t parent = grammar_->element(behind).kind == MatchedKind::end
                                       ? here.parent
                                       : position(behind, here.parent);
      for (const std::uint32_t first : grammar_->alternatives(element.value)) {
        ++work_;
        reach(position(first, parent));
      }
    } else {
      found.push_back(at);
    }
  }
  return state_of(std::move(found));
}

GrammarMatcher::State GrammarMatcher::state_of(Positions positions) {
  if (positions.empty()) return kNowhere;
  std::ranges::sort(positions);
  const std::size_t size = positions.size();
  const auto [at, added] =
      states_.try_emplace(std::move(positions), static_cast<State>(sets_.size()));
  if (added) {
    sets_.push_back(&at->first);
    members_ += size;
  }
  return at->second;
}

void GrammarMatcher::forget_all() {
  static const Positions kNone;
  positions_.assign(1, Position{});
  reached_.assign(1, 0);
  numbers_.clear();
  states_.clear();
  sets_.assign(1, &kNone);
  ways_.clear();
  members_ = 0;
  closure_ = 0;
}

std::size_t GrammarMatcher::kept() const {
  return positions_.size() + members_ + ways_.size();
}

}  // namespace sluice
