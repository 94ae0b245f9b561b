#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sluice {

/// What handlers keep for a session: one value of each type. So their number is limited by the
/// number of types in the program. Thread-safe.
class SessionStorage {
 public:
  using Make = std::shared_ptr<void> (*)();

  /// The value of the type that `type` stands for. `make` makes it the first time. If several
  /// threads ask for the first time, each may make one, and the first that is ready is kept: so no
  /// loop waits for what a worker makes.
  std::shared_ptr<void> value(const void* type, Make make) {
    if (std::shared_ptr<void> known = find(type)) return known;
    std::shared_ptr<void> made = make();
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(values_, type, &Value::first);
    if (found != values_.end()) return found->second;
    return values_.emplace_back(type, std::move(made)).second;
  }

 private:
  using Value = std::pair<const void*, std::shared_ptr<void>>;
  std::shared_ptr<void> find(const void* type) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(values_, type, &Value::first);
    return found == values_.end() ? nullptr : found->second;
  }

  std::mutex mutex_;
  std::vector<Value> values_;
};

}  // namespace sluice
