#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Finds the first of several strings in text that arrives in pieces, holding back the least that
/// may still become one of them: less than the longest of them.
class StopMatcher {
 public:
  struct Result {
    std::string text;  // passed: no stop string begins in it
    bool found = false;
    std::string rest = {};  // what came behind the stop string, if found
  };

  StopMatcher() = default;
  /// Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Takes the next piece. Once a stop string was found, don't call it again.
  Result push(std::string_view piece);
  /// No more comes: what was held back.
  std::string finish();

 private:
  [[nodiscard]] std::size_t undecided() const;

  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace sluice
