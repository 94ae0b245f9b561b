#include "server/catalog/feature_lists.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/text/base64.hpp"
#include "json/json.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"
#include "server/catalog/result_writer.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 5> kListNames = {"tools", "resources", "resourceTemplates",
                                                        "prompts", "skills"};

/// The extension that announces the stream methods, in all eras. Its name follows the rules for
/// `_meta` keys (2026-07-28, Base Protocol, `_meta`).
constexpr std::string_view kStreamsExtension = R"("dev.sluice/streams":{})";
/// SEP-2640, with resources/directory/read.
constexpr std::string_view kSkillsExtension =
    R"("io.modelcontextprotocol/skills":{"directoryRead":true})";

void append_member(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out.append(",\"").append(name).append("\":");
  append_json_string(out, text);
}

void append_json_member(std::string& out, std::string_view name, std::string_view json) {
  if (!json.empty()) out.append(",\"").append(name).append("\":").append(json);
}

/// Appends the members that the entries of several lists have in common, as far as `revision` has
/// them.
void append_metadata(std::string& out, const Metadata& metadata, const Revision& revision) {
  if (revision.titles) append_member(out, "title", metadata.title);
  if (revision.icons) append_json_member(out, "icons", metadata.icons);
  if (revision.titles) append_json_member(out, "_meta", metadata.meta);
}

/// Whether the root of a schema has "type": "object".
bool is_object_schema(std::string_view text) {
  const Result<json::value> schema = parse_json(text);
  if (!schema || !schema->is_object()) return false;
  const json::value* const type = schema->get_object().if_contains("type");
  return type != nullptr && *type == "object";
}

std::string entry(const Tool& tool, const Revision& revision) {
  std::string out = R"({"name":)";
  append_json_string(out, tool.name);
  out.append(R"(,"description":)");
  append_json_string(out, tool.description);
  out.append(R"(,"inputSchema":)").append(tool.input_schema);
  if (revision.structured_output &&
      (revision.structured_values || is_object_schema(tool.output_schema))) {
    append_json_member(out, "outputSchema", tool.output_schema);
  }
  if (revision.tool_annotations) append_json_member(out, "annotations", tool.annotations);
  append_metadata(out, tool.metadata, revision);
  if (revision.tasks == TaskModel::requested && tool.task_support != TaskSupport::forbidden) {
    out.append(R"(,"execution":{"taskSupport":")")
        .append(tool.task_support == TaskSupport::required ? "required" : "optional")
        .append("\"}");
  }
  out.push_back('}');
  return out;
}

std::string entry(const Resource& resource, const Revision& revision) {
  std::string out = R"({"uri":)";
  append_json_string(out, resource.uri);
  append_member(out, "name", resource.name);
  append_member(out, "description", resource.description);
  append_member(out, "mimeType", resource.mime_type);
  if (resource.size) {
    out.append(R"(,"size":)");
    append_number(out, *resource.size);
  }
  append_json_member(out, "annotations", resource.annotations);
  append_metadata(out, resource.metadata, revision);
  out.push_back('}');
  return out;
}

std::string entry(const ResourceTemplate& resource, const Revision& revision) {
  std::string out = R"({"uriTemplate":)";
  append_json_string(out, resource.uri_template);
  append_member(out, "name", resource.name);
  append_member(out, "description", resource.description);
  append_member(out, "mimeType", resource.mime_type);
  append_json_member(out, "annotations", resource.annotations);
  append_metadata(out, resource.metadata, revision);
  out.push_back('}');
  return out;
}

std::string entry(const Prompt& prompt, const Revision& revision) {
  std::string out = R"({"name":)";
  append_json_string(out, prompt.name);
  append_member(out, "description", prompt.description);
  if (!prompt.arguments.empty()) {
    out.append(R"(,"arguments":[)");
    for (const PromptArgument& argument : prompt.arguments) {
      if (out.back() != '[') out.push_back(',');
      out.append(R"({"name":)");
      append_json_string(out, argument.name);
      if (revision.titles) append_member(out, "title", argument.title);
      append_member(out, "description", argument.description);
      if (argument.required) out.append(R"(,"required":true)");
      out.push_back('}');
    }
    out.push_back(']');
  }
  append_metadata(out, prompt.metadata, revision);
  out.push_back('}');
  return out;
}

std::string entry(const Skill& skill, const Revision& /*revision*/) {
  return skill.entry();
}

template <class Feature>
std::vector<std::string> entries(const std::vector<Feature>& features, const Revision& revision) {
  std::vector<std::string> out;
  for (const Feature& feature : features) out.push_back(entry(feature, revision));
  return out;
}

/// What comes before the name of an entry in a cursor of that list.
std::string cursor_begin(FeatureList list) {
  return std::string(kListNames[static_cast<std::size_t>(list)]) + " after ";
}

std::string cursor_after(FeatureList list, std::string_view name) {
  std::string out;
  append_base64(out, cursor_begin(list).append(name));
  return out;
}

/// The name of the entry that `cursor` is behind; nothing if it is no cursor of that list.
std::optional<std::string> name_in(FeatureList list, std::string_view cursor) {
  std::optional<std::string> text = decode_base64(cursor);
  const std::string begin = cursor_begin(list);
  if (!text || !text->starts_with(begin)) return {};
  return text->erase(0, begin.size());
}

