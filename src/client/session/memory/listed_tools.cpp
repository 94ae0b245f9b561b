#include "client/session/memory/listed_tools.hpp"

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
      if (tool.output_schema.size() > kMaxSchema) {
        tool.output_schema.clear();
        warn_of_schema(name, "it has more than " + std::to_string(kMaxSchema) + " bytes");
      }
    }
    remember(name, std::move(tool));
    return false;
  };
  tools.erase(std::remove_if(tools.begin(), tools.end(), is_invalid), tools.end());
}

void ListedTools::remember(const std::string& name, Tool tool) {
  forget(name);
  if (schema_bytes_ + tool.output_schema.size() > kMaxSchemas) tool.output_schema.clear();
  const bool says_nothing =
      tool.headers.empty() && !tool.may_be_repeated && tool.output_schema.empty();
  const std::size_t named = name.size() + bytes_of(tool.headers);
  if (says_nothing || tools_.size() >= kMaxTools || named_bytes_ + named > kMaxNames) return;
  named_bytes_ += named;
  schema_bytes_ += tool.output_schema.size();
  tools_.emplace(name, std::move(tool));
}

void ListedTools::forget(std::string_view name) {
  const auto found = tools_.find(name);
  if (found == tools_.end()) return;
  forget_schema(found->second);
  named_bytes_ -= name.size() + bytes_of(found->second.headers);
  tools_.erase(found);
}

void ListedTools::forget_schema(Tool& tool) {
  schema_bytes_ -= tool.output_schema.size();
  if (tool.output) compiled_bytes_ -= tool.output->memory();
  tool.output_schema.clear();
  tool.output.reset();
}

void ListedTools::warn_of_schema(std::string_view name, std::string_view why) {
  if (const auto left_out = logged_.take()) {
    log_warning("the results of a tool are not checked, because its outputSchema cannot be used",
                {{"tool", name}, {"why", why}, {"left_out", *left_out}});
  }
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

const JsonSchema* ListedTools::compiled(std::string_view name, Tool& tool) {
  if (tool.output) return &*tool.output;
  if (tool.output_schema.empty()) return nullptr;
  const Result<json::value> schema = parse_json(tool.output_schema);
  Result<JsonSchema> made =
      schema ? JsonSchema::compile(*schema, {.limits = JsonSchemaLimits::for_peers()})
             : std::unexpected(schema.error());
  if (!made) {
    warn_of_schema(name, made.error().message);
    forget_schema(tool);
    return nullptr;
  }
  if (compiled_bytes_ + made->memory() > kMaxCompiled) {
    for (auto& [other, each] : tools_) each.output.reset();
    compiled_bytes_ = 0;
  }
  compiled_bytes_ += made->memory();
  return &tool.output.emplace(*std::move(made));
}

Result<void> ListedTools::check_output(std::string_view name, const json::object& result) {
  const auto found = tools_.find(name);
  if (found == tools_.end() || is_tool_error(result)) return {};
  const JsonSchema* const schema = compiled(name, found->second);
  if (schema == nullptr) return {};
  const std::string subject =
      "The result of \"" + std::string(name) + "\" breaks its outputSchema: ";
  const json::value* const structured = result.if_contains("structuredContent");
  if (structured == nullptr) return fail(kInvalidParams, subject + "it has no structuredContent");
  const auto valid = schema->validate(*structured, kMaxSteps);
  if (valid || valid.error().is_unfinished) return {};
  return fail(kInvalidParams, subject + valid.error().describe("structuredContent"));
}

}  // namespace sluice
