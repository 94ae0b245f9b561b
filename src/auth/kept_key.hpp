#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "auth/access_policy.hpp"

namespace sluice {

/// The API key of a connection whose first request alone had it, while many requests follow. Keeps
/// only the key's digest. Belongs to the loop of the policy.
class KeptKey {
 public:
  /// `request` has been admitted by `policy`, which must outlive this object.
  KeptKey(const AccessPolicy& policy, const HttpRequest& request);

  /// Whether the key is still that of `principal`, who has sent the request. True if callers are
  /// not known by keys.
  [[nodiscard]] bool is_valid(const std::string& principal);

  /// What the caller of a connection is told whose key is not valid any more.
  static constexpr std::string_view kRemoved =
      "The API key of this connection is not valid any more";

 private:
  const AccessPolicy* policy_;
  std::string digest_;  // empty: callers are not known by keys
  std::uint32_t checked_;
};

}  // namespace sluice
