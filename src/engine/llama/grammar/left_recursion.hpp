#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/llama/grammar/grammar.hpp"

namespace sluice {

/// A rule of `grammar`, which has `rules`, that can begin with itself and then go on: following it
/// would never end. One that begins with itself and ends there says nothing new and is harmless.
/// Takes time in proportion to the grammar.
std::optional<std::uint32_t> left_recursive_rule(const Grammar& grammar, std::size_t rules);

}  // namespace sluice
