#include "proxy/translation/translation.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/crypto/random.hpp"
#include "json/arena.hpp"
#include "json/members.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/server_info.hpp"
#include "protocol/task.hpp"
#include "protocol/tool_result.hpp"
#include "proxy/translation/names.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// The client knows the resource by this URI alone.
void add_prefix_to_data(std::string_view prefix, Error& error) {
  Result<json::value> data = parse_json(error.data);
  json::object* const members = data ? data->if_object() : nullptr;
  const std::string_view uri = members == nullptr ? std::string_view() : text_at(*members, "uri");
  if (uri.empty()) return;
  (*members)["uri"] = prefixed_uri(prefix, uri);
  error.data = to_json(*members);
}

/// Whether an error has this member in its data.
bool has_in_data(const Error& error, std::string_view member) {
  const Result<json::value> data = parse_json(error.data);
  return data && data->is_object() && data->get_object().contains(member);
}

constexpr std::string_view kOwnPrefix = "io.modelcontextprotocol/";
constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";

/// Results that say how long they stay true (2026-07-28, Caching).
constexpr std::array<std::string_view, 9> kCacheable = {
    "server/discover", "tools/list",     "prompts/list",
    "resources/list",  "resources/read", "resources/templates/list",
    "skills/list",     "skills/get",     "resources/directory/read"};

constexpr std::size_t kElicitationIdLength = 32;

/// What comes from a server belongs to none of its tasks any more: the client has one of the proxy.
void drop_task(json::object& message) {
  json::value* const meta = message.if_contains("_meta");
  if (meta == nullptr || !meta->is_object()) return;
  if (meta->get_object().erase(kRelatedTaskKey) > 0 && meta->get_object().empty()) {
    message.erase("_meta");
  }
}

/// Before 2026-07-28, structured content is an object, and clients refuse a list with another
/// schema.
void drop_structured_values(std::string_view method, json::object& result) {
  if (method == "tools/call") {
    const json::value* const content = result.if_contains("structuredContent");
    if (content != nullptr && !content->is_object()) result.erase("structuredContent");
  }
  json::value* const tools = method == "tools/list" ? result.if_contains("tools") : nullptr;
  if (tools == nullptr || !tools->is_array()) return;
  for (json::value& tool : tools->get_array()) {
    json::object* const members = tool.if_object();
    const json::object* const schema =
        members == nullptr ? nullptr : object_at(*members, "outputSchema");
    if (members != nullptr && (schema == nullptr || text_at(*schema, "type") != "object")) {
      members->erase("outputSchema");
    }
  }
}

}  // namespace

json::object forwarded_params(const json::object& params) {
  json::object out(make_arena());
  out.reserve(params.size());
  for (const auto& [key, value] : params) {
    const std::string_view name = key;
    const bool is_own = name == "_meta" || name == "inputResponses" || name == "requestState";
    if (!is_own) out.emplace(key, value);
  }
  json::object meta(out.storage());
  if (const json::object* const given = object_at(params, "_meta")) {
    for (const auto& [key, value] : *given) {
      const std::string_view name = key;
      const bool is_of_call = name == "progressToken" || name == kPartialResultToken;
      if (!is_of_call && !name.starts_with(kOwnPrefix)) meta.emplace(key, value);
    }
  }
  if (!meta.empty()) out.emplace("_meta", std::move(meta));
  return out;
}

json::object params_for(const Revision& revision, json::object params,
                        std::optional<LoggingLevel> level) {
  if (!level || revision.era != Era::modern) return params;
  json::value& meta = params["_meta"];
  if (!meta.is_object()) meta.emplace_object();
  meta.get_object()[kLogLevelKey] = to_string(*level);
  return params;
}

Error error_for(const Revision& revision, std::string_view prefix, std::string_view method,
                Error error) {
  const bool needs_task =
      error.code == kMissingClientCapability && error.data.contains(kTasksExtension);
  const bool lacks_resource = error.code == kResourceNotFound ||
                              (error.code == kInvalidParams && has_in_data(error, "uri"));
  const bool lacks_capability =
      (error.code == kMissingClientCapability || error.code == kInvalidRequest) &&
      has_in_data(error, "requiredCapabilities");
  if (needs_task && revision.tasks != TaskModel::extension) {
    return {kMethodNotFound, "Method not found: this tool runs only as a task", {}};
  }
  if (method == "resources/read" && lacks_resource) {
    error.code = revision.unknown_resource;
  } else if (lacks_capability) {
    error.code = revision.era == Era::modern ? kMissingClientCapability : kInvalidRequest;
  }
  if (!prefix.empty() && method.starts_with("resources/")) add_prefix_to_data(prefix, error);
  return error;
}

