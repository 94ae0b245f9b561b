#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sluice/principal.hpp"

namespace sluice {

/// The callers that may change what others use. Thread-safe.
class Operators {
 public:
  /// `names`: of API keys.
  explicit Operators(const std::vector<std::string>& names) { replace(names); }

  void replace(const std::vector<std::string>& names);
  [[nodiscard]] bool has(const Principal& caller) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> principals_;
};

}  // namespace sluice
