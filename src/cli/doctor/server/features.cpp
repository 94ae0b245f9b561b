#include "cli/doctor/server/features.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "cli/doctor/server/check_table.hpp"
#include "cli/doctor/server/examination.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"
#include "json_schema/json_schema.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/mirrored_headers.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using FeatureCheck = CheckOf<Features>;

constexpr std::size_t kLongestName = 128;
/// Lists that are longer are noted.
constexpr std::size_t kLargeList = std::size_t{256} << 10U;
constexpr Duration kSlowList = std::chrono::seconds(2);
constexpr std::string_view kNoCursor = "sluice-doctor-no-such-cursor";

bool is_declared(const json::object& about, std::string_view capability) {
  const json::object* const capabilities = object_at(about, "capabilities");
  return capabilities != nullptr && capabilities->contains(capability);
}
bool is_declared(const Features& features, std::string_view capability) {
  return is_declared(features.about, capability);
}

ListFacts read_list(const Features& features, std::string_view method, std::string_view key) {
  ListFacts list;
  std::set<std::string, std::less<>> cursors;
  json::object params;
  const TimePoint begin = std::chrono::steady_clock::now();
  for (;;) {
    Result<json::object> page = features.request(method, params);
    if (!page) {
      list.problem = page.error();
      break;
    }
    const json::value* const entries = page->if_contains(key);
    if (entries == nullptr || !entries->is_array()) {
      list.problem = Error(kInternalError, "the result has no array \"" + std::string(key) + "\"");
      break;
    }
    for (const json::value& entry : entries->get_array()) list.entries.push_back(entry);
    list.bytes += to_json(*page).size();
    const std::string cursor(text_at(*page, "nextCursor"));
    list.pages.push_back(*std::move(page));
    if (cursor.empty()) break;
    list.is_endless = list.pages.size() == ListFacts::kMaxPages || !cursors.insert(cursor).second;
    if (list.is_endless) break;
    params = {{"cursor", cursor}};
  }
  list.took = std::chrono::steady_clock::now() - begin;
  return list;
}

std::optional<Verdict> judge_list(const std::optional<ListFacts>& list, std::string_view what) {
  if (!list) return {};
  if (list->problem) {
    if (list->problem->code == kLimitReached) return Verdict::note(list->problem->message);
    return Verdict::fail(
        "the list of " + std::string(what) + " cannot be had: " + list->problem->message,
        "Answer each list whose capability the server declares");
  }
  std::string found = std::to_string(list->entries.size()) + " listed, " +
                      std::to_string((list->bytes + 1023) / 1024) + " KiB, " +
                      in_milliseconds(list->took);
  if (list->pages.size() > 1) {
    found.append(", ").append(std::to_string(list->pages.size())).append(" pages");
  }
  if (list->is_endless) {
    return Verdict::warn(found + ", and still more",
                         "End the list: leave nextCursor out of the "
                         "last page");
  }
  if (list->took > kSlowList) return Verdict::note(found, "Answer lists faster: users wait");
  if (list->bytes > kLargeList) {
    return Verdict::note(found, "Shorten it: what models read of it costs them context");
  }
  return Verdict::ok(found);
}

std::optional<Verdict> check_tools(Features& features) {
  return judge_list(features.tools, "tools");
}
std::optional<Verdict> check_prompts(Features& features) {
  return judge_list(features.prompts, "prompts");
}
std::optional<Verdict> check_resources(Features& features) {
  return judge_list(features.resources, "resources");
}
std::optional<Verdict> check_templates(Features& features) {
  // No rule demands them of a server that has resources.
  const bool has_none = features.templates && features.templates->problem &&
                        features.templates->problem->code == kMethodNotFound;
  if (has_none) return Verdict::note("none: the server knows no resources/templates/list");
  return judge_list(features.templates, "resource templates");
}

/// Whether there are entries to examine.
bool has_entries(const std::optional<ListFacts>& list) {
  return list && !list->entries.empty();
}

/// What is wrong with the entries that `problem` complains about: the first ones, and how many.
std::string problems_of(const ListFacts& list,
                        const std::function<std::string(const json::object&)>& problem) {
  constexpr std::size_t kShown = 3;
  std::string out;
  std::size_t count = 0;
  for (const json::value& entry : list.entries) {
    const std::string found =
        entry.is_object() ? problem(entry.get_object()) : "an entry is no object";
    if (found.empty()) continue;
    if (++count <= kShown) out.append(out.empty() ? "" : "; ").append(found);
  }
  if (count > kShown) out.append("; and ").append(std::to_string(count - kShown)).append(" more");
  return out;
}

