#pragma once

#include <utility>

#include "sluice/principal.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// The principal of a call, and the call's unit of its client's quota. The destructor returns the
/// unit.
class CallPermit {
 public:
  CallPermit() = default;
  /// For a call that is limited elsewhere: holds no unit of a quota.
  explicit CallPermit(Principal principal) : principal_(std::move(principal)) {}
  /// Takes a unit of `quota`, which must outlive the permit. The permit is empty if the client has
  /// used up its quota.
  static CallPermit take(ClientQuota& quota, const Principal& principal) {
    CallPermit permit;
    if (!quota.try_acquire(principal.id)) return permit;
    permit.quota_ = &quota;
    permit.principal_ = principal;
    return permit;
  }
  CallPermit(CallPermit&& other) noexcept
      : quota_(std::exchange(other.quota_, nullptr)), principal_(std::move(other.principal_)) {}
  CallPermit& operator=(CallPermit&& other) noexcept {
    std::swap(quota_, other.quota_);
    std::swap(principal_, other.principal_);
    return *this;
  }
  ~CallPermit() { leave(); }

  [[nodiscard]] const Principal& principal() const { return principal_; }
  /// Whether it holds a unit.
  explicit operator bool() const { return quota_ != nullptr; }
  /// Returns the unit before the destructor does.
  void leave() {
    if (ClientQuota* const quota = std::exchange(quota_, nullptr)) quota->release(principal_.id);
  }

 private:
  ClientQuota* quota_ = nullptr;
  Principal principal_;
};

}  // namespace sluice