/// The same for a hidden entry as for one that there is not.
std::unexpected<Error> unknown_cursor() {
  return fail(kInvalidParams,
              "Invalid params: cursor does not fit this list, which may have changed; begin again "
              "without one");
}

template <class Feature>
std::vector<std::string_view> names_of(const std::vector<Feature>& features,
                                       std::string Feature::* name) {
  std::vector<std::string_view> out;
  for (const Feature& feature : features) out.push_back(feature.*name);
  return out;
}

std::string capabilities_of(const ServerDefinition& definition, const Revision& revision,
                            bool lists_tasks) {
  const auto completes = [](const auto& feature) { return !feature.completers.empty(); };
  const std::string_view changing = definition.announces_changes ? R"({"listChanged":true})" : "{}";
  std::string out = R"("tools":)";
  out.append(changing);
  if (!definition.resources.empty() || !definition.resource_templates.empty()) {
    out.append(R"(,"resources":)")
        .append(definition.announces_changes ? R"({"subscribe":true,"listChanged":true})" : "{}");
  }
  if (!definition.prompts.empty()) out.append(R"(,"prompts":)").append(changing);
  if (definition.logs) out.append(R"(,"logging":{})");
  if (revision.completions && (std::ranges::any_of(definition.prompts, completes) ||
                               std::ranges::any_of(definition.resource_templates, completes))) {
    out.append(R"(,"completions":{})");
  }
  // Clients of the stream methods look for `streaming`; `extensions` is the newer form.
  if (revision.era == Era::legacy && definition.has_streams) out.append(R"(,"streaming":true)");
  const TaskModel tasks = definition.has_tasks() ? revision.tasks : TaskModel::none;
  if (tasks == TaskModel::requested) {
    out.append(lists_tasks ? R"(,"tasks":{"list":{},)" : R"(,"tasks":{)")
        .append(R"("cancel":{},"requests":{"tools":{"call":{}}}})");
  }
  std::string extensions;
  if (definition.has_streams) append_members(extensions, kStreamsExtension);
  if (!definition.skills.empty()) append_members(extensions, kSkillsExtension);
  if (tasks == TaskModel::extension) {
    append_members(extensions, "\"" + std::string(kTasksExtension) + "\":{}");
  }
  return out.append(R"(,"extensions":{)").append(extensions).append("}");
}

}  // namespace

FeatureLists::FeatureLists(const ServerDefinition& definition)
    : definition_(&definition),
      hides_tools_(std::ranges::any_of(
          definition.tools, [](const Tool& tool) { return static_cast<bool>(tool.visible_to); })),
      names_{names_of(definition.tools, &Tool::name),
             names_of(definition.resources, &Resource::uri),
             names_of(definition.resource_templates, &ResourceTemplate::uri_template),
             names_of(definition.prompts, &Prompt::name),
             {}} {
  for (const Skill& skill : definition.skills) {
    names_[static_cast<std::size_t>(FeatureList::skills)].push_back(skill.uri());
  }
  for (const Revision& revision : revisions()) {
    capabilities_.push_back({capabilities_of(definition, revision, false),
                             capabilities_of(definition, revision, true)});
    entries_.push_back(
        {entries(definition.tools, revision), entries(definition.resources, revision),
         entries(definition.resource_templates, revision), entries(definition.prompts, revision),
         entries(definition.skills, revision)});
  }
}

Result<std::string> FeatureLists::page(FeatureList list, const Principal* caller,
                                       const Revision& revision, const std::string* cursor) const {
  const auto of_list = static_cast<std::size_t>(list);
  const std::vector<std::string_view>& names = names_[of_list];
  const std::vector<std::string>& entries = entries_[revision_index(revision)][of_list];
  const auto is_listed = [&](std::size_t at) {
    return caller == nullptr || definition_->tools[at].is_visible_to(*caller);
  };
  std::size_t at = 0;
  if (cursor != nullptr) {
    const std::optional<std::string> name = name_in(list, *cursor);
    if (!name) return unknown_cursor();
    at = static_cast<std::size_t>(std::ranges::find(names, *name) - names.begin());
    if (at == names.size() || !is_listed(at)) return unknown_cursor();
    ++at;
  }
  std::string members = "\"" + std::string(kListNames[of_list]) + "\":[";
  std::size_t left = std::max<std::size_t>(definition_->page_size, 1);
  std::string_view last;
  for (; at < entries.size(); ++at) {
    if (!is_listed(at)) continue;
    if (left-- == 0) break;
    if (members.back() != '[') members.push_back(',');
    members.append(entries[at]);
    last = names[at];
  }
  members.push_back(']');
  if (at < entries.size()) {
    members.append(R"(,"nextCursor":")").append(cursor_after(list, last)).append("\"");
  }
  Caching caching = definition_->list_caching;
  if (caller != nullptr) caching.shared = false;
  append_caching(members, caching, revision);
  return members;
}

const std::string& FeatureLists::capabilities(const Revision& revision, bool lists_tasks) const {
  return capabilities_[revision_index(revision)][lists_tasks ? 1 : 0];
}

}  // namespace sluice