std::string quoted(std::string_view name) {
  // Of a secret that is cut nobody could tell that it is one.
  return "\"" + without_secrets(std::string(name)).substr(0, kLongestName) + "\"";
}

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::optional<Verdict> check_tool_names(Features& features) {
  if (!has_entries(features.tools)) return {};
  const std::string problems = problems_of(*features.tools, [](const json::object& tool) {
    const std::string_view name = text_at(tool, "name");
    return is_tool_name(name) ? std::string() : quoted(name);
  });
  if (problems.empty()) return Verdict::ok("all of letters, digits, _, - and .");
  return Verdict::warn(problems,
                       "Name tools with 1 to 128 letters, digits, _, - and .: model "
                       "providers refuse others");
}

/// The entries that have the same `key` as one before.
std::string repeated_of(const ListFacts& list, std::string_view key) {
  std::set<std::string, std::less<>> known;
  return problems_of(list, [&](const json::object& entry) {
    const std::string_view name = text_at(entry, key);
    return known.emplace(name).second ? std::string() : quoted(name) + " twice";
  });
}

std::optional<Verdict> judge_unique(const std::optional<ListFacts>& list, std::string_view key) {
  if (!has_entries(list)) return {};
  const std::string problems = repeated_of(*list, key);
  if (problems.empty()) return Verdict::ok("each " + std::string(key) + " once");
  return Verdict::warn(problems, "List each " + std::string(key) +
                                     " once: clients reach only one "
                                     "of them");
}

std::optional<Verdict> check_unique_tools(Features& features) {
  return judge_unique(features.tools, "name");
}
std::optional<Verdict> check_unique_prompts(Features& features) {
  return judge_unique(features.prompts, "name");
}
std::optional<Verdict> check_unique_resources(Features& features) {
  return judge_unique(features.resources, "uri");
}

/// What is wrong with a schema of a tool; or, if `may_be_valid`, why that cannot be found out.
/// Empty: nothing.
std::string schema_problem(const json::object& tool, std::string_view member, bool must_be_object,
                           bool may_be_valid) {
  const json::value* const schema = tool.if_contains(member);
  const std::string name = quoted(text_at(tool, "name"));
  if (may_be_valid && (schema == nullptr || !schema->is_object())) return {};
  if (schema == nullptr) return member == "inputSchema" ? name + " has none" : std::string();
  if (!schema->is_object()) return name + ": it is no object";
  const bool is_other_type = must_be_object && text_at(schema->get_object(), "type") != "object";
  if (is_other_type) return may_be_valid ? std::string() : name + ": its type is not \"object\"";
  const Result<JsonSchema> compiled = JsonSchema::compile(*schema);
  if (compiled || (compiled.error().code == kLimitReached) != may_be_valid) return {};
  // The message may have only a part of a secret.
  const std::string text = to_json(*schema);
  const bool has_secret = without_secrets(text) != text;
  return name + ": " + (has_secret ? "it is invalid" : compiled.error().message);
}

Verdict judge_schemas(const ListFacts& tools, std::string_view member, bool must_be_object,
                      const std::string& fix) {
  const auto problems = [&](bool may_be_valid) {
    return problems_of(tools, [&](const json::object& tool) {
      return schema_problem(tool, member, must_be_object, may_be_valid);
    });
  };
  if (const std::string invalid = problems(false); !invalid.empty()) {
    return Verdict::fail(invalid, fix);
  }
  const std::string unknown = problems(true);
  if (unknown.empty()) return Verdict::ok("all valid");
  return Verdict::note("not all can be checked: " + unknown,
                       "Use simpler ones if you can: not all clients support them");
}

std::optional<Verdict> check_input_schemas(Features& features) {
  if (!has_entries(features.tools)) return {};
  return judge_schemas(*features.tools, "inputSchema", true,
                       "Give each tool a valid JSON Schema of type \"object\": clients "
                       "drop the tool, or all of them");
}

