#include "client/link/unknown_session.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "client/reply.hpp"
#include "core/text/text.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kLongestReason = 1000;
/// Of the official TypeScript SDK.
constexpr int kServerError = -32000;
// How a text begins, in lower case, that says so.
constexpr std::array<std::string_view, 2> kOfTypeScriptSdk = {"no valid session id",
                                                              "server not initialized"};
constexpr std::array<std::string_view, 17> kUnknownSession = {"invalid or expired session",
                                                              "invalid session",
                                                              "invalid or missing session",
                                                              "invalid mcp session",
                                                              "invalid mcp-session-id",
                                                              "missing or invalid session",
                                                              "missing or invalid mcp-session-id",
                                                              "missing or unknown mcp-session-id",
                                                              "missing session id",
                                                              "no active session",
                                                              "no transport found for session",
                                                              "no valid session",
                                                              "session expired",
                                                              "session id not found",
                                                              "session not found",
                                                              "unknown mcp-session-id",
                                                              "unknown session"};

}  // namespace

bool is_of_unknown_session(int status, std::string_view body, bool is_answer) {
  const bool is_gone = status == kNotFound || status == kGoneForGood;
  if (is_gone && !is_answer) return true;
  if (!is_gone && status != kBadRequest && status != kUnauthorized) return false;
  const Result<json::value> parsed = parse_json(body);
  const json::object* const message = parsed ? parsed->if_object() : nullptr;
  Error why{0, std::string(body), {}};
  if (message != nullptr) {
    for (const char* const member : {"error", "detail"}) {
      const json::value* const said = message->if_contains(member);
      if (said == nullptr) continue;
      why = said->is_string() ? Error{0, std::string(said->get_string()), {}}
                              : error_of(*message).value_or(Error());
    }
  }
  const std::string text = to_lower(std::string_view(why.message).substr(0, kLongestReason));
  std::string_view reason = text;
  const auto drop = [&reason](std::string_view mark) {
    const bool is_marked = reason.starts_with(mark);
    if (is_marked) reason.remove_prefix(mark.size());
    return is_marked;
  };
  const bool is_bad_request = drop("bad request: ");
  const bool is_unauthorized = drop("unauthorized: ");
  drop("not found: ");
  const auto begins = [&reason](std::string_view with) { return reason.starts_with(with); };
  const bool is_of_sdk = std::ranges::any_of(kOfTypeScriptSdk, begins);
  const bool is_unknown = is_of_sdk || std::ranges::any_of(kUnknownSession, begins);
  // Other sessions than those of MCP are over in ways that only a login can mend.
  const bool is_of_rust = is_unauthorized && reason.starts_with("session not found");
  if (status == kUnauthorized) return is_of_rust || (is_unauthorized && is_of_sdk);
  if (is_gone) return is_unknown && why.code != kMethodNotFound;
  // Errors of tools say such things, too.
  const bool is_marked = is_bad_request && why.code == kServerError;
  return is_of_sdk || (is_unknown && (!is_answer || is_marked));
}

}  // namespace sluice
