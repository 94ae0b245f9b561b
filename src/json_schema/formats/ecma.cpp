#include "json_schema/formats/ecma.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "core/text/text.hpp"

namespace sluice {
namespace {

using Text = std::expected<std::string, std::string>;

constexpr int kMaxGroups = 200;                       // nested groups
constexpr std::size_t kMaxExpression = 256UL * 1024;  // bytes, after repetitions are written out
constexpr std::uint32_t kMaxRepeat = 1000;            // RE2's limit for one operator
constexpr std::uint32_t kMaxRepeatWrittenOut = 20'000;
constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kWorkOfVisit = 2;       // see TranslatedRegex::work
constexpr std::uint64_t kWorkOfProperty = 600;  // some have hundreds of ranges of characters
constexpr char32_t kMaxCharacter = 0x10FFFF;

// Contents of RE2 character classes. White space is that of ECMA-262 sections 12.2 and 12.3.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{D}\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF})";
constexpr std::string_view kAnything = R"(\x{0}-\x{10FFFF})";
constexpr std::string_view kAsciiOnly = R"(\x{0}-\x{7F})";
constexpr std::string_view kNotAscii = R"(\x{80}-\x{10FFFF})";
constexpr std::string_view kDot = R"([^\x{A}\x{D}\x{2028}\x{2029}])";

/// The long names of general categories (Unicode's PropertyValueAliases); RE2 knows the short ones.
constexpr auto kCategories = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"Letter", "L"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Private_Use", "Co"},
});

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string class_character(char32_t character) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string digits;
  do {
    digits.insert(digits.begin(), kDigits[character % 16]);
    character /= 16;
  } while (character != 0);
  return "\\x{" + digits + "}";
}

std::string repeat_suffix(std::uint32_t low, std::uint32_t high) {
  std::string out = "{" + std::to_string(low);
  if (high != low) out += high == kUnlimited ? "," : "," + std::to_string(high);
  return out + "}";
}

/// `atom` repeated from `low` to `high` times, with no single operator above RE2's limit.
Text repeat(const std::string& atom, std::uint32_t low, std::uint32_t high) {
  if (high == 0) return std::string("(?:)");
  if (low <= kMaxRepeat && (high <= kMaxRepeat || high == kUnlimited)) {
    return atom + repeat_suffix(low, high);
  }
  if ((high == kUnlimited ? low : high) > kMaxRepeatWrittenOut) {
    return std::unexpected("it repeats too often: at most 20000 times");
  }
  const std::uint32_t rest = high == kUnlimited ? high : high - kMaxRepeat;
  Text tail = repeat(atom, low > kMaxRepeat ? low - kMaxRepeat : 0, rest);
  if (!tail) return tail;
  std::string many = atom + repeat_suffix(kMaxRepeat, kMaxRepeat) + *tail;
  if (low < kMaxRepeat) {
    many = "(?:" + atom + repeat_suffix(low, kMaxRepeat - 1) + "|" + many + ")";
  }
  if (many.size() > kMaxExpression) return std::unexpected("it is too large");
  return many;
}

/// What an escape stands for: one character, or the contents of a character class.
struct ClassItem {
  std::optional<char32_t> character;
  std::string set;
};
using Item = std::expected<ClassItem, std::string>;

