#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/grammar/grammar.hpp"

namespace sluice {

/// Finds a rule of `grammar`, which has `rules` rules, that can begin with itself and continue
/// after that: following it would never end. A rule that begins with itself and ends there adds
/// nothing and is harmless. Takes time proportional to the grammar.
std::optional<std::uint32_t> left_recursive_rule(const Grammar& grammar, std::size_t rules);

}  // namespace sluice
