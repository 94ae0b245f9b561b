#pragma once

#include <utility>

#include "sluice/principal.hpp"
#include "stream/client_quota.hpp"

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
    CallPermit permit(principal);
    permit.unit_ = quota.take(principal.id);
    return permit;
  }

  [[nodiscard]] const Principal& principal() const { return principal_; }
  /// Whether it holds a unit.
  explicit operator bool() const { return static_cast<bool>(unit_); }
  /// Returns the unit before the destructor does.
  void leave() { unit_.release(); }

 private:
  ClientQuota::Unit unit_;
  Principal principal_;
};

}  // namespace sluice