ClassItem one_character(char32_t character) {
  return {character, {}};
}
ClassItem character_set(std::string_view set) {
  return {std::nullopt, std::string(set)};
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::expected<TranslatedRegex, RegexError> translate() {
    Text main = disjunction();
    if (main && !rest().empty()) main = std::unexpected("it has a ) without a (");
    if (main && alternatives_ && !parts_.empty()) main = unsupported(kLookaround);
    if (!main) return std::unexpected(RegexError{std::move(main).error(), may_be_valid_});
    parts_.push_back({std::move(*main), true});
    std::uint64_t work = visits_ * kWorkOfVisit + properties_ * kWorkOfProperty;
    for (const RegexPart& part : parts_) work += part.expression.size();
    return TranslatedRegex{std::move(parts_), visits_, work};
  }

 private:
  static constexpr std::string_view kLookaround =
      "lookaround is supported only right after a leading ^ and right before a trailing $";

  std::unexpected<std::string> unsupported(std::string_view why) {
    may_be_valid_ = true;
    return std::unexpected(std::string(why));
  }

  std::string_view rest() const { return pattern_.substr(at_); }
  char peek() const { return at_ < pattern_.size() ? pattern_[at_] : '\0'; }

  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  Text disjunction() {
    std::string out;
    while (true) {
      Text next = alternative();
      if (!next) return next;
      out += *next;
      if (out.size() > kMaxExpression) return std::unexpected("it is too large");
      if (!take("|")) return out;
      out += '|';
      ++visits_;
      if (depth_ == 0) alternatives_ = true;
    }
  }

  Text alternative() {
    std::string out;
    while (at_ < pattern_.size() && peek() != '|' && peek() != ')') {
      Text next = term();
      if (!next) return next;
      out += *next;
      if (out.size() > kMaxExpression) return std::unexpected("it is too large");
    }
    return out;
  }

  Text term() {
    if (take("^")) {
      if (depth_ == 0 && at_ == 1) {
        if (auto error = leading_lookaheads()) return std::unexpected(std::move(*error));
      }
      return assertion("\\A");
    }
    if (take("$")) return assertion("\\z");
    if (take("\\b")) return assertion("\\b");
    if (take("\\B")) return assertion("\\B");
    if (rest().starts_with("(?<=") || rest().starts_with("(?<!")) return trailing_lookbehind();
    const std::uint64_t before = visits_;
    Text unit = atom();
    if (!unit) return unit;
    return quantified(std::move(*unit), before);
  }

  /// An assertion has width 0 and cannot be repeated.
  Text assertion(std::string_view text) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    if (peek() == '*' || peek() == '+' || peek() == '?' || braces(low, high)) {
      return std::unexpected("it repeats an assertion");
    }
    ++visits_;
    return std::string(text);
  }

  std::optional<std::string> leading_lookaheads() {
    while (rest().starts_with("(?=") || rest().starts_with("(?!")) {
      const bool wanted = pattern_[at_ + 2] == '=';
      at_ += 3;
      Text inside = group_inside();
      if (!inside) return std::move(inside).error();
      parts_.push_back({"\\A(?:" + *inside + ")", wanted});
      if (Text none = assertion(""); !none) return std::move(none).error();
    }
    return std::nullopt;
  }

  Text trailing_lookbehind() {
    if (depth_ != 0) return unsupported(kLookaround);
    const bool wanted = pattern_[at_ + 3] == '=';
    at_ += 4;
    Text inside = group_inside();
    if (!inside) return inside;
    const bool another = rest().starts_with("(?<=") || rest().starts_with("(?<!");
    if (!another && rest() != "$") return unsupported(kLookaround);
    parts_.push_back({"(?:" + *inside + ")\\z", wanted});
    return std::string();
  }

  /// Reads up to and including the closing parenthesis.
  Text group_inside() {
    if (++depth_ > kMaxGroups) return std::unexpected("it nests too many groups");
    Text inside = disjunction();
    --depth_;
    if (inside && !take(")")) return std::unexpected("it has a ( without a )");
    return inside;
  }

  Text atom() {
    const char c = peek();
    if (c == '(') return group();
    ++visits_;
    if (c == '*' || c == '+' || c == '?') {
      return std::unexpected(std::string("it has nothing to repeat before ") + c);
    }
    if (take(".")) return std::string(kDot);
    if (take("[")) return character_class();
    if (c == '\\') {
      Item item = escape(false);
      if (!item) return std::unexpected(std::move(item).error());
      return "[" + (item->character ? class_character(*item->character) : item->set) + "]";
    }
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    if (c == '{' && braces(low, high)) {
      return std::unexpected("it has nothing to repeat before {");
    }
    return class_character_in_brackets(next_character());
  }

  static std::string class_character_in_brackets(char32_t character) {
    const auto c = static_cast<char>(character);
    if (character < 0x80 && (is_letter(c) || is_digit(c))) return std::string(1, c);
    return class_character(character);
  }

  Text group() {
    ++at_;
    if (rest().starts_with("?=") || rest().starts_with("?!")) {
      return unsupported(kLookaround);
    }
    if (take("?<")) {
      const std::size_t end = rest().find('>');
      if (end == std::string_view::npos || end == 0) {
        return std::unexpected("it has a group without a name");
      }
      at_ += end + 1;
    } else if (rest().starts_with("?") && !take("?:")) {
      return std::unexpected("it has a (? that does not begin a group of ECMA-262");
    }
    Text inside = group_inside();
    if (!inside) return inside;
    return "(?:" + *inside + ")";
  }

  /// `before` is the number of visits without those of `unit`.
  Text quantified(std::string unit, std::uint64_t before) {
    std::uint32_t low = 0;
    std::uint32_t high = kUnlimited;
    if (take("+")) {
      low = 1;
    } else if (take("?")) {
      high = 1;
    } else if (!take("*")) {
      if (peek() != '{' || !braces(low, high)) return unit;
      if (low > high) return std::unexpected("it has a {m,n} with m above n");
    }
    // Whether it is greedy does not affect whether there is a match.
    take("?");
    count_repeated(before, low, high);
    if (low == 0 && high == kUnlimited) return unit + "*";
    if (low == 1 && high == kUnlimited) return unit + "+";
    if (low == 0 && high == 1) return unit + "?";
    return repeat(unit, low, high);
  }

  /// Multiplies the visits counted since `before` by how often the unit may be repeated. Each
  /// repetition that is optional adds one visit for the choice.
  void count_repeated(std::uint64_t before, std::uint32_t low, std::uint32_t high) {
    constexpr std::uint64_t kMany = std::uint64_t{1} << 32U;  // more than can be compiled
    const std::uint64_t times = high == kUnlimited ? std::max(low, 1U) : high;
    const std::uint64_t each = visits_ - before + (low == high ? 0 : 1);
    visits_ = std::min(kMany, before + times * each);
  }

  /// Reads {n}, {n,} or {n,m}. Leaves anything else unread.
  bool braces(std::uint32_t& low, std::uint32_t& high) {
    const std::size_t start = at_;
    if (take("{") && number(low)) {
      high = low;
      if (take(",")) {
        if (peek() == '}') {
          high = kUnlimited;
        } else if (!number(high)) {
          at_ = start;
          return false;
        }
      }
      if (take("}")) return true;
    }
    at_ = start;
    return false;
  }

  bool number(std::uint32_t& value) {
    if (!is_digit(peek())) return false;
    constexpr std::uint32_t kHuge = 100'000'000;  // large enough to be refused
    value = 0;
    for (; is_digit(peek()); ++at_) {
      value = std::min(kHuge, value * 10 + static_cast<std::uint32_t>(peek() - '0'));
    }
    return true;
  }

  /// Reads a class after its opening bracket.
  Text character_class() {
    const bool negated = take("^");
    std::string inside;
    while (!take("]")) {
      if (at_ == pattern_.size()) return std::unexpected("it has a [ without a ]");
      Item first = class_atom();
      if (!first) return std::unexpected(std::move(first).error());
      const bool range = peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
      if (!first->character) {
        inside += first->set;
      } else if (!range) {
        inside += class_character(*first->character);
      } else {
        ++at_;
        Item last = class_atom();
        if (!last) return std::unexpected(std::move(last).error());
        if (!last->character || *last->character < *first->character) {
          return std::unexpected("it has a character range that is out of order");
        }
        inside += class_character(*first->character) + "-" + class_character(*last->character);
      }
    }
    // RE2 has no empty class.
    if (inside.empty()) return negated ? bracketed("[", kAnything) : bracketed("[^", kAnything);
    return bracketed(negated ? "[^" : "[", inside);
  }

  static std::string bracketed(std::string_view open, std::string_view inside) {
    return std::string(open).append(inside).append("]");
  }

  Item class_atom() {
    if (peek() == '\\') return escape(true);
    return one_character(next_character());
  }

  /// Reads one character. The pattern is known to be valid UTF-8.
  char32_t next_character() {
    const auto first = static_cast<unsigned char>(pattern_[at_++]);
    if (first < 0x80) return first;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    char32_t character = first & (0x3FU >> static_cast<unsigned>(more));
    for (int i = 0; i < more && at_ < pattern_.size(); ++i) {
      character = (character << 6U) | (static_cast<unsigned char>(pattern_[at_++]) & 0x3FU);
    }
    return std::min(character, kMaxCharacter);
  }

  /// Reads an escape that stands for a character or a set of characters, beginning with the
  /// backslash.
  Item escape(bool in_class) {
    ++at_;
    if (at_ == pattern_.size()) return std::unexpected("it ends in a backslash");
    if (!is_ascii(peek())) return std::unexpected("it has an unknown escape");
    const char c = pattern_[at_++];
    switch (c) {
      case 'd':
        return character_set("\\d");
      case 'D':
        return character_set("\\D");
      case 'w':
        return character_set("\\w");
      case 'W':
        return character_set("\\W");
      case 's':
        return character_set(kSpace);
      case 'S':
        return character_set(kNotSpace);
      case 't':
        return one_character('\t');
      case 'n':
        return one_character('\n');
      case 'v':
        return one_character('\v');
      case 'f':
        return one_character('\f');
      case 'r':
        return one_character('\r');
      case 'c':
        if (!is_letter(peek())) return std::unexpected("it has a \\c without a letter");
        return one_character(static_cast<char32_t>(pattern_[at_++]) % 32);
      case 'x':
        return hexadecimal(2);
      case 'u':
        return unicode();
      case 'p':
      case 'P':
        return property(c == 'P');
      case 'b':
        if (in_class) return one_character('\b');
        break;
      case '0':
        if (!is_digit(peek())) return one_character(0);
        break;
      case 'k':
        return unsupported("backreferences are not supported");
      default:
        if (!is_letter(c) && !is_digit(c)) return one_character(static_cast<char32_t>(c));
        if (c >= '1' && c <= '9' && !in_class) {
          return unsupported("backreferences are not supported");
        }
    }
    return std::unexpected(std::string("there is no escape \\") + c);
  }

  Item hexadecimal(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) return std::unexpected("it has an escape with too few hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    return one_character(value);
  }

  /// Reads what follows \u: four digits, two such escapes that form a surrogate pair, or digits in
  /// braces.
  Item unicode() {
    if (take("{")) {
      char32_t value = 0;
      const std::size_t start = at_;
      for (int digit = hex_digit(peek()); digit >= 0; digit = hex_digit(peek())) {
        value = value * 16 + static_cast<char32_t>(digit);
        if (value > kMaxCharacter) break;
        ++at_;
      }
      if (value > kMaxCharacter || at_ == start || !take("}")) {
        return std::unexpected("it has a \\u{...} that is not a character");
      }
      return one_character(value);
    }
    Item first = hexadecimal(4);
    if (!first || *first->character < 0xD800 || *first->character > 0xDBFF) return first;
    const std::size_t start = at_;
    if (take("\\u")) {
      const Item second = hexadecimal(4);
      if (second && *second->character >= 0xDC00 && *second->character <= 0xDFFF) {
        return one_character(0x10000 + ((*first->character - 0xD800) << 10U) +
                             (*second->character - 0xDC00));
      }
    }
    at_ = start;
    return first;
  }

  /// Reads what follows \p or \P.
  Item property(bool negated) {
    const std::size_t end = rest().find('}');
    if (!take("{") || end == std::string_view::npos) {
      return std::unexpected("it has a \\p without {...}");
    }
    std::string_view name = rest().substr(0, end - 1);
    at_ += end;
    ++properties_;
    bool script = false;
    if (const std::size_t equals = name.find('='); equals != std::string_view::npos) {
      const std::string_view key = name.substr(0, equals);
      script = key == "Script" || key == "sc";
      if (!script && key != "General_Category" && key != "gc") {
        return unsupported("it has a Unicode property that is not supported");
      }
      name.remove_prefix(equals + 1);
    }
    if (name == "Any" && !negated) return character_set(kAnything);
    if (name == "ASCII") return character_set(negated ? kNotAscii : kAsciiOnly);
    for (const auto& [long_name, short_name] : kCategories) {
      if (!script && name == long_name) name = short_name;
    }
    // Without "Script=" it is a category; RE2's names of categories have at most two letters.
    const bool word =
        !name.empty() && std::ranges::all_of(name, [](char c) { return is_letter(c) || c == '_'; });
    if (!word || script != (name.size() > 2)) {
      return unsupported("it has a Unicode property that is not supported");
    }
    return character_set((negated ? "\\P{" : "\\p{") + std::string(name) + "}");
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool alternatives_ = false;  // there are alternatives outside of groups
  bool may_be_valid_ = false;  // though it is refused
  std::vector<RegexPart> parts_;
  std::uint64_t visits_ = 0;
  std::uint64_t properties_ = 0;  // \p and \P
};

}  // namespace

std::expected<TranslatedRegex, RegexError> translate_ecma_regex(std::string_view pattern) {
  return Translator(pattern).translate();
}

}  // namespace sluice
