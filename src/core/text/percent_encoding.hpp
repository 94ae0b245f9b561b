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

/// Appends `text` as a name or a value of a query or of form data. Encodes every character that is
/// not unreserved (RFC 3986, section 2.3), a space as "%20".
void append_query_encoded(std::string& out, std::string_view text);

/// Decodes a name or a value of form data, in which '+' is a space
/// (application/x-www-form-urlencoded). Returns nothing as percent_decode() does.
std::optional<std::string> form_decode(std::string_view text);

}  // namespace sluice
