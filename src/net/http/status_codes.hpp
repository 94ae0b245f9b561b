#pragma once

// Status codes that the code acts on (RFC 9110 section 15, RFC 6455 section 7.4.1).

namespace sluice {

inline constexpr int kSwitchingProtocols = 101;
inline constexpr int kNoContent = 204;
inline constexpr int kResetContent = 205;
inline constexpr int kPartialContent = 206;
inline constexpr int kNotModified = 304;
inline constexpr int kBadRequest = 400;
inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kMethodNotAllowed = 405;
inline constexpr int kProxyAuthenticationRequired = 407;
inline constexpr int kRequestTimedOut = 408;
inline constexpr int kConflict = 409;
inline constexpr int kGoneForGood = 410;
inline constexpr int kContentTooLarge = 413;
inline constexpr int kMisdirectedRequest = 421;
inline constexpr int kUnprocessableContent = 422;
inline constexpr int kTooEarly = 425;
inline constexpr int kUpgradeRequired = 426;
inline constexpr int kTooManyRequests = 429;
inline constexpr int kInternalServerError = 500;
inline constexpr int kNotImplemented = 501;
inline constexpr int kBadGateway = 502;
inline constexpr int kServiceUnavailable = 503;
inline constexpr int kGatewayTimeout = 504;

/// Whether a reply of that status may have content (RFC 9110, sections 15.3.5, 15.3.6, 15.4.5).
constexpr bool may_have_content(int status) {
  return status >= 200 && status != kNoContent && status != kResetContent && status != kNotModified;
}

inline constexpr int kGoingAway = 1001;
/// Stands for a close frame that gives no code.
inline constexpr int kNoStatus = 1005;
inline constexpr int kMessageTooBig = 1009;

}  // namespace sluice
