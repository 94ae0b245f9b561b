#pragma once

// Status codes that the clients act on (RFC 9110 section 15, RFC 6455 section 7.4.1).

namespace sluice {

inline constexpr int kSwitchingProtocols = 101;
inline constexpr int kBadRequest = 400;
inline constexpr int kBadGateway = 502;
inline constexpr int kGatewayTimeout = 504;

inline constexpr int kGoingAway = 1001;
/// Stands for a close frame that gives no code.
inline constexpr int kNoStatus = 1005;

}  // namespace sluice