std::optional<Verdict> check_output_schemas(Features& features) {
  if (!has_entries(features.tools) || !features.revision->structured_output) return {};
  return judge_schemas(*features.tools, "outputSchema", !features.revision->structured_values,
                       "Correct the schema, or leave it out: clients check results against it");
}

std::optional<Verdict> check_header_annotations(Features& features) {
  if (!has_entries(features.tools) || !features.is_http || !features.revision->routing_headers) {
    return {};
  }
  const std::string problems = problems_of(*features.tools, [](const json::object& tool) {
    const json::value* const schema = tool.if_contains("inputSchema");
    if (schema == nullptr) return std::string();
    const auto found = find_parameter_headers(*schema);
    return found ? std::string() : quoted(text_at(tool, "name")) + ": " + found.error().message;
  });
  if (problems.empty()) return Verdict::ok("valid, as far as there are any");
  return Verdict::fail(problems, "Correct the annotation: clients must drop the tool");
}

std::optional<Verdict> check_descriptions(Features& features) {
  if (!has_entries(features.tools)) return {};
  const std::string problems = problems_of(*features.tools, [](const json::object& tool) {
    return text_at(tool, "description").empty() ? quoted(text_at(tool, "name")) : std::string();
  });
  if (problems.empty()) return Verdict::ok("each tool has one");
  return Verdict::note("missing: " + problems, "Describe each tool: models choose by that");
}

std::optional<Verdict> check_resource_uris(Features& features) {
  if (!has_entries(features.resources)) return {};
  const std::string problems = problems_of(*features.resources, [](const json::object& resource) {
    const std::string_view uri = text_at(resource, "uri");
    const std::size_t colon = uri.find(':');
    const bool has_scheme = colon != std::string_view::npos && colon > 0;
    return has_scheme ? std::string() : quoted(uri) + " has no scheme";
  });
  if (problems.empty()) return Verdict::ok("each has a scheme");
  return Verdict::fail(problems, "Use absolute URIs (RFC 3986)");
}

/// All results that carry hints for caches.
std::vector<const json::object*> cacheable(const Features& features) {
  std::vector<const json::object*> out = {&features.about};
  for (const auto* list :
       {&features.tools, &features.prompts, &features.resources, &features.templates}) {
    if (!list->has_value()) continue;
    for (const json::object& page : (*list)->pages) out.push_back(&page);
  }
  return out;
}

std::optional<Verdict> check_cache_hints(Features& features) {
  if (!features.revision->cache_hints) return {};
  for (const json::object* result : cacheable(features)) {
    const json::value* const ttl = result->if_contains("ttlMs");
    if (ttl == nullptr || !ttl->is_number() || ttl->to_number<double>() < 0) {
      return Verdict::fail("ttlMs is " + (ttl == nullptr ? "missing" : to_json(*ttl)),
                           "Set ttlMs to 0 or more in server/discover and in each page of a list");
    }
    const std::string_view scope = text_at(*result, "cacheScope");
    if (scope != "public" && scope != "private") {
      return Verdict::fail("cacheScope is " + (scope.empty() ? "missing" : quoted(scope)),
                           "Set cacheScope to \"public\" or \"private\"");
    }
  }
  return Verdict::ok("in each result");
}

std::optional<Verdict> check_result_type(Features& features) {
  if (!features.revision->result_type) return {};
  const std::vector<const json::object*> results = cacheable(features);
  const bool has_all = std::ranges::all_of(
      results, [](const json::object* result) { return !text_at(*result, "resultType").empty(); });
  if (has_all) return Verdict::ok("in each result");
  return Verdict::fail("results have no resultType", "Set resultType, mostly to \"complete\"");
}

bool is_silence(const Error& error) {
  return error.code == kTimedOut || error.code == kGatewayTimeout;
}

Verdict unanswered(const std::string& request) {
  return Verdict::fail("no answer to " + request, std::string(kAnswerEach));
}

std::optional<Verdict> check_cursor(Features& features) {
  if (!features.tools || features.tools->problem) return {};
  const Result<json::object> page = features.request("tools/list", {{"cursor", kNoCursor}});
  if (page) {
    return Verdict::note("tools/list answers a cursor that it has never given",
                         "Refuse it with an error -32602: clients then begin again");
  }
  if (is_silence(page.error())) return unanswered("an unknown cursor");
  const std::string found = "error " + std::to_string(page.error().code) + " to an unknown cursor";
  if (page.error().code == kLimitReached) return Verdict::note(page.error().message);
  if (page.error().code == kInvalidParams) return Verdict::ok(found);
  return Verdict::warn(found, "Answer with error -32602");
}

