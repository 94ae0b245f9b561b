#include "engine/grammar/grammar.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "engine/grammar/left_recursion.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using GrammarElement = Grammar::Element;
using ElementKind = Grammar::Element::Kind;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c);
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The characters in `ranges`, or outside them if `negated`; sorted and without overlaps.
CharacterSet characters(CharacterSet ranges, bool negated) {
  CharacterSet others = negated ? std::move(ranges) : complement(std::move(ranges));
  others.push_back(kSurrogates);
  return complement(std::move(others));
}

}  // namespace

/// A recursive-descent parser. GrammarLimits::depth bounds the recursion. Each parse_ function
/// returns false after it has set error_.
class GrammarParser {
 public:
  GrammarParser(std::string_view text, const GrammarLimits& limits)
      : text_(text), limits_(limits) {}

  Result<Grammar> run() {
    if (!parse_rules()) {
      std::string message = "grammar, line ";
      append_number(message, 1 + std::ranges::count(text_.substr(0, at_), '\n'));
      return fail(kInvalidParams, message + ": " + error_);
    }
    Grammar grammar = flattened();
    if (const auto rule = left_recursive_rule(grammar, rules_.size())) {
      return fail(kInvalidParams, "grammar is left-recursive: \"" + name_of(*rule) +
                                      "\" can begin with itself; let each repetition begin with "
                                      "something else, or use * or +");
    }
    return grammar;
  }

 private:
  using Sequence = std::vector<GrammarElement>;
  using Alternatives = std::vector<Sequence>;

