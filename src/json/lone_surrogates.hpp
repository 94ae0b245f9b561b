#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// `json` text with each escape of half a character (such as \ud83d without its other half) as
/// \ufffd; nothing if it has none. JSON.stringify writes them of a string that was cut between the
/// halves. RFC 8259, section 8.2, leaves to the reader what they mean.
std::optional<std::string> without_lone_surrogates(std::string_view json);

/// How many bytes of the beginning of a `json` text can be looked at without the rest: an escape
/// that may go on, or whose other half may follow, is not among them.
std::size_t whole_escapes_prefix(std::string_view json);

/// parse_json(), with U+FFFD for each such escape.
Result<json::value> parse_json_with_lone_surrogates(std::string_view json);

}  // namespace sluice
