#include "client/session/listed_tools.hpp"

#include <algorithm>

#include "core/log/log.hpp"
#include "json/members.hpp"
#include "protocol/tool_result.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

bool has_hint(const json::object& tool, std::string_view name) {
  const json::object* const annotations = object_at(tool, "annotations");
  const json::value* const hint = annotations == nullptr ? nullptr : annotations->if_contains(name);
  return hint != nullptr && hint->is_bool() && hint->get_bool();
}

}  // namespace

void ListedTools::learn(json::object& result, bool mirrors) {
  json::value* const listed = result.if_contains("tools");
  if (listed == nullptr || !listed->is_array()) return;
  json::array& tools = listed->get_array();
  const auto is_invalid = [this, mirrors](const json::value& each) {
    const json::object* const definition = each.if_object();
    if (definition == nullptr) return false;
    const std::string name(text_at(*definition, "name"));
    Tool tool{.may_be_repeated =
                  has_hint(*definition, "readOnlyHint") || has_hint(*definition, "idempotentHint")};
    const json::value* const schema = definition->if_contains("inputSchema");
    if (mirrors && schema != nullptr) {
      Result<std::vector<ParameterHeader>> found = find_parameter_headers(*schema);
      if (!found) {
        forget(name);
        if (const auto left_out = logged_.take()) {
          log_warning(
              "a tool is left out, because the header fields for its parameters are invalid",
              {{"tool", std::string_view(name)},
               {"why", std::string_view(found.error().message)},
               {"left_out", *left_out}});
        }
        return true;
      }
      tool.headers = *std::move(found);
    }
    if (const json::value* const output = definition->if_contains("outputSchema")) {
      tool.output_schema = to_json(*output);
      tool.schema_bytes = tool.output_schema.size();
    }
    remember(name, std::move(tool));
    return false;
  };
  tools.erase(std::remove_if(tools.begin(), tools.end(), is_invalid), tools.end());
}

void ListedTools::remember(const std::string& name, Tool tool) {
  forget(name);
  if (schema_bytes_ + tool.schema_bytes > kMaxSchemas) {
    tool.output_schema.clear();
    tool.schema_bytes = 0;
  }
  const bool says_nothing =
      tool.headers.empty() && !tool.may_be_repeated && tool.output_schema.empty();
  if (says_nothing || tools_.size() >= kMaxTools) return;
  schema_bytes_ += tool.schema_bytes;
  tools_.emplace(name, std::move(tool));
}

void ListedTools::forget(std::string_view name) {
  const auto found = tools_.find(name);
  if (found == tools_.end()) return;
  schema_bytes_ -= found->second.schema_bytes;
  tools_.erase(found);
}

std::vector<std::pair<std::string, std::string>> ListedTools::headers_of_call(
    std::string_view tool, const json::object& arguments) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return {};
  return write_parameter_headers(found->second.headers, arguments);
}

bool ListedTools::may_be_repeated(std::string_view tool) const {
  const auto found = tools_.find(tool);
  return found != tools_.end() && found->second.may_be_repeated;
}

Result<void> ListedTools::check_output(std::string_view name, const json::object& result) {
  const auto found = tools_.find(name);
  if (found == tools_.end() || is_tool_error(result)) return {};
  Tool& tool = found->second;
  if (!tool.output_schema.empty()) {
    const Result<json::value> schema = parse_json(std::exchange(tool.output_schema, {}));
    Result<JsonSchema> compiled = schema ? JsonSchema::compile(*schema) : fail(0, "");
    if (compiled) {
      tool.output = *std::move(compiled);
    } else if (const auto left_out = logged_.take()) {
      log_warning("the results of a tool are not checked, because its outputSchema cannot be used",
                  {{"tool", name},
                   {"why", std::string_view(compiled.error().message)},
                   {"left_out", *left_out}});
    }
  }
  if (!tool.output) return {};
  const std::string subject =
      "The result of \"" + std::string(name) + "\" breaks its outputSchema: ";
  const json::value* const structured = result.if_contains("structuredContent");
  if (structured == nullptr) return fail(kInvalidParams, subject + "it has no structuredContent");
  const auto valid = tool.output->validate(*structured, kMaxSteps);
  if (valid || valid.error().is_unfinished) return {};
  return fail(kInvalidParams, subject + valid.error().describe("structuredContent"));
}

}  // namespace sluice
