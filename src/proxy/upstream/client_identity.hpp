#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "json/json.hpp"
#include "sluice/client_info.hpp"

namespace sluice {

/// Who a client is, as a server behind the proxy is told. Copies share the capabilities.
struct ClientIdentity {
  ClientInfo info = {};
  /// A ClientCapabilities object without tasks. Never null.
  std::shared_ptr<const json::object> capabilities = std::make_shared<const json::object>();

  friend bool operator==(const ClientIdentity& a, const ClientIdentity& b) {
    return a.info == b.info &&
           (a.capabilities == b.capabilities || *a.capabilities == *b.capabilities);
  }
};

/// The most that the capabilities of a client may have: bytes of strings and names, and values (the
/// names count too). They are kept for each session and charged to no share of memory.
inline constexpr std::size_t kMaxCapabilityBytes = std::size_t{16} << 10U;
inline constexpr std::size_t kMaxCapabilityValues = 500;

/// From what a client says of itself: `info` is an Implementation, `capabilities` a
/// ClientCapabilities object. Each may be null. Members that no revision has are kept. Error:
/// -32602, if the capabilities are larger than that, or if one of them does not have the type that
/// the specification gives it. The message names the limit or the member.
Result<ClientIdentity> identity_of(const json::object* info, const json::object* capabilities);

/// Reads who sends a request (2026-07-28, Base Protocol, `_meta`). Most requests say the same as
/// the one before, so what that was is kept.
class IdentityReader {
 public:
  /// Error: as above.
  Result<ClientIdentity> read(const json::object& params);

 private:
  json::object info_;  // as it was said last
  json::object capabilities_;
  std::optional<ClientIdentity> last_;
};

}  // namespace sluice
