#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// Adds a step to a path such as `arguments.items[2]["odd key"]`.
void append_json_path(std::string& path, std::size_t index);
void append_json_path(std::string& path, std::string_view name);

/// What one token of a JSON pointer (RFC 6901, section 3) leads to from `value`; null if nothing.
const json::value* find_pointer_token(const json::value& value, std::string_view token);

/// `text` as a JSON string, cut where it is longer than a few dozen bytes: for errors.
std::string describe_text(std::string_view text);

}  // namespace sluice