void make_result_for(const Revision& revision, std::string_view method, const json::object& about,
                     json::object& result) {
  drop_task(result);
  if (revision.result_type) {
    if (!result.contains("resultType")) result["resultType"] = "complete";
  } else {
    result.erase("resultType");
  }
  if (!revision.cache_hints) {
    result.erase("ttlMs");
    result.erase("cacheScope");
  } else if (std::ranges::find(kCacheable, method) != kCacheable.end()) {
    if (!result.contains("ttlMs")) result["ttlMs"] = 0;
    if (!result.contains("cacheScope")) result["cacheScope"] = "private";
  }
  json::object* const meta = result.contains("_meta") ? result.at("_meta").if_object() : nullptr;
  if (!revision.server_info_in_meta) {
    if (meta != nullptr && meta->erase(kServerInfoKey) > 0 && meta->empty()) result.erase("_meta");
  } else if (const json::object* const info = server_info_in(about);
             info != nullptr && (meta == nullptr || !meta->contains(kServerInfoKey))) {
    if (meta == nullptr) {
      result["_meta"] = json::object{{kServerInfoKey, *info}};
    } else {
      (*meta)[kServerInfoKey] = *info;
    }
  }
  if (!revision.structured_values) drop_structured_values(method, result);
}

bool is_tool_result_for(const Revision& revision, const json::object& result) {
  const json::object* const meta = object_at(result, "_meta");
  const bool has_info = meta != nullptr && meta->contains(kServerInfoKey);
  if (has_info != revision.server_info_in_meta) return false;
  if (meta != nullptr && meta->contains(kRelatedTaskKey)) return false;
  if (result.contains("resultType") != revision.result_type) return false;
  if (!revision.cache_hints && (result.contains("ttlMs") || result.contains("cacheScope"))) {
    return false;
  }
  const json::value* const content = result.if_contains("structuredContent");
  return revision.structured_values || content == nullptr || content->is_object();
}

json::object question_for(const Revision& revision, std::string_view method, json::object params) {
  drop_task(params);
  if (method != "elicitation/create" || text_at(params, "mode") != "url") return params;
  if (!revision.elicitation_ids) {
    params.erase("elicitationId");
  } else if (!params.contains("elicitationId")) {
    params["elicitationId"] = random_id(kElicitationIdLength);
  }
  return params;
}

void add_tasks(const Revision& revision, bool lists, json::object& capabilities) {
  if (revision.tasks == TaskModel::requested) {
    json::object own{{"cancel", json::object()},
                     {"requests", {{"tools", {{"call", json::object()}}}}}};
    if (lists) own["list"] = json::object();
    capabilities["tasks"] = std::move(own);
  } else if (revision.tasks == TaskModel::extension) {
    json::value& extensions = capabilities["extensions"];
    if (!extensions.is_object()) extensions.emplace_object();
    extensions.get_object()[kTasksExtension] = json::object();
  }
}

bool makes_tasks(const ServerDescription& server) {
  const auto has = [](const json::object* of, std::string_view name) {
    return of == nullptr ? nullptr : object_at(*of, name);
  };
  const json::object* const capabilities = object_at(server.about, "capabilities");
  switch (server.revision->tasks) {
    case TaskModel::requested:
      return has(has(has(has(capabilities, "tasks"), "requests"), "tools"), "call") != nullptr;
    case TaskModel::extension:
      return has(has(capabilities, "extensions"), kTasksExtension) != nullptr;
    case TaskModel::none:
      break;
  }
  return false;
}

void offer_tasks(const Revision& revision, const ServerDescription& server, std::string_view method,
                 json::object& result) {
  json::value* const tools = method == "tools/list" ? result.if_contains("tools") : nullptr;
  const bool tells = revision.tasks == TaskModel::requested &&
                     server.revision->tasks == TaskModel::extension && makes_tasks(server);
  if (!tells || tools == nullptr || !tools->is_array()) return;
  for (json::value& tool : tools->get_array()) {
    if (tool.is_object()) tool.get_object()["execution"] = {{"taskSupport", "optional"}};
  }
}

std::string_view created_task(const Revision& revision, const json::object& result) {
  if (revision.tasks == TaskModel::extension) {
    return text_at(result, "resultType") == "task" ? text_at(result, "taskId") : std::string_view();
  }
  const json::object* const task =
      revision.tasks == TaskModel::requested ? object_at(result, "task") : nullptr;
  return task == nullptr ? std::string_view() : text_at(*task, "taskId");
}

json::object passed_on(const json::object& capabilities) {
  json::object out(capabilities, json::storage_ptr());
  out.erase("tasks");
  out.erase("partialResults");
  if (json::value* const extensions = out.if_contains("extensions");
      extensions != nullptr && extensions->is_object()) {
    extensions->get_object().erase(kTasksExtension);
  }
  return out;
}

}  // namespace sluice
