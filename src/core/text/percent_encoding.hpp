#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// Decodes percent-encoding (RFC 3986, section 2.1). Returns nothing if a '%' is not followed by
/// two hexadecimal digits. The result may contain any bytes.
std::optional<std::string> percent_decode(std::string_view text);

/// Appends `text` as one segment of a URI's path (RFC 3986, section 3.3). Encodes every character
/// that is neither unreserved nor a sub-delimiter, so also '/', ':' and '@'.
void append_percent_encoded(std::string& out, std::string_view text);

}  // namespace sluice
