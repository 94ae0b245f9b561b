#include "proxy/upstream/upstream_error.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "json/json.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kStatus = "upstreamStatus";

json::object data_of(const Error& error) {
  const Result<json::value> data = parse_json(error.data);
  return data && data->is_object() ? data->get_object() : json::object();
}

}  // namespace

Error upstream_error(std::string_view label, const Error& why) {
  // JSON-RPC errors are below zero. The layers below have the codes of HTTP.
  if (why.code < 0) return why;
  json::object data = data_of(why);
  data[kStatus] = why.code;
  return {kInternalError, "The server " + std::string(label) + ": " + why.message, data};
}

Error session_error(std::string_view label, const Error& why) {
  if (why.code == kTimedOut) return upstream_error(label, {kGatewayTimeout, why.message, why.data});
  if (why.code >= 0) return upstream_error(label, why);
  return {kInternalError, "The server " + std::string(label) + ": " + why.message, why.data};
}

std::optional<int> upstream_status(const Error& answer) {
  if (answer.code != kInternalError) return std::nullopt;
  const json::object data = data_of(answer);
  const json::value* const status = data.if_contains(kStatus);
  if (status == nullptr || !status->is_int64()) return std::nullopt;
  const std::int64_t code = status->get_int64();
  if (code < 0 || code > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(code);
}

}  // namespace sluice
