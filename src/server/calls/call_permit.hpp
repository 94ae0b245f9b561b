#pragma once

#include <utility>

#include "sluice/principal.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Whose a call is, and its place among the calls of that client; leaving the scope gives it back.
class CallPermit {
 public:
  CallPermit() = default;
  /// Of a call that is bounded elsewhere.
  explicit CallPermit(Principal principal) : principal_(std::move(principal)) {}
  /// Empty if the client has as many as it may. `quota` outlives the place.
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
  /// Whether it was taken and not left.
  explicit operator bool() const { return quota_ != nullptr; }
  /// Gives it back before the scope ends.
  void leave() {
    if (ClientQuota* const quota = std::exchange(quota_, nullptr)) quota->release(principal_.id);
  }

 private:
  ClientQuota* quota_ = nullptr;
  Principal principal_;
};

}  // namespace sluice
