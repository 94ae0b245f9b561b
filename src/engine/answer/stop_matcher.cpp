#include "engine/answer/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace sluice {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

StopMatcher::Result StopMatcher::push(std::string_view piece) {
  if (stops_.empty()) return {.text = std::string(piece)};
  held_ += piece;
  std::size_t at = std::string::npos;
  std::size_t length = 0;
  for (const std::string& stop : stops_) {
    const std::size_t found = held_.find(stop);
    if (found < at) {
      at = found;
      length = stop.size();
    }
  }
  Result result;
  if (at != std::string::npos) {
    result.found = true;
    result.rest = held_.substr(at + length);
    result.text = held_.substr(0, at);
    held_.clear();
    return result;
  }
  const std::size_t pass = held_.size() - undecided();
  result.text = held_.substr(0, pass);
  held_.erase(0, pass);
  return result;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

/// The length of the longest suffix of held_ that is a prefix of a stop string.
std::size_t StopMatcher::undecided() const {
  const std::string_view held = held_;
  std::size_t most = 0;
  for (const std::string_view stop : stops_) {
    for (std::size_t n = std::min(held.size(), stop.size() - 1); n > most; --n) {
      if (held.ends_with(stop.substr(0, n))) most = n;
    }
  }
  return most;
}

}  // namespace sluice
