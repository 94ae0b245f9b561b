#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// Appends `bytes` in Base64 with padding (RFC 4648, section 4).
void append_base64(std::string& out, std::string_view bytes);

/// Decodes canonical Base64 text with padding. Returns nothing for any other text.
std::optional<std::string> decode_base64(std::string_view text);

/// The same in the alphabet that is safe in URLs, without padding (RFC 4648, section 5; RFC 7515).
void append_base64url(std::string& out, std::string_view bytes);
std::string to_base64url(std::string_view bytes);
/// Decodes that. Returns nothing for any other text.
std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace sluice
