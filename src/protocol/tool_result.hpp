#pragma once

#include <string>

#include "json/json.hpp"

namespace sluice {

// What a client reads in a CallToolResult.

/// Whether it has `isError`.
bool is_tool_error(const json::object& result);
/// The text of its content, the blocks separated by line breaks.
std::string text_of_tool_result(const json::object& result);
/// Its `structuredContent`; null if there is none. The result must outlive the reference.
const json::value& structured_of_tool_result(const json::object& result);

}  // namespace sluice
