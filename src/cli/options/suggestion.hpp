#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// How many characters must be inserted, removed, replaced or swapped with a neighbour to make one
/// text of the other (optimal string alignment).
std::size_t edit_distance(std::string_view one, std::string_view other);

/// The candidate that a misspelt `word` probably means: one that it begins, or that is a few edits
/// away. Empty if there is none.
std::string_view suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace sluice
