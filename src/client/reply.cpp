#include "client/reply.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/text/text.hpp"
#include "net/http/http_types.hpp"
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

std::optional<Error> error_of(const json::object& message) {
  const json::value* error = message.if_contains("error");
  if (error == nullptr) return std::nullopt;
  Error out{kInternalError, "The server reported an error without a message"};
  const json::object* members = error->if_object();
  if (members == nullptr) return out;
  if (const json::value* code = members->if_contains("code");
      code != nullptr && code->is_int64() && std::in_range<int>(code->get_int64())) {
    out.code = static_cast<int>(code->get_int64());
  }
  if (const json::value* text = members->if_contains("message");
      text != nullptr && text->is_string()) {
    out.message = std::string(text->get_string());
  }
  if (const json::value* data = members->if_contains("data")) out.data = to_json(*data);
  return out;
}

Result<json::object> parse_reply(int status, std::string_view body) {
  const auto not_a_reply = [&] {
    if (status == kContentTooLarge) return fail(kInternalError, std::string(kRequestTooLarge));
    if (is_passing_trouble(status)) {
      return fail(status, "a proxy in front of it answers " + std::to_string(status) + " " +
                              std::string(reason_phrase(status)));
    }
    return fail(kInternalError, "The server answered with HTTP status " + std::to_string(status) +
                                    " and no JSON-RPC response; is this the URL of sluice?");
  };
  auto parsed = parse_json(body);
  if (!parsed || !parsed->is_object()) return not_a_reply();
  json::object& message = parsed->get_object();
  if (auto error = error_of(message)) return std::unexpected(*std::move(error));
  json::value* result = message.if_contains("result");
  if (result == nullptr || !result->is_object()) return not_a_reply();
  return std::move(result->get_object());
}

bool is_passing_trouble(int status) {
  return status == 429 || (status >= 502 && status <= 504);
}

bool is_of_unknown_session(int status, std::string_view body, bool is_answer) {
  if (status == kNotFound && !is_answer) return true;
  if (status != kNotFound && status != kBadRequest && status != kUnauthorized) return false;
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
  const auto begins = [&reason](std::string_view with) { return reason.starts_with(with); };
  const bool is_of_sdk = std::ranges::any_of(kOfTypeScriptSdk, begins);
  const bool is_unknown = is_of_sdk || std::ranges::any_of(kUnknownSession, begins);
  if (status == kUnauthorized) return is_unauthorized && is_unknown;
  if (status == kNotFound) return is_unknown && why.code != kMethodNotFound;
  // Errors of tools say such things, too.
  const bool is_marked = is_bad_request && why.code == kServerError;
  return is_of_sdk || (is_unknown && (!is_answer || is_marked));
}

void ReplyBody::begin(int status) {
  status_ = status;
  text_.clear();
}

bool ReplyBody::append(std::string_view bytes) {
  if (bytes.size() > kMaxBytes - text_.size()) return false;
  text_.append(bytes);
  return true;
}

}  // namespace sluice
