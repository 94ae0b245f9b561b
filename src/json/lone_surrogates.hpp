#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// `json` text with each escape of half a character (such as \ud83d without its other half) as
/// \ufffd; nothing if it has none. JSON.stringify writes them of a string that was cut between the
/// halves. RFC 8259, section 8.2, leaves to the reader what they mean.
std::optional<std::string> without_lone_surrogates(std::string_view json);

}  // namespace sluice
