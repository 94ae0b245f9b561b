#include "client/session/tool_headers.hpp"

#include <algorithm>

#include "core/log/log.hpp"
#include "json/members.hpp"

namespace sluice {

void ToolHeaders::learn(json::object& result) {
  json::value* const listed = result.if_contains("tools");
  if (listed == nullptr || !listed->is_array()) return;
  json::array& tools = listed->get_array();
  const auto is_invalid = [this](const json::value& each) {
    const json::object* const tool = each.if_object();
    if (tool == nullptr) return false;
    const std::string name(text_at(*tool, "name"));
    const json::value* const schema = tool->if_contains("inputSchema");
    if (schema == nullptr) return false;
    Result<std::vector<ParameterHeader>> found = find_parameter_headers(*schema);
    if (!found) {
      tools_.erase(name);
      if (const auto left_out = logged_.take()) {
        log_warning("a tool is left out, because the header fields for its parameters are invalid",
                    {{"tool", std::string_view(name)},
                     {"why", std::string_view(found.error().message)},
                     {"left_out", *left_out}});
      }
      return true;
    }
    if (found->empty()) {
      tools_.erase(name);
    } else if (tools_.size() < kMaxTools || tools_.contains(name)) {
      tools_[name] = *std::move(found);
    }
    return false;
  };
  tools.erase(std::remove_if(tools.begin(), tools.end(), is_invalid), tools.end());
}

std::vector<std::pair<std::string, std::string>> ToolHeaders::of_call(
    std::string_view tool, const json::object& arguments) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return {};
  return write_parameter_headers(found->second, arguments);
}

}  // namespace sluice
