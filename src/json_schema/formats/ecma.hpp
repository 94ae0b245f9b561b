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

/// What a text must match all of, and what that costs at worst: about so many places in the
/// expressions are looked at for each byte of the text.
struct TranslatedRegex {
  std::vector<RegexPart> parts;
  std::uint64_t visits = 0;
};

/// Translates a regular expression of ECMA-262 (section 22.2.1, with the `u` flag; like browsers
/// without it, it also takes `\-` and other escaped punctuation, and a lone `{`, `}` or `]`) into
/// expressions for RE2 that a text matches all of exactly when it matches `pattern`.
///
/// Lookaheads right after a leading `^` and lookbehinds right before a trailing `$` become
/// expressions of their own; elsewhere they are refused, and so are backreferences, since neither
/// can be matched in linear time. Errors are a phrase such as "backreferences are not supported".
std::expected<TranslatedRegex, std::string> translate_ecma_regex(std::string_view pattern);

}  // namespace sluice
