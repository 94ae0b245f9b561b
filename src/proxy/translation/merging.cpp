#include "proxy/translation/merging.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/text/base64.hpp"
#include "json/members.hpp"
#include "proxy/translation/names.hpp"
#include "proxy/translation/translation.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

struct List {
  std::string_view method;
  std::string_view name;
  std::string_view capability;
};
constexpr std::array<List, 4> kLists = {
    {{"tools/list", "tools", "tools"},
     {"prompts/list", "prompts", "prompts"},
     {"resources/list", "resources", "resources"},
     {"resources/templates/list", "resourceTemplates", "resources"}}};

const List* find_list(std::string_view method) {
  const auto* const found = std::ranges::find(kLists, method, &List::method);
  return found == kLists.end() ? nullptr : found;
}

/// Adds the members that `into` does not have. Objects are joined.
void join(json::object& into, const json::object& more) {
  for (const auto& [key, value] : more) {
    json::value* const own = into.if_contains(key);
    if (own == nullptr) {
      into[key] = value;
    } else if (own->is_object() && value.is_object()) {
      for (const auto& [name, member] : value.get_object()) {
        // A flag is set if any server has it.
        json::value& there = own->get_object()[name];
        if (there.is_null() || (there.is_bool() && member.is_bool() && member.get_bool())) {
          there = member;
        }
      }
    }
  }
}

}  // namespace

std::string_view list_of(std::string_view method) {
  const List* const list = find_list(method);
  return list == nullptr ? std::string_view() : list->name;
}

std::string_view capability_of(std::string_view method) {
  const List* const list = find_list(method);
  return list == nullptr ? std::string_view() : list->capability;
}

json::object merge_pages(std::string_view method, std::vector<PartAnswer> pages) {
  json::array entries;
  json::object cursors;
  std::int64_t fresh = std::numeric_limits<std::int64_t>::max();
  bool is_public = !pages.empty();
  for (auto& [prefix, page] : pages) {
    json::value* const list = page.if_contains(list_of(method));
    if (list != nullptr && list->is_array()) {
      for (json::value& entry : list->get_array()) entries.push_back(std::move(entry));
    }
    if (const std::string_view next = text_at(page, "nextCursor"); !next.empty()) {
      cursors[prefix] = next;
    }
    const json::value* const ttl = page.if_contains("ttlMs");
    fresh = std::min(fresh, ttl != nullptr && ttl->is_int64() ? ttl->get_int64() : 0);
    is_public = is_public && text_at(page, "cacheScope") == "public";
  }
  json::object merged{{list_of(method), std::move(entries)}};
  if (!cursors.empty()) merged["nextCursor"] = to_base64url(to_json(cursors));
  merged["ttlMs"] = pages.empty() ? 0 : fresh;
  merged["cacheScope"] = is_public ? "public" : "private";
  return merged;
}

Result<std::map<std::string, std::string>> cursors_in(
    std::string_view cursor, const std::function<bool(std::string_view prefix)>& is_known) {
  std::map<std::string, std::string> cursors;
  const auto text = decode_base64url(cursor);
  const Result<json::value> value = parse_json(text.value_or(""));
  const json::object* const members = value ? value->if_object() : nullptr;
  if (members != nullptr) {
    for (const auto& [prefix, each] : *members) {
      if (each.is_string() && is_known(prefix)) cursors.emplace(prefix, each.get_string());
    }
  }
  if (cursors.empty()) {
    return fail(kInvalidParams, "Invalid params: cursor is not one that this list has given");
  }
  return cursors;
}

json::object merge_descriptions(const std::vector<PartAnswer>& descriptions) {
  json::object capabilities;
  std::string instructions;
  for (const auto& [prefix, about] : descriptions) {
    if (const json::object* const declared = object_at(about, "capabilities")) {
      join(capabilities, passed_on(*declared));
    }
    const std::string_view text = text_at(about, "instructions");
    if (text.empty()) continue;
    if (!instructions.empty()) instructions.append("\n\n");
    if (!prefix.empty()) {
      instructions.append("# ").append(prefix).append("\n\n");
      instructions.append("What follows is about tools and prompts whose names begin with ")
          .append(prefixed_name(prefix, ""))
          .append("\n\n");
    }
    instructions.append(text);
  }
  json::object merged{{"capabilities", std::move(capabilities)}};
  if (!instructions.empty()) merged["instructions"] = instructions;
  return merged;
}

}  // namespace sluice
