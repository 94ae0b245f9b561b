#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Finds the first of several strings in text that arrives in pieces. It holds back only what may
/// still become one of them, which is less than the longest of them.
class StopMatcher {
 public:
  struct Result {
    std::string text;  // text that is certain not to belong to a stop string
    bool found = false;
    std::string rest = {};  // the text after the stop string, if found
  };

  StopMatcher() = default;
  /// Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Takes the next piece. Must not be called after a stop string has been found.
  Result push(std::string_view piece);
  /// Ends the text and returns what was held back.
  std::string finish();

 private:
  [[nodiscard]] std::size_t undecided() const;

  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace sluice
