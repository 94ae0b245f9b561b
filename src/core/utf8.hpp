#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

/// Whether `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above
/// U+10FFFF).
bool is_valid_utf8(std::string_view text);

/// The length of the longest prefix of `text` that does not end inside a character. What follows
/// it (at most 3 bytes) may become a character when more bytes arrive. Bytes that can never become
/// one count as complete: the caller replaces or rejects them.
std::size_t complete_utf8_prefix(std::string_view text);

}  // namespace sluice
