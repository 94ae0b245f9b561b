#include "engine/llama/grammar_check.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "core/json.hpp"
#include "core/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c);
}

/// A recursive descent over the text; the recursion is bounded by GrammarLimits::depth. Each
/// parse_ function returns false after it has set error_.
class GrammarParser {
 public:
  GrammarParser(std::string_view text, const GrammarLimits& limits)
      : text_(text), limits_(limits) {}

  Result<void> run() {
    if (!parse_rules()) {
      std::string message = "grammar, line ";
      append_number(message, 1 + std::ranges::count(text_.substr(0, at_), '\n'));
      return fail(kInvalidParams, message + ": " + error_);
    }
    return {};
  }

 private:
  /// The thing that a repetition behind it repeats.
  struct Symbol {
    std::size_t elements = 0;
    std::size_t rules = 1;  // that llama.cpp makes for it
  };

  bool parse_rules() {
    skip_space(true);
    while (at_ < text_.size()) {
      const std::string_view name = take_name();
      if (name.empty()) return refuse("the name of a rule must stand here");
      skip_space(false);
      if (!take("::=")) return refuse("\"::=\" must follow the name of a rule");
      mentioned_.insert(name);
      defined_.insert(name);
      skip_space(true);
      if (!parse_alternates(0)) return false;
      if (peek() == ')') return refuse("this \")\" closes nothing");
      if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
        return refuse("this character has no meaning here");
      }
      skip_space(true);
    }
    if (!defined_.contains("root")) return refuse("there is no rule \"root\"");
    for (const std::string_view name : mentioned_) {
      if (!defined_.contains(name)) {
        return refuse("the rule \"" + std::string(name) + "\" is not defined");
      }
    }
    return true;
  }

  bool parse_alternates(std::size_t depth) {
    if (!parse_sequence(depth)) return false;
    while (peek() == '|') {
      ++at_;
      skip_space(true);
      if (!count(1) || !parse_sequence(depth)) return false;
    }
    return count(1);
  }

  bool parse_sequence(std::size_t depth) {
    const bool nested = depth > 0;
    Symbol last;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '"' || c == '[') {
        last = {};
        if (!parse_characters(c == '"' ? '"' : ']', last)) return false;
      } else if (c == '.' || is_word(c)) {
        if (c == '.') {
          ++at_;
        } else {
          mentioned_.insert(take_name());
        }
        last = {.elements = 1, .rules = 1};
      } else if (c == '(') {
        if (depth == limits_.depth) return refuse("it nests too deeply");
        ++at_;
        skip_space(true);
        const std::size_t before = symbols();
        ++generated_;
        if (!parse_alternates(depth + 1)) return false;
        if (peek() != ')') return refuse("a \")\" is missing");
        ++at_;
        last = {.elements = 1, .rules = std::max<std::size_t>(1, symbols() - before)};
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (!parse_repetition(last, nested)) return false;
        continue;
      } else if (c == '<' || c == '!') {
        return refuse("references to tokens are not supported");
      } else {
        break;
      }
      if (!count(last.elements)) return false;
      skip_space(nested);
    }
    return true;
  }

  /// A literal or a set of characters, up to `end`.
  bool parse_characters(char end, Symbol& symbol) {
    ++at_;
    if (end == ']' && peek() == '^') ++at_;
    while (peek() != end) {
      if (!parse_character()) return false;
      ++symbol.elements;
      if (end == ']' && peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        if (!parse_character()) return false;
        ++symbol.elements;
      }
    }
    ++at_;
    return true;
  }

  bool parse_character() {
    if (at_ >= text_.size()) return refuse("a literal or a set of characters does not end");
    if (peek() != '\\') {
      do {
        ++at_;
      } while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0U) == 0x80U);
      return true;
    }
    ++at_;
    const char escape = peek();
    ++at_;
    const std::size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    if (digits == 0) {
      constexpr std::string_view kEscapes = "trn\\\"[]-";
      return kEscapes.contains(escape) || refuse("this escape has no meaning");
    }
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      if (!is_hex(peek())) return refuse("an escape has too few hexadecimal digits");
    }
    return true;
  }

  /// *, +, ?, {m}, {m,} or {m,n} behind `symbol`.
  bool parse_repetition(Symbol& symbol, bool nested) {
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
    if (symbol.elements == 0) return refuse("there is nothing to repeat");
    if (most < least) return refuse("a repetition has its numbers the wrong way round");
    if (most != kNoLimit && most > limits_.repetitions) most = kNoLimit;  // as llama.cpp does
    const std::size_t times = most != kNoLimit && most > 0 ? most : std::max<std::size_t>(least, 1);
    if (least > limits_.repetitions || symbol.rules * times > limits_.repetitions) {
      return refuse("something is repeated too often");
    }
    const std::size_t optional = most == kNoLimit ? 1 : most - least;
    const std::size_t added =
        symbol.elements * (least > 0 ? least - 1 : 0) + optional * (symbol.elements + 3) + 1;
    generated_ += optional;
    symbol.elements = most == 0 ? 0 : symbol.elements * least + 1;
    symbol.rules *= times;
    return count(added);
  }

  bool parse_number(std::size_t& number, bool nested) {
    if (!is_digit(peek())) return refuse("a number must stand here");
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

  bool count(std::size_t elements) {
    elements_ += elements;
    return elements_ <= limits_.elements || refuse("it is too large once it is spelled out");
  }

  bool refuse(std::string why) {
    at_ = std::min(at_, text_.size());
    error_ = std::move(why);
    return false;
  }

  /// Spaces, comments, and with `lines` line ends.
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

  /// NUL behind the end; there is none before it.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] std::size_t symbols() const { return mentioned_.size() + generated_; }

  const std::string_view text_;
  const GrammarLimits limits_;
  std::size_t at_ = 0;
  std::string error_;
  std::set<std::string_view> mentioned_;  // the names of rules
  std::set<std::string_view> defined_;
  std::size_t generated_ = 0;  // rules that llama.cpp makes up
  std::size_t elements_ = 0;
};

}  // namespace

Result<void> check_grammar(std::string_view grammar, const GrammarLimits& limits) {
  if (grammar.find('\0') != std::string_view::npos || !is_valid_utf8(grammar)) {
    return fail(kInvalidParams, "grammar must be UTF-8 text");
  }
  return GrammarParser(grammar, limits).run();
}

}  // namespace sluice
