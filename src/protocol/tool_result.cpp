#include "protocol/tool_result.hpp"

#include <boost/system/error_code.hpp>

#include "json/members.hpp"

namespace sluice {
namespace {

/// Beyond it, numbers in JSON are not exact everywhere.
constexpr std::uint64_t kLastExact = (std::uint64_t{1} << 53U) - 1;

}  // namespace

bool is_tool_error(const json::object& result) {
  const json::value* const is_error = result.if_contains("isError");
  return is_error != nullptr && is_error->is_bool() && is_error->get_bool();
}

std::string text_of_tool_result(const json::object& result) {
  std::string out;
  const json::value* const content = result.if_contains("content");
  if (content == nullptr || !content->is_array()) return out;
  for (const json::value& block : content->get_array()) {
    if (!block.is_object() || text_at(block.get_object(), "type") != "text") continue;
    if (!out.empty()) out.push_back('\n');
    out.append(text_at(block.get_object(), "text"));
  }
  return out;
}

const json::value& structured_of_tool_result(const json::object& result) {
  static const json::value none;
  const json::value* const content = result.if_contains("structuredContent");
  return content == nullptr ? none : *content;
}

std::optional<PartialResult> read_partial_result(const json::object& params) {
  const json::value* const token = params.if_contains(kPartialResultToken);
  const json::value* const seq = params.if_contains("seq");
  if (token == nullptr || !token->is_string() || seq == nullptr || !seq->is_number()) return {};
  boost::system::error_code error;
  const auto number = seq->to_number<std::uint64_t>(error);
  if (error || number > kLastExact) return {};
  const json::value* const content = params.if_contains("content");
  const json::value* const structured = params.if_contains("structuredContent");
  const json::value* const is_final = params.if_contains("final");
  const bool is_right = (content == nullptr || content->is_array()) &&
                        (structured == nullptr || structured->is_object()) &&
                        (is_final == nullptr || is_final->is_bool());
  if (!is_right) return {};
  return PartialResult{.token = token->get_string(), .seq = number};
}

}  // namespace sluice