std::optional<Verdict> check_order(Features& features) {
  if (!has_entries(features.tools)) return {};
  const Result<json::object> again = features.request("tools/list", {});
  if (!again && again.error().code == kLimitReached) return Verdict::note(again.error().message);
  if (!again) {
    return Verdict::fail("tools/list cannot be had the second time: " + again.error().message,
                         std::string(kAnswerEach));
  }
  const json::value* const before = features.tools->pages.front().if_contains("tools");
  const json::value* const after = again->if_contains("tools");
  if (after != nullptr && *before == *after) return Verdict::ok("the same each time");
  return Verdict::warn("tools/list gives another list the second time",
                       "Keep the order of the tools: what models have read of it is cached");
}

std::optional<Verdict> check_foreign_method(Features& features) {
  if (features.is_http) return {};
  const Result<json::object> answer = features.request("sluice-doctor/unknown", {});
  if (!answer && answer.error().code == kMethodNotFound) return Verdict::ok("error -32601");
  if (!answer && answer.error().code == kLimitReached) return Verdict::note(answer.error().message);
  if (!answer && is_silence(answer.error())) return unanswered("an unknown method");
  return Verdict::fail(
      answer ? "an unknown method has a result"
             : "error " + std::to_string(answer.error().code) + " to an unknown method",
      "Answer with a JSON-RPC error -32601");
}

/// The clauses are those of the revision that is spoken.
constexpr std::array kFeatureChecks = {
    FeatureCheck{"method", "Overview, Error Codes", check_foreign_method},
    FeatureCheck{"tools", "Tools, Capabilities", check_tools},
    FeatureCheck{"tool names", "Tools, Tool Names", check_tool_names},
    FeatureCheck{"same tools", "Tools, Tool Names", check_unique_tools},
    FeatureCheck{"input schemas", "Tools, Tool", check_input_schemas},
    FeatureCheck{"output schemas", "Tools, Output Schema", check_output_schemas},
    FeatureCheck{"x-mcp-header", "Tools, x-mcp-header", check_header_annotations},
    FeatureCheck{"descriptions", "Tools, Tool", check_descriptions},
    FeatureCheck{"order", "Tools, Capabilities", check_order},
    FeatureCheck{"cursor", "Pagination, Error Handling", check_cursor},
    FeatureCheck{"prompts", "Prompts, Capabilities", check_prompts},
    FeatureCheck{"same prompts", "Prompts, Prompt", check_unique_prompts},
    FeatureCheck{"resources", "Resources, Capabilities", check_resources},
    FeatureCheck{"templates", "Resources, Resource Templates", check_templates},
    FeatureCheck{"URIs", "Resources, Resource", check_resource_uris},
    FeatureCheck{"same resources", "Resources, Resource", check_unique_resources},
    FeatureCheck{"resultType", "Overview, ResultType", check_result_type},
    FeatureCheck{"cache hints", "Caching, Cacheable Results", check_cache_hints},
};

/// The first revision that has all of these clauses.
constexpr std::string_view kFirstOfClauses = "2025-11-25";

}  // namespace

std::string_view declared_list(const json::object& about) {
  if (is_declared(about, "tools")) return "tools/list";
  if (is_declared(about, "prompts")) return "prompts/list";
  return is_declared(about, "resources") ? "resources/list" : "";
}

void examine_features(Features& features, Checks& out) {
  if (is_declared(features, "tools")) features.tools = read_list(features, "tools/list", "tools");
  if (is_declared(features, "prompts")) {
    features.prompts = read_list(features, "prompts/list", "prompts");
  }
  if (is_declared(features, "resources")) {
    features.resources = read_list(features, "resources/list", "resources");
    features.templates = read_list(features, "resources/templates/list", "resourceTemplates");
  }
  const std::string rules(std::max(features.revision->name, kFirstOfClauses));
  for (const FeatureCheck& check : kFeatureChecks) {
    if (const std::optional<Verdict> verdict = check.examine(features)) {
      out.push_back(to_check(check.subject, rules + ", " + std::string(check.clause), *verdict));
    }
  }
}

}  // namespace sluice
