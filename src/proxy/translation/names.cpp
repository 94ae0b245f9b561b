#include "proxy/translation/names.hpp"

#include <algorithm>
#include <utility>

#include "core/text/text.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr char kNameSign = '_';
constexpr char kUriSign = '+';
constexpr std::string_view kUi = "ui://";

bool is_prefix_character(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

std::optional<OwnName> split_at(std::string_view text, char sign) {
  const auto at = text.find(sign);
  if (at == std::string_view::npos || !is_prefix(text.substr(0, at))) return std::nullopt;
  return OwnName{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

void rename(json::object& object, std::string_view member, const auto& renamed) {
  json::value* const value = object.if_contains(member);
  if (value != nullptr && value->is_string()) *value = renamed(std::string(value->get_string()));
}

/// Calls `visit` with each object in the array at `member`.
void each_object(json::object& object, std::string_view member, const auto& visit) {
  json::value* const value = object.if_contains(member);
  if (value == nullptr || !value->is_array()) return;
  for (json::value& each : value->get_array()) {
    if (each.is_object()) visit(each.get_object());
  }
}

json::object* object_in(json::object& object, std::string_view member) {
  json::value* const value = object.if_contains(member);
  return value == nullptr ? nullptr : value->if_object();
}

/// Where the params of a method name a feature, and how.
struct Subject {
  json::value* value = nullptr;  // a string; or null
  bool is_uri = false;
};

Subject find_subject(std::string_view method, json::object& params) {
  const auto member = [](json::object& of, std::string_view name, bool is_uri) {
    json::value* const value = of.if_contains(name);
    return Subject{value != nullptr && value->is_string() ? value : nullptr, is_uri};
  };
  if (method == "tools/call" || method == "prompts/get") return member(params, "name", false);
  if (method == "resources/read" || method == "resources/subscribe" ||
      method == "resources/unsubscribe") {
    return member(params, "uri", true);
  }
  json::object* const ref = method == "completion/complete" ? object_in(params, "ref") : nullptr;
  if (ref == nullptr) return {};
  const bool is_uri = text_at(*ref, "type") == "ref/resource";
  return member(*ref, is_uri ? "uri" : "name", is_uri);
}

}  // namespace

bool is_prefix(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPrefix && is_letter(text.front()) &&
         std::ranges::all_of(text, is_prefix_character);
}

std::string prefix_of(std::string_view name) {
  std::string out(name);
  std::ranges::replace_if(out, [](char c) { return !is_prefix_character(c); }, '-');
  return is_prefix(out) ? out : std::string();
}

std::string prefixed_name(std::string_view prefix, std::string_view name) {
  if (prefix.empty()) return std::string(name);
  return std::string(prefix) + kNameSign + std::string(name);
}

std::string prefixed_uri(std::string_view prefix, std::string_view uri) {
  if (prefix.empty()) return std::string(uri);
  const std::string_view scheme = uri.starts_with(kUi) ? kUi : std::string_view();
  return std::string(scheme) + to_lower(prefix) + kUriSign + std::string(uri.substr(scheme.size()));
}

std::optional<OwnName> split_prefixed_name(std::string_view name) {
  return split_at(name, kNameSign);
}

std::optional<OwnName> split_prefixed_uri(std::string_view uri) {
  if (!uri.starts_with(kUi)) return split_at(uri, kUriSign);
  std::optional<OwnName> own = split_at(uri.substr(kUi.size()), kUriSign);
  if (own) own->name.insert(0, kUi);
  return own;
}

bool names_a_feature(std::string_view method, json::object& params) {
  return find_subject(method, params).value != nullptr;
}

std::string take_prefix(std::string_view method, json::object& params) {
  const Subject subject = find_subject(method, params);
  if (subject.value == nullptr) return {};
  const std::string_view text = subject.value->get_string();
  std::optional<OwnName> own =
      subject.is_uri ? split_prefixed_uri(text) : split_prefixed_name(text);
  if (!own) return {};
  *subject.value = own->name;
  return std::move(own->prefix);
}

void add_prefix(std::string_view prefix, std::string_view method, json::object& result) {
  if (prefix.empty()) return;
  const auto name = [prefix](const std::string& own) { return prefixed_name(prefix, own); };
  const auto uri = [prefix](const std::string& own) { return prefixed_uri(prefix, own); };
  const auto block = [&uri](json::object& content) {
    if (text_at(content, "type") == "resource_link") rename(content, "uri", uri);
    if (json::object* const embedded = object_in(content, "resource"))
      rename(*embedded, "uri", uri);
  };
  const auto page = [&uri](json::object& of) {
    json::object* const meta = object_in(of, "_meta");
    if (meta == nullptr) return;
    // MCP Apps: the page that shows the tool, in the newer and the older form.
    rename(*meta, "ui/resourceUri", uri);
    if (json::object* const ui = object_in(*meta, "ui")) rename(*ui, "resourceUri", uri);
  };
  if (method == "tools/list") {
    each_object(result, "tools", [&](json::object& tool) {
      rename(tool, "name", name);
      page(tool);
    });
  } else if (method == "prompts/list") {
    each_object(result, "prompts", [&](json::object& prompt) { rename(prompt, "name", name); });
  } else if (method == "resources/list") {
    each_object(result, "resources", [&](json::object& one) { rename(one, "uri", uri); });
  } else if (method == "resources/templates/list") {
    each_object(result, "resourceTemplates",
                [&](json::object& one) { rename(one, "uriTemplate", uri); });
  } else if (method == "resources/read") {
    each_object(result, "contents", [&](json::object& one) { rename(one, "uri", uri); });
  } else if (method == "tools/call") {
    each_object(result, "content", block);
    page(result);
  } else if (method == "prompts/get") {
    each_object(result, "messages", [&](json::object& message) {
      if (json::object* const content = object_in(message, "content")) block(*content);
    });
  }
}

}  // namespace sluice
