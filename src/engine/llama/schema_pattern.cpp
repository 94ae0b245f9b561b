#include "engine/llama/schema_pattern.hpp"

#include <algorithm>
#include <cstddef>

namespace sluice {
namespace {

constexpr std::size_t kMaxGroups = 100;  // in each other

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// The length of the escape at the front of `text`, which begins with a backslash; 0 if it is none
/// that a grammar has.
std::size_t escape_length(std::string_view text) {
  constexpr std::string_view kSingle = "trn\\\"[]-";
  if (text.size() < 2) return 0;
  if (kSingle.contains(text[1])) return 2;
  const std::size_t digits = text[1] == 'x' ? 2 : text[1] == 'u' ? 4 : text[1] == 'U' ? 8 : 0;
  const std::string_view hex = text.substr(2, digits);
  return digits > 0 && hex.size() == digits && std::ranges::all_of(hex, is_hex) ? digits + 2 : 0;
}

/// What stands between braces: {m}, {m,}, {,n} or {m,n}.
bool is_repetition(std::string_view text) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const std::string_view least = text.substr(0, comma);
  const std::string_view most = text.substr(std::min(comma + 1, text.size()));
  const auto is_number = [](std::string_view digits) {
    return digits.size() < 10 &&
           std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  };
  return is_number(least) && is_number(most) && !(least.empty() && most.empty());
}

}  // namespace

std::string pattern_fault(std::string_view pattern) {
  if (pattern.size() < 2 || pattern.front() != '^' || pattern.back() != '$') {
    return "it must begin with ^ and end with $";
  }
  std::string_view rest = pattern.substr(1, pattern.size() - 2);
  std::size_t groups = 0;
  while (!rest.empty()) {
    const char c = rest.front();
    std::size_t length = 1;
    if (c == '\\') {
      constexpr std::string_view kMarks = "^$.[](){}|*+?";
      length = rest.size() > 1 && kMarks.contains(rest[1]) ? 2 : escape_length(rest);
      if (length == 0) return "an escape such as \\d must be written as a set";
    } else if (c == '(') {
      if (rest.starts_with("(?") && !rest.starts_with("(?:")) {
        return "groups that look around or have names are not supported";
      }
      if (rest.starts_with("(?:")) length = 3;
      if (++groups > kMaxGroups) return "its groups nest too deeply";
    } else if (c == ')') {
      if (groups-- == 0) return "a \")\" closes nothing";
    } else if (c == '^' || c == '$') {
      return "^ and $ may only stand at its ends";
    } else if (c == '[') {
      while (length < rest.size() && rest[length] != ']') {
        const bool is_escape = rest[length] == '\\';
        const std::size_t step = is_escape ? escape_length(rest.substr(length)) : 1;
        if (step == 0) return "a set has an escape that is not supported";
        length += step;
      }
      if (length >= rest.size()) return "a set of characters does not end";
      ++length;
    } else if (c == '{') {
      const std::size_t end = rest.find('}');
      if (end == std::string_view::npos || !is_repetition(rest.substr(1, end - 1))) {
        return "a repetition must be {m}, {m,} or {m,n}";
      }
      length = end + 1;
    } else if (c == ']' || c == '}') {
      return "a bracket closes nothing";
    }
    rest.remove_prefix(length);
  }
  return groups == 0 ? "" : "a \")\" is missing";
}

void drop_faulty_patterns(json::value& schema) {
  if (json::object* const object = schema.if_object()) {
    if (const json::value* const pattern = object->if_contains("pattern");
        pattern != nullptr && pattern->is_string() &&
        !pattern_fault(pattern->get_string()).empty()) {
      object->erase("pattern");
    }
    for (auto& member : *object) drop_faulty_patterns(member.value());
  } else if (json::array* const array = schema.if_array()) {
    for (json::value& element : *array) drop_faulty_patterns(element);
  }
}

}  // namespace sluice
