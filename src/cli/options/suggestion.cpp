#include "cli/options/suggestion.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice {

std::size_t edit_distance(std::string_view one, std::string_view other) {
  // Distances of the beginnings of `one` to all beginnings of `other`: the last three rows.
  std::vector<std::size_t> before;
  std::vector<std::size_t> previous(other.size() + 1);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, previous[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = previous;
    previous = row;
  }
  return previous.back();
}

std::string_view suggestion(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLeastBeginning = 4;  // "--" and two letters
  constexpr std::size_t kLettersPerEdit = 3;
  if (word.size() >= kLeastBeginning) {
    const auto begun = std::ranges::find_if(
        candidates, [&](const std::string& candidate) { return candidate.starts_with(word); });
    if (begun != candidates.end()) return *begun;
  }
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, word.size() / kLettersPerEdit) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    // At least half of it must be the same: no option of one letter is like another.
    if (distance >= least || 2 * distance >= candidate.size()) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}  // namespace sluice
