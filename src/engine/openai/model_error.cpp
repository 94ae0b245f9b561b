#include "engine/openai/model_error.hpp"

#include <algorithm>
#include <cstddef>

#include "core/text/utf8.hpp"
#include "json/lone_surrogates.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kQuoted = 500;

}  // namespace

std::string on_one_line(std::string_view text) {
  const std::size_t size = complete_utf8_prefix(text.substr(0, kQuoted));
  std::string beginning(text.substr(0, size));
  std::ranges::replace_if(
      beginning, [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; }, ' ');
  if (size < text.size()) beginning.append("...");
  return beginning;
}

std::optional<std::string> model_error_of(const json::object& body) {
  const json::value* const error = body.if_contains("error");
  if (error == nullptr || error->is_null()) return std::nullopt;
  const std::string_view message =
      error->is_object() ? text_at(error->get_object(), "message") : text_at(body, "error");
  return message.empty() ? "an error without a message" : on_one_line(message);
}

std::optional<std::string> model_error_in(std::string_view body) {
  const Result<json::value> parsed = parse_json_with_lone_surrogates(body);
  if (!parsed) return std::nullopt;
  const json::array* const list = parsed->if_array();
  const json::value& said = list == nullptr || list->empty() ? *parsed : list->front();
  return said.is_object() ? model_error_of(said.get_object()) : std::nullopt;
}

std::unexpected<Error> remote_failed(std::string_view message) {
  return fail(kInternalError, "The model's server failed: " + std::string(message));
}

std::unexpected<Error> remote_unreadable(std::string_view what) {
  return fail(kInternalError, "The model's server sent what cannot be read: " + std::string(what));
}

}  // namespace sluice
