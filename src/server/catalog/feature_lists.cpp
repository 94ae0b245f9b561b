#include "server/catalog/feature_lists.hpp"

#include <algorithm>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <span>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/text/base64.hpp"
#include "json/json.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"
#include "server/catalog/result_writer.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 5> kListNames = {"tools", "resources", "resourceTemplates",
                                                        "prompts", "skills"};
constexpr std::size_t kCursorBytes = 18;  // of the MAC; a multiple of 3 needs no padding

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

std::string cursor_for(std::string_view key, std::string_view what) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(what.data()), what.size(), mac.data(), nullptr);
  std::string out;
  append_base64(out, {reinterpret_cast<const char*>(mac.data()), kCursorBytes});
  return out;
}

std::unexpected<Error> unknown_cursor() {
  return fail(kInvalidParams, "Invalid params: cursor is not one that this list has given");
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

FeatureLists::FeatureLists(const ServerDefinition& definition) : definition_(&definition) {
  const std::string key = random_id(32);
  const bool hides = std::ranges::any_of(
      definition.tools, [](const Tool& tool) { return static_cast<bool>(tool.visible_to); });
  const std::size_t page_size = std::max<std::size_t>(definition.page_size, 1);
  for (const Revision& revision : revisions()) {
    capabilities_.push_back({capabilities_of(definition, revision, false),
                             capabilities_of(definition, revision, true)});
    if (hides) {
      auto& tools = own_tools_.emplace_back();
      for (const Tool& tool : definition.tools) {
        tools.push_back(
            {entry(tool, revision),
             cursor_for(key, std::string(revision.name) + "/own/" + std::to_string(tools.size()))});
      }
    }
    auto& lists = pages_.emplace_back();
    const std::array<std::vector<std::string>, kLists> all = {
        entries(definition.tools, revision), entries(definition.resources, revision),
        entries(definition.resource_templates, revision), entries(definition.prompts, revision),
        entries(definition.skills, revision)};
    for (std::size_t list = 0; list < kLists; ++list) {
      std::span<const std::string> left = all[list];
      do {
        const auto now = left.first(std::min(page_size, left.size()));
        left = left.subspan(now.size());
        Page page;
        if (!lists[list].empty()) {
          page.cursor =
              cursor_for(key, std::string(revision.name) + "/" + std::string(kListNames[list]) +
                                  "/" + std::to_string(lists[list].size()));
          lists[list].back().members.append(R"(,"nextCursor":")").append(page.cursor).append("\"");
        }
        page.members.append("\"").append(kListNames[list]).append(R"(":[)");
        for (const std::string& each : now) {
          if (page.members.back() != '[') page.members.push_back(',');
          page.members.append(each);
        }
        page.members.push_back(']');
        lists[list].push_back(std::move(page));
      } while (!left.empty());
      for (Page& page : lists[list]) {
        append_caching(page.members, definition.list_caching, revision);
      }
    }
  }
}

Result<std::string_view> FeatureLists::page(FeatureList list, const Revision& revision,
                                            const std::string* cursor) const {
  const Pages& pages = pages_[revision_index(revision)][static_cast<std::size_t>(list)];
  if (cursor == nullptr) return pages.front().members;
  if (!cursor->empty()) {
    const auto found = std::ranges::find(pages, *cursor, &Page::cursor);
    if (found != pages.end()) return found->members;
  }
  return unknown_cursor();
}

Result<std::string> FeatureLists::tools_of(const Principal& caller, const Revision& revision,
                                           const std::string* cursor) const {
  const std::vector<ListedTool>& tools = own_tools_[revision_index(revision)];
  std::size_t at = 0;
  if (cursor != nullptr) {
    const auto found = std::ranges::find(tools, *cursor, &ListedTool::cursor);
    if (found == tools.end()) return unknown_cursor();
    at = static_cast<std::size_t>(found - tools.begin());
  }
  std::size_t left = std::max<std::size_t>(definition_->page_size, 1);
  std::string members = R"("tools":[)";
  for (; at < tools.size(); ++at) {
    if (!definition_->tools[at].is_visible_to(caller)) continue;
    if (left-- == 0) break;
    if (members.back() != '[') members.push_back(',');
    members.append(tools[at].entry);
  }
  members.push_back(']');
  if (at < tools.size()) {
    members.append(R"(,"nextCursor":")").append(tools[at].cursor).append("\"");
  }
  append_caching(members, {.fresh_for = definition_->list_caching.fresh_for}, revision);
  return members;
}

const std::string& FeatureLists::capabilities(const Revision& revision, bool lists_tasks) const {
  return capabilities_[revision_index(revision)][lists_tasks ? 1 : 0];
}

}  // namespace sluice
