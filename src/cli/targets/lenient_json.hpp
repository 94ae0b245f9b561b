#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// What a form of JSON allows besides RFC 8259.
enum class JsonDialect : std::uint8_t {
  strict,
  comments,             // // and /* */
  comments_and_commas,  // also a comma after the last element ("JSON with comments", VS Code)
};

/// Parses a file's text, which may begin with a byte order mark. At most kMaxConfigValues values,
/// nested as JsonParser allows. Errors carry kExitUsage and are "NAME:LINE: REASON".
Result<json::value> parse_config_json(std::string_view text, JsonDialect dialect,
                                      std::string_view name);
inline constexpr std::size_t kMaxConfigValues = 1'000'000;

/// `text` with spaces in place of what the dialect allows beyond JSON, so that each byte keeps its
/// place. What stands in strings is left alone.
std::string plain_json(std::string_view text, JsonDialect dialect);

}  // namespace sluice
