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
    if (std::shared_ptr<void> known = known_or(type, nullptr)) return known;
    return known_or(type, make());
  }

 private:
  using Value = std::pair<const void*, std::shared_ptr<void>>;
  /// The value that is kept, or else `made`, which is kept from now on unless it is null.
  std::shared_ptr<void> known_or(const void* type, std::shared_ptr<void> made) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(values_, type, &Value::first);
    if (found != values_.end()) return found->second;
    if (made != nullptr) values_.emplace_back(type, made);
    return made;
  }

  std::mutex mutex_;
  std::vector<Value> values_;
};

}  // namespace sluice
