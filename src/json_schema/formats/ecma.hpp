#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// An expression in RE2's syntax, and whether a text must contain a match of it or must not.
struct RegexPart {
  std::string expression;
  bool wanted = true;
};

/// A set of expressions that a text must all match, and what they cost at worst.
struct TranslatedRegex {
  std::vector<RegexPart> parts;
  std::uint64_t visits = 0;  // about how many places in them a byte of text may reach
  /// How long reading them takes, before they become programs, in about 0.1 microseconds.
  std::uint64_t work = 0;
};

/// Why a regular expression is refused: a phrase such as "backreferences are not supported".
struct RegexError {
  std::string message;
  bool may_be_valid = false;  // but is not supported, or takes too much
};

/// Translates a regular expression of ECMA-262 (section 22.2.1, with the `u` flag) into expressions
/// for RE2. A text matches all of them exactly when it matches `pattern`. Like browsers without the
/// `u` flag, this also accepts `\-` and other escaped punctuation, and a lone `{`, `}` or `]`.
///
/// Lookaheads right after a leading `^` and lookbehinds right before a trailing `$` become separate
/// expressions. Lookaround elsewhere and backreferences are refused, because neither can be matched
/// in linear time.
std::expected<TranslatedRegex, RegexError> translate_ecma_regex(std::string_view pattern);

}  // namespace sluice
