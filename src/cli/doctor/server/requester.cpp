#include "cli/doctor/server/requester.hpp"

#include <algorithm>
#include <utility>

#include "json/members.hpp"
#include "net/http/http_types.hpp"

namespace sluice {
namespace {

bool is_response(const json::object& message) {
  return message.contains("result") || message.contains("error");
}

}  // namespace

std::optional<json::object> response_in(std::string_view text) {
  Result<json::value> parsed = parse_json(text);
  if (!parsed || !parsed->is_object() || !is_response(parsed->get_object())) return {};
  return std::move(parsed->get_object());
}

std::string_view field_in(const HttpHeaderList& fields, std::string_view name) {
  const auto found = std::ranges::find_if(
      fields, [&](const auto& field) { return equals_ignoring_case(field.first, name); });
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

bool Reply::has_type(std::string_view media_type) const {
  return list_has_token(header("Content-Type"), media_type);
}

std::optional<json::object> Reply::answer() const {
  if (!is_event_stream()) return response_in(body);
  for (const ReplyEvent& event : events) {
    if (auto found = response_in(event.data)) return found;
  }
  return {};
}

bool is_of_mcp(const Reply& reply) {
  const auto answer = reply.answer();
  return answer && text_at(*answer, "jsonrpc") == "2.0";
}

const json::object* result_in(const std::optional<json::object>& answer) {
  return answer ? object_at(*answer, "result") : nullptr;
}

int error_code_in(const std::optional<json::object>& answer) {
  const json::object* const error = answer ? object_at(*answer, "error") : nullptr;
  const json::value* const code = error == nullptr ? nullptr : error->if_contains("code");
  return code == nullptr || !code->is_int64() ? 0 : static_cast<int>(code->get_int64());
}

}  // namespace sluice
