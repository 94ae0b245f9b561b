#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

// What a client reads in a CallToolResult.

/// Whether it has `isError`.
bool is_tool_error(const json::object& result);
/// The text of its content, the blocks separated by line breaks.
std::string text_of_tool_result(const json::object& result);
/// Its `structuredContent`; null if there is none. The result must outlive the reference.
const json::value& structured_of_tool_result(const json::object& result);

// Parts of a result that come before it. SEP-2998 is a draft, and may change.

/// The notification that has such a part.
inline constexpr std::string_view kPartialResult = "notifications/tools/partial_result";
/// The member of a call's `_meta` by which it asks for them.
inline constexpr std::string_view kPartialResultToken = "partialResultToken";
/// The member of a client's capabilities that says that it understands them.
inline constexpr std::string_view kPartialResultsCapability = "partialResults";

/// Which call a part belongs to, and its place among those of the call, from 0 on.
struct PartialResult {
  std::string_view token;
  std::uint64_t seq = 0;
};

/// Reads the params of a partial result; nothing if a member is missing or has another type than
/// the draft says. They must outlive the token.
std::optional<PartialResult> read_partial_result(const json::object& params);

}  // namespace sluice