  bool parse_rules() {
    skip_space(true);
    while (at_ < text_.size()) {
      const std::string_view name = take_name();
      if (name.empty()) return refuse("expected the name of a rule");
      skip_space(false);
      if (!take("::=")) return refuse("\"::=\" must follow the name of a rule");
      const std::uint32_t rule = rule_named(name);
      skip_space(true);
      Alternatives alternatives;
      if (!parse_alternates(0, alternatives)) return false;
      if (peek() == ')') return refuse("this \")\" has no matching \"(\"");
      if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
        return refuse("unexpected character");
      }
      rules_[rule] = std::move(alternatives);
      skip_space(true);
    }
    if (!names_.contains("root")) return refuse("there is no rule \"root\"");
    for (const auto& [name, rule] : names_) {
      if (rules_[rule].empty()) {
        return refuse("the rule \"" + std::string(name) + "\" is not defined");
      }
    }
    return true;
  }

  bool parse_alternates(std::size_t depth, Alternatives& alternatives) {
    for (;;) {
      if (!count(1) || !parse_sequence(depth, alternatives.emplace_back())) return false;
      if (peek() != '|') return true;
      ++at_;
      skip_space(true);
    }
  }

  bool parse_sequence(std::size_t depth, Sequence& sequence) {
    const bool nested = depth > 0;
    std::size_t last = 0;  // where the element that a repetition applies to begins
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (!parse_repetition(nested, sequence, last)) return false;
        continue;
      }
      last = sequence.size();
      if (c == '"') {
        if (!parse_literal(sequence)) return false;
      } else if (c == '[') {
        if (!parse_set(sequence)) return false;
      } else if (c == '.') {
        ++at_;
        if (!add(sequence, {.kind = ElementKind::anything})) return false;
      } else if (is_word(c)) {
        if (!add(sequence, {.kind = ElementKind::rule, .value = rule_named(take_name())})) {
          return false;
        }
      } else if (c == '(') {
        if (depth == limits_.depth) {
          return refuse(
              "parentheses are nested too deeply; make a separate rule of the inner part");
        }
        ++at_;
        skip_space(true);
        Alternatives inner;
        if (!parse_alternates(depth + 1, inner)) return false;
        if (peek() != ')') return refuse("a \")\" is missing");
        ++at_;
        if (!add(sequence, new_rule(std::move(inner)))) return false;
      } else if (c == '<' || c == '!') {
        return refuse("references to tokens are not supported");
      } else {
        break;
      }
      skip_space(nested);
    }
    return true;
  }

  bool parse_literal(Sequence& sequence) {
    ++at_;
    while (peek() != '"') {
      char32_t c = 0;
      if (!parse_character(c)) return false;
      if (c >= kSurrogates.low && c <= kSurrogates.high) {
        return refuse(
            "an escape from \\uD800 to \\uDFFF is no character; write one beyond U+FFFF "
            "as \\UHHHHHHHH");
      }
      if (!add(sequence, {.kind = ElementKind::character, .value = c})) return false;
    }
    ++at_;
    return true;
  }

  /// Parses [a-z] or [^a-z]. An empty pair of brackets stands for no text, as in llama.cpp. A set
  /// that no character is in would be a dead end.
  bool parse_set(Sequence& sequence) {
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    CharacterSet ranges;
    while (peek() != ']') {
      CharacterRange range;
      if (!parse_character(range.low)) return false;
      range.high = range.low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        if (!parse_character(range.high)) return false;
      }
      if (!count(1)) return false;
      ranges.push_back(range);
    }
    ++at_;
    if (ranges.empty()) return true;
    sets_.push_back(characters(std::move(ranges), negated));
    if (sets_.back().empty()) return refuse("no character is in this set");
    return add(sequence,
               {.kind = ElementKind::set, .value = static_cast<std::uint32_t>(sets_.size() - 1)});
  }

  bool parse_character(char32_t& c) {
    if (at_ >= text_.size()) return refuse("a literal or a set of characters is not closed");
    if (peek() != '\\') {
      const auto first = static_cast<unsigned char>(peek());
      c = first < 0x80   ? first
          : first < 0xE0 ? first & 0x1FU
          : first < 0xF0 ? first & 0x0FU
                         : first & 0x07U;
      for (++at_; at_ < text_.size() && (static_cast<unsigned char>(peek()) & 0xC0U) == 0x80U;
           ++at_) {
        c = c << 6U | (static_cast<unsigned char>(peek()) & 0x3FU);
      }
      return true;
    }
    ++at_;
    const char escape = peek();
    ++at_;
    const std::size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    if (digits == 0) {
      constexpr std::string_view kEscapes = "trn\\\"[]-";
      if (!kEscapes.contains(escape)) return refuse("unknown escape");
      c = escape == 't'   ? U'\t'
          : escape == 'r' ? U'\r'
          : escape == 'n' ? U'\n'
                          : static_cast<char32_t>(escape);
      return true;
    }
    c = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const int value = hex_value(peek());
      if (value < 0) return refuse("an escape has too few hexadecimal digits");
      c = c << 4U | static_cast<char32_t>(value);
    }
    return c <= kLastCharacter || refuse("an escape is beyond Unicode's last character, U+10FFFF");
  }

  /// Parses *, +, ?, {m}, {m,} or {m,n} after the element that begins at `last` in `sequence`.
  /// S{2,4} becomes S S R2, with R2 ::= S R1 | "" and R1 ::= S | ""; S* becomes R, with R ::= S R |
  /// "".
  bool parse_repetition(bool nested, Sequence& sequence, std::size_t last) {
    const char c = peek();
    ++at_;
    std::size_t least = c == '+' ? 1 : 0;
    std::size_t most = c == '?' ? 1 : kNoLimit;
    skip_space(nested);
    if (c == '{') {
      if (!parse_number(least, nested)) return false;
      most = least;
      if (peek() == ',') {
        ++at_;
        skip_space(nested);
        most = kNoLimit;
        if (is_digit(peek()) && !parse_number(most, nested)) return false;
      }
      if (peek() != '}') return refuse("a \"}\" is missing");
      ++at_;
      skip_space(nested);
    }
    if (sequence.size() == last) return refuse("there is nothing to repeat");
    if (most < least) return refuse("the numbers of a repetition are in the wrong order");
    if (least > limits_.repetitions) {
      std::string message = "an element is repeated too often; the maximum is ";
      append_number(message, limits_.repetitions);
      return refuse(std::move(message));
    }
    if (most > limits_.repetitions) most = kNoLimit;
    GrammarElement repeated = sequence[last];
    if (sequence.size() - last > 1) {
      repeated = new_rule(
          {Sequence(sequence.begin() + static_cast<std::ptrdiff_t>(last), sequence.end())});
    }
    sequence.resize(last);
    const std::size_t optional = most == kNoLimit ? 1 : most - least;
    if (!count(least + 4 * optional)) return false;
    sequence.insert(sequence.end(), least, repeated);
    if (most == kNoLimit) {
      const GrammarElement again = new_rule({});
      rules_[again.value] = {{repeated, again}, {}};
      sequence.push_back(again);
    } else if (optional > 0) {
      GrammarElement rest = new_rule({{repeated}, {}});
      for (std::size_t i = 1; i < optional; ++i) rest = new_rule({{repeated, rest}, {}});
      sequence.push_back(rest);
    }
    return true;
  }

  bool parse_number(std::size_t& number, bool nested) {
    if (!is_digit(peek())) return refuse("expected a number");
    number = 0;
    while (is_digit(peek())) {
      number = number * 10 + static_cast<std::size_t>(peek() - '0');
      if (number > std::numeric_limits<std::uint32_t>::max()) {
        return refuse("a number is too large");
      }
      ++at_;
    }
    skip_space(nested);
    return true;
  }

  bool add(Sequence& sequence, GrammarElement element) {
    sequence.push_back(element);
    return count(1);
  }

  bool count(std::size_t elements) {
    elements_ += elements;
    if (elements_ <= limits_.elements) return true;
    std::string message = "the grammar is too large after expanding repetitions: the maximum is ";
    append_number(message, limits_.elements);
    return refuse(message + " elements; repeat less, or make rules for repeated parts");
  }

  bool refuse(std::string why) {
    at_ = std::min(at_, text_.size());
    error_ = std::move(why);
    return false;
  }

  std::uint32_t rule_named(std::string_view name) {
    const auto [at, added] = names_.emplace(name, static_cast<std::uint32_t>(rules_.size()));
    if (added) rules_.emplace_back();
    return at->second;
  }

  GrammarElement new_rule(Alternatives alternatives) {
    rules_.push_back(std::move(alternatives));
    return {.kind = ElementKind::rule, .value = static_cast<std::uint32_t>(rules_.size() - 1)};
  }

  [[nodiscard]] std::string name_of(std::uint32_t rule) const {
    for (const auto& [name, number] : names_) {
      if (number == rule) return std::string(name);
    }
    return "a part in parentheses or a repetition";
  }

  Grammar flattened() {
    Grammar grammar;
    grammar.root_ = names_.at("root");
    grammar.sets_ = std::move(sets_);
    for (const Alternatives& alternatives : rules_) {
      grammar.rules_.push_back(static_cast<std::uint32_t>(grammar.starts_.size()));
      for (const Sequence& sequence : alternatives) {
        grammar.starts_.push_back(static_cast<std::uint32_t>(grammar.elements_.size()));
        grammar.elements_.insert(grammar.elements_.end(), sequence.begin(), sequence.end());
        grammar.elements_.emplace_back();
      }
    }
    grammar.rules_.push_back(static_cast<std::uint32_t>(grammar.starts_.size()));
    grammar.classify();
    return grammar;
  }

  /// Skips spaces, comments and, with `lines`, line ends.
  void skip_space(bool lines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
        if (!lines || at_ == text_.size()) return;
      } else if (c != ' ' && c != '\t' && !(lines && (c == '\r' || c == '\n'))) {
        return;
      }
    }
  }

  std::string_view take_name() {
    const std::size_t start = at_;
    while (is_word(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  bool take(std::string_view expected) {
    if (!text_.substr(std::min(at_, text_.size())).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  /// The next character; NUL at the end, because the text contains no NUL.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  const std::string_view text_;
  const GrammarLimits limits_;
  std::size_t at_ = 0;
  std::string error_;
  std::map<std::string_view, std::uint32_t> names_;  // rule name -> number
  std::vector<Alternatives> rules_;  // a rule without alternatives is not defined yet
  std::vector<CharacterSet> sets_;
  std::size_t elements_ = 0;
};

Result<Grammar> Grammar::parse(std::string_view text, const GrammarLimits& limits) {
  if (text.find('\0') != std::string_view::npos || !is_valid_utf8(text)) {
    return fail(kInvalidParams, "grammar must be UTF-8 text");
  }
  return GrammarParser(text, limits).run();
}

void Grammar::classify() {
  for (const Element& element : elements_) {
    if (element.kind != ElementKind::character) continue;
    classes_.push_back(element.value);
    classes_.push_back(element.value + 1);
  }
  for (const CharacterSet& set : sets_) {
    for (const CharacterRange& range : set) {
      classes_.push_back(range.low);
      classes_.push_back(range.high + 1);
    }
  }
  std::ranges::sort(classes_);
  const auto same = std::ranges::unique(classes_);
  classes_.erase(same.begin(), same.end());
  for (char32_t c = 0; c < ascii_.size(); ++c) {
    ascii_[c] =
        static_cast<std::uint32_t>(std::ranges::upper_bound(classes_, c) - classes_.begin());
  }
}

bool Grammar::takes(std::uint32_t index, char32_t low, char32_t high) const {
  const Element& element = elements_[index];
  switch (element.kind) {
    case ElementKind::character:
      return element.value >= low && element.value <= high;
    case ElementKind::anything:
      return low < kSurrogates.low || high > kSurrogates.high;
    case ElementKind::set: {
      const CharacterSet& set = sets_[element.value];
      const auto range = std::ranges::lower_bound(set, low, {}, &CharacterRange::high);
      return range != set.end() && range->low <= high;
    }
    case ElementKind::end:
    case ElementKind::rule:
      break;
  }
  return false;
}

}  // namespace sluice
