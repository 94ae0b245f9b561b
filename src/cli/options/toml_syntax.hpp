#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice {

/// The line, from 1, of the first character beyond ASCII that is in neither a string nor a comment,
/// where TOML allows none (TOML 1.0, Keys). Valid TOML has none. In other texts, what follows the
/// first mistake may be misread.
std::optional<std::size_t> line_of_foreign_character(std::string_view toml);

}  // namespace sluice
