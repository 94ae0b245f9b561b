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
#include "engine/grammar/character_set.hpp"

namespace sluice {

/// Limits on the size of a grammar.
struct GrammarLimits {
  std::size_t depth = 64;          // of parentheses
  std::size_t elements = 50'000;   // with repetitions expanded
  std::size_t repetitions = 2000;  // of one element; a larger upper bound counts as unlimited
};

/// A grammar in a form that can be followed: rules have alternatives, and an alternative is a
/// sequence of elements that ends with an element of kind `end`. Immutable.
class Grammar {
 public:
  struct Element {
    enum class Kind : std::uint8_t { end, rule, character, set, anything };
    Kind kind = Kind::end;
    std::uint32_t value = 0;  // the number of the rule, the code point, or the number of the set
  };

  /// Parses GBNF (llama.cpp, grammars/README.md). There must be a rule "root", every rule must be
  /// defined, and the grammar must be within `limits`. Refuses references to tokens (<...>), sets
  /// without characters, after which no text could go on, and rules that begin with themselves,
  /// which could be followed for ever. Takes time proportional to
  /// the text and the limits. Error: -32602, which says what is wrong and in which line.
  static Result<Grammar> parse(std::string_view text, const GrammarLimits& limits = {});

  /// The element at `index`; the next one of its sequence is at `index` + 1.
  [[nodiscard]] const Element& element(std::uint32_t index) const { return elements_[index]; }
  /// Where the alternatives of `rule` begin.
  [[nodiscard]] std::span<const std::uint32_t> alternatives(std::uint32_t rule) const {
    return std::span(starts_).subspan(rules_[rule], rules_[rule + 1] - rules_[rule]);
  }
  [[nodiscard]] std::uint32_t root() const { return root_; }
  /// The class of a code point. Code points in the same class are treated alike by every element of
  /// this grammar.
  [[nodiscard]] std::uint32_t class_of(char32_t c) const {
    return c < ascii_.size() ? ascii_[c]
                             : static_cast<std::uint32_t>(std::ranges::upper_bound(classes_, c) -
                                                          classes_.begin());
  }
  /// Whether the element at `index`, which must not be a rule or an end, accepts some character
  /// from `low` to `high`, both inclusive. Surrogates (U+D800 to U+DFFF) are no characters.
  [[nodiscard]] bool takes(std::uint32_t index, char32_t low, char32_t high) const;

 private:
  friend class GrammarParser;

  void classify();

  std::vector<Element> elements_;
  std::vector<std::uint32_t> starts_;  // where each alternative starts in elements_
  std::vector<std::uint32_t> rules_;  // where each rule starts in starts_, then the size of starts_
  std::vector<CharacterSet> sets_;
  std::uint32_t root_ = 0;
  std::vector<char32_t> classes_;           // the first code point of each class but the first
  std::array<std::uint32_t, 128> ascii_{};  // the classes of ASCII characters
};

}  // namespace sluice
