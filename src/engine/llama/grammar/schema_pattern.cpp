#include "engine/llama/grammar/schema_pattern.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "engine/grammar/character_set.hpp"
#include "engine/grammar/grammar.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxPattern = 1024;  // bytes
constexpr std::size_t kMaxGroups = 50;     // depth of nested groups
constexpr std::size_t kMaxRepetitions = GrammarLimits().repetitions;

/// The characters that appear unescaped in a JSON string.
constexpr std::array<CharacterRange, 5> kUnescaped = {
    {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, 0xD7FF}, {0xE000, kLastCharacter}}};
/// The characters that have an escape of two characters in JSON, with the second character of the
/// escape.
constexpr std::array<std::pair<char32_t, char>, 7> kEscaped = {
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

/// `c` as an escape that llama.cpp reads in sets and literals.
std::string escaped(char32_t c) {
  std::array<char, 16> text{};
  const char* const form = c < 0x100 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X";
  std::snprintf(text.data(), text.size(), form, static_cast<unsigned>(c));
  return text.data();
}

/// `c` as written in sets and literals: unescaped only if it has no special meaning there.
std::string written(char32_t c) {
  const auto ascii = static_cast<char>(c);
  const bool plain =
      c < 0x80 && (is_letter(ascii) || is_digit(ascii) ||
                   (ascii != '\0' && std::string_view(" !#%&',:;<=>@_`~").contains(ascii)));
  return plain ? std::string(1, ascii) : escaped(c);
}

class PatternTranslator {
 public:
  explicit PatternTranslator(std::string_view pattern) : rest_(pattern) {}

  std::expected<std::string, std::string> run() {
    if (rest_.size() > kMaxPattern) return std::unexpected("it is longer than 1024 bytes");
    if (rest_.size() < 2 || rest_.front() != '^' || rest_.back() != '$') {
      return std::unexpected("it must begin with ^ and end with $");
    }
    rest_ = rest_.substr(1, rest_.size() - 2);
    while (!rest_.empty() && error_.empty()) step();
    if (error_.empty() && groups_ > 0) error_ = "a \")\" is missing";
    if (!error_.empty()) return std::unexpected(error_);
    return "^" + out_ + "$";
  }

 private:
  void refuse(std::string_view why) {
    if (error_.empty()) error_ = why;
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void step() {
    if (const std::optional<CharacterSet> members = take_class()) {
      add_set(*members);
    } else if (take("(")) {
      if (rest_.starts_with("?") && !take("?:")) {
        return refuse("lookahead, lookbehind and named groups are not supported");
      }
      if (++groups_ > kMaxGroups) return refuse("its groups are nested too deeply");
      out_ += "(?:";
      repeatable_ = false;
    } else if (take(")")) {
      if (groups_-- == 0) return refuse("a \")\" has no matching \"(\"");
      out_ += ')';
      repeatable_ = true;
    } else if (take("|")) {
      out_ += '|';
      repeatable_ = false;
    } else if (take(".")) {
      add_set(complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    } else if (take("[")) {
      set();
    } else if (std::string_view("*+?{").contains(rest_.front())) {
      repetition();
    } else if (std::string_view("^$").contains(rest_.front())) {
      refuse("^ and $ are supported only at the beginning and the end");
    } else if (std::string_view("]}").contains(rest_.front())) {
      refuse("a closing bracket has no matching opening bracket");
    } else if (const std::optional<char32_t> c = character("^$.[](){}|*+?")) {
      add_literal(*c);
    }
  }

  /// Reads *, +, ?, {m}, {m,} or {m,n}. A lazy repetition matches the same texts, so its `?` is
  /// dropped.
  void repetition() {
    std::size_t length = 1;
    if (rest_.front() == '{') {
      length = std::min(rest_.find('}'), rest_.size() - 1) + 1;
      const std::string_view fault = repetition_fault(rest_.substr(0, length));
      if (!fault.empty()) return refuse(fault);
    }
    if (!std::exchange(repeatable_, false)) return refuse("there is nothing to repeat");
    out_ += rest_.substr(0, length);
    rest_.remove_prefix(length);
    take("?");
  }

  /// What is wrong with {m}, {m,} or {m,n}; empty if it is valid.
  static std::string_view repetition_fault(std::string_view text) {
    static constexpr std::string_view kForm = "a repetition must be {m}, {m,} or {m,n}";
    std::array<std::size_t, 2> counts = {0, kMaxRepetitions};
    const char* at = text.data();
    const char* const stop = at + text.size();
    for (std::size_t& count : counts) {
      ++at;  // the bracket or the comma
      const auto [end, error] = std::from_chars(at, stop, count);
      if (error == std::errc::result_out_of_range) count = kMaxRepetitions + 1;
      const bool is_missing = end == at && &count == counts.begin();
      at = end;
      if (is_missing || at == stop) return kForm;
      if (*at == '}') break;
      if (*at != ',') return kForm;
    }
    if (stop - at != 1) return kForm;
    if (std::ranges::max(counts) > kMaxRepetitions) return "it repeats more than 2000 times";
    return counts[0] > counts[1] ? "the counts of a repetition are out of order" : "";
  }

  /// Reads \d, \w, \s or the complement of one of them.
  std::optional<CharacterSet> take_class() {
    const char kind = rest_.size() > 1 && rest_[0] == '\\' ? rest_[1] : '\0';
    CharacterSet members;
    switch (kind) {
      case 'd':
      case 'D':
        members = {{'0', '9'}};
        break;
      case 'w':
      case 'W':
        members = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      case 's':
      case 'S':
        members = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                   {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                   {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
        break;
      default:
        return std::nullopt;
    }
    rest_.remove_prefix(2);
    return kind < 'a' ? complement(std::move(members)) : members;
  }

  /// Reads the next character, which may be escaped; the characters in `marks` may be escaped with
  /// a backslash. Returns nothing after an error.
  std::optional<char32_t> character(std::string_view marks) {
    if (rest_.front() != '\\') {
      const std::size_t length = first_utf8_part(rest_).length;
      const char32_t c = code_point_of(rest_.substr(0, length));
      rest_.remove_prefix(length);
      return c;
    }
    const char kind = rest_.size() > 1 ? rest_[1] : '\0';
    static constexpr std::string_view kSingle = "trnfv\\\"[]-/";
    if (kind != '\0' && (marks.contains(kind) || kSingle.contains(kind))) {
      rest_.remove_prefix(2);
      return kind == 't'   ? U'\t'
             : kind == 'r' ? U'\r'
             : kind == 'n' ? U'\n'
             : kind == 'f' ? U'\f'
             : kind == 'v' ? U'\v'
                           : static_cast<char32_t>(kind);
    }
    std::optional<char32_t> c = hexadecimal();
    if (c && *c >= 0xD800 && *c <= 0xDBFF) {
      const std::optional<char32_t> second = hexadecimal();
      if (second && *second >= 0xDC00 && *second <= 0xDFFF) {
        c = 0x10000 + ((*c - 0xD800) << 10U) + (*second - 0xDC00);
      }
    }
    if (!c || (*c >= 0xD800 && *c <= 0xDFFF) || *c > kLastCharacter) {
      refuse("an escape such as \\b or \\p is not supported");
      return std::nullopt;
    }
    return c;
  }

  /// Reads \xHH, \uHHHH or \UHHHHHHHH.
  std::optional<char32_t> hexadecimal() {
    if (rest_.size() < 2 || rest_[0] != '\\') return std::nullopt;
    const std::size_t digits = rest_[1] == 'x' ? 2 : rest_[1] == 'u' ? 4 : rest_[1] == 'U' ? 8 : 0;
    const std::string_view text = rest_.substr(2, digits);
    std::uint32_t c = 0;
    const char* const stop = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), stop, c, 16);
    if (digits == 0 || text.size() != digits || error != std::errc() || end != stop) {
      return std::nullopt;
    }
    rest_.remove_prefix(2 + digits);
    return c;
  }

  /// Reads a set of characters; its opening bracket has already been read.
  void set() {
    const bool negated = take("^");
    CharacterSet members;
    while (!rest_.starts_with(']')) {
      if (rest_.empty()) return refuse("a set of characters is not closed");
      if (const std::optional<CharacterSet> those = take_class()) {
        if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
          return refuse(
              "a range of characters must begin and end with one character, not with \\d or the "
              "like");
        }
        members.insert(members.end(), those->begin(), those->end());
        continue;
      }
      const std::optional<char32_t> low = character("^$.(){}|*+?");
      if (!low) return;
      std::optional<char32_t> high = low;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        high = character("^$.(){}|*+?");
        if (!high) return;
      }
      if (*high < *low) return refuse("a range of characters is out of order");
      members.push_back({*low, *high});
    }
    rest_.remove_prefix(1);
    add_set(negated ? complement(std::move(members)) : std::move(members));
  }

  void add_set(const CharacterSet& set) {
    std::string unescaped;
    std::string escapes;
    for (const auto& [low, high] : set) {
      for (const auto& [first, last] : kUnescaped) {
        const char32_t from = std::max(low, first);
        const char32_t to = std::min(high, last);
        if (from > to) continue;
        unescaped += written(from);
        if (to > from) unescaped += "-" + written(to);
      }
      for (const auto& [c, letter] : kEscaped) {
        if (c >= low && c <= high) escapes += written(static_cast<char32_t>(letter));
      }
    }
    if (unescaped.empty() && escapes.empty()) {
      return refuse("a set contains no character that is supported");
    }
    repeatable_ = true;
    if (!unescaped.empty()) unescaped = "[" + unescaped + "]";
    if (escapes.empty()) {
      out_ += unescaped;
    } else {
      out_ += "(?:" + unescaped + (unescaped.empty() ? "" : "|") + "\\\\[" + escapes + "])";
    }
  }

  void add_literal(char32_t c) {
    const auto* const escape = std::ranges::find(kEscaped, c, &std::pair<char32_t, char>::first);
    std::string literal;
    if (escape != kEscaped.end()) {
      literal = "\\\\" + written(static_cast<char32_t>(escape->second));
    } else if (c < 0x20) {
      std::array<char, 8> digits{};
      std::snprintf(digits.data(), digits.size(), "u%04x", static_cast<unsigned>(c));
      literal = "\\\\" + std::string(digits.data());
    } else {
      literal = written(c);
    }
    repeatable_ = true;
    // Without a group, llama.cpp would repeat the characters before it as well.
    const bool is_repeated = !rest_.empty() && std::string_view("*+?{").contains(rest_.front());
    out_ += is_repeated ? "(?:" + literal + ")" : literal;
  }

  std::string_view rest_;
  std::string out_;
  std::string error_;
  std::size_t groups_ = 0;
  bool repeatable_ = false;
};

}  // namespace

std::expected<std::string, std::string> followed_pattern(std::string_view pattern) {
  return PatternTranslator(pattern).run();
}

}  // namespace sluice
