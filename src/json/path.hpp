#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Adds a step to a path such as `arguments.items[2]["odd key"]`.
void append_json_path(std::string& path, std::size_t index);
void append_json_path(std::string& path, std::string_view name);

/// `text` as a JSON string for error messages; cut off after a few dozen bytes.
std::string describe_text(std::string_view text);

}  // namespace sluice
