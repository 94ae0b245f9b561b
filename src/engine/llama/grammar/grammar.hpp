#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace sluice {

/// What a grammar may amount to.
struct GrammarLimits {
  std::size_t depth = 64;          // of parentheses
  std::size_t elements = 50'000;   // with repetitions spelled out
  std::size_t repetitions = 2000;  // of one thing; a larger upper bound counts as none
};

/// A grammar in the form that is followed: rules with alternatives, and these a sequence of
/// elements that ends with one of kind `end`. Immutable.
class Grammar {
 public:
  struct Element {
    enum class Kind : std::uint8_t { end, rule, character, set, anything };
    Kind kind = Kind::end;
    std::uint32_t value = 0;  // the rule, the code point, or the set
  };
  struct Range {
    char32_t low = 0;
    char32_t high = 0;  // inclusive
  };

  /// Reads GBNF (llama.cpp, grammars/README.md) with a rule "root", every rule defined, within
  /// `limits`. References to tokens (<...>) are refused, and rules that begin with themselves,
  /// which could be followed for ever. Takes time in proportion to the text and the limits.
  /// Errors: -32602 that say what is wrong, with the line where it is.
  static Result<Grammar> parse(std::string_view text, const GrammarLimits& limits = {});

  /// The element at `index`; the next of its sequence is at `index` + 1.
  [[nodiscard]] const Element& element(std::uint32_t index) const { return elements_[index]; }
  /// Where the alternatives of `rule` begin.
  [[nodiscard]] std::span<const std::uint32_t> alternatives(std::uint32_t rule) const {
    return std::span(starts_).subspan(rules_[rule], rules_[rule + 1] - rules_[rule]);
  }
  [[nodiscard]] std::uint32_t root() const { return root_; }
  /// Code points that no element of this grammar tells apart have the same number.
  [[nodiscard]] std::uint32_t class_of(char32_t c) const {
    return c < ascii_.size() ? ascii_[c]
                             : static_cast<std::uint32_t>(std::ranges::upper_bound(classes_, c) -
                                                          classes_.begin());
  }
  /// Whether the element at `index`, which is no rule and no end, takes a code point from `low` to
  /// `high`, both inclusive.
  [[nodiscard]] bool takes(std::uint32_t index, char32_t low, char32_t high) const;

 private:
  friend class GrammarParser;

  void classify();

  std::vector<Element> elements_;
  std::vector<std::uint32_t> starts_;  // of alternatives, in elements_
  std::vector<std::uint32_t> rules_;   // of rules, in starts_, and its size
  std::vector<std::vector<Range>> sets_;
  std::uint32_t root_ = 0;
  std::vector<char32_t> classes_;           // where the next class begins
  std::array<std::uint32_t, 128> ascii_{};  // their classes
};

}  // namespace sluice
