#include "cli/remote/call_arguments.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/content/exact_json.hpp"
#include "cli/content/schema_hints.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/suggestion.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr int kMaxNameDots = 32;  // in a name: how deep members are nested

/// What is given for one name, in its order.
struct Given {
  std::string name;
  std::vector<std::string> texts = {};
  bool is_json = false;
};

std::vector<Given> grouped_assignments(const std::vector<std::string>& assignments) {
  std::vector<Given> out;
  for (const std::string& word : assignments) {
    const auto equals = word.find('=');
    const bool is_json = equals > 0 && word[equals - 1] == ':';
    std::string name = word.substr(0, is_json ? equals - 1 : equals);
    auto found = std::ranges::find(out, name, &Given::name);
    if (found == out.end()) found = out.insert(out.end(), Given{.name = std::move(name)});
    found->is_json = found->is_json || is_json;
    found->texts.push_back(word.substr(equals + 1));
  }
  return out;
}

Error misfit(std::string_view name, const std::string& what, const json::value& schema) {
  return {kExitUsage,
          std::string(name) + ": " + what + "; the schema says " + quoted_schema(schema)};
}

std::vector<std::string> names_of(const json::object& schema) {
  std::vector<std::string> out;
  if (const json::object* const properties = object_at(schema, "properties")) {
    for (const auto& [name, property] : *properties) out.emplace_back(name);
  }
  return out;
}

Error unknown(std::string_view name, const json::object& schema) {
  const std::vector<std::string> names = names_of(schema);
  std::string message = "there is no argument " + std::string(name);
  if (const auto meant = suggestion(name, names); !meant.empty()) {
    message.append("; did you mean ").append(meant).append("?");
  }
  const json::value* const properties = schema.if_contains("properties");
  if (names.empty()) return {kExitUsage, message + "; there are none"};
  return {kExitUsage, message + "; the schema says " + quoted_schema(*properties)};
}

std::string expected_text(const SchemaTypes& types) {
  std::string out;
  const auto add = [&out](bool is_allowed, std::string_view name) {
    if (is_allowed) out.append(out.empty() ? "" : " or ").append(name);
  };
  add(types.number, "a number");
  add(types.integer && !types.number, "a whole number");
  add(types.boolean, "true or false");
  add(types.array, "a JSON array");
  add(types.object, "a JSON object");
  add(types.null, "null");
  return out;
}

/// `text` as JSON, if it is that.
std::optional<json::value> parsed_json(std::string_view text) {
  auto parsed = exact_json(text);
  return parsed ? std::optional(*std::move(parsed)) : std::nullopt;
}

bool is_of(const json::value& value, const SchemaTypes& types) {
  if (types.is_silent) return true;
  if (value.is_null()) return types.null;
  if (value.is_bool()) return types.boolean;
  if (value.is_array()) return types.array;
  if (value.is_object()) return types.object;
  if (value.is_double()) {
    return types.number || (types.integer && exact_integer(value.get_double()).has_value());
  }
  return value.is_number() && (types.number || types.integer);
}

Result<json::value> typed_value(std::string_view name, std::string_view text,
                                const json::value& schema, const json::object& root) {
  const json::object* const members = resolved(schema, root);
  const json::value* const allowed = members == nullptr ? nullptr : members->if_contains("enum");
  if (allowed != nullptr && allowed->is_array()) {
    for (const json::value& each : allowed->get_array()) {
      if (each.is_string() ? each.get_string() == text : to_json(each) == text) return each;
    }
    std::vector<std::string> texts = {};
    for (const json::value& each : allowed->get_array()) {
      texts.push_back(each.is_string() ? std::string(each.get_string()) : to_json(each));
    }
    std::string what = "\"" + std::string(text) + "\" is none of its values";
    if (const auto meant = suggestion(text, texts); !meant.empty()) {
      what.append("; did you mean ").append(meant).append("?");
    }
    return std::unexpected(misfit(name, what, schema));
  }
  const SchemaTypes types = types_of(schema, root);
  auto parsed = parsed_json(text);
  // Quotes belong to the text, unless it is JSON that is asked for with := .
  const bool is_exact = parsed && !parsed->is_string();
  if (is_exact && is_of(*parsed, types)) return *std::move(parsed);
  if (types.string || types.is_silent) return json::value(text);
  return std::unexpected(misfit(
      name, "\"" + shortened(text, kMaxQuote) + "\" is not " + expected_text(types), schema));
}

Result<json::value> value_of(const Given& given, const json::value& schema,
                             const json::object& root) {
  if (given.is_json) {
    if (given.texts.size() > 1) return fail(kExitUsage, given.name + ":= is given twice");
    auto parsed = exact_json(given.texts.front());
    if (!parsed)
      return fail(kExitUsage,
                  given.name + ":= is no JSON that can be sent: " + parsed.error().message);
    return parsed;
  }
  const SchemaTypes types = types_of(schema, root);
  const std::string& first = given.texts.front();
  const bool is_whole = given.texts.size() == 1 &&
                        (!types.array || types.string || types.is_silent || first.starts_with('['));
  if (is_whole) return typed_value(given.name, first, schema, root);
  if (!types.array && !types.is_silent) {
    return std::unexpected(misfit(given.name, "is given twice, but is no array", schema));
  }
  static const json::value kAnything = json::object();
  const json::object* const members = resolved(schema, root);
  const json::value* const items = members == nullptr ? nullptr : members->if_contains("items");
  json::array out;
  for (const std::string& text : given.texts) {
    auto item = typed_value(given.name, text, items == nullptr ? kAnything : *items, root);
    if (!item) return item;
    out.push_back(*std::move(item));
  }
  return json::value(std::move(out));
}

/// Puts a value where `name` says, within objects that are made as needed.
Result<void> put_argument(const Given& given, std::string_view name, const json::object& schema,
                          const json::object& root, json::object& out) {
  const json::object* const properties = object_at(schema, "properties");
  const bool is_listed = properties != nullptr && properties->contains(name);
  const auto dot = is_listed ? std::string_view::npos : name.find('.');
  const std::string_view member = name.substr(0, dot);
  const json::value* const property = property_schema(schema, member);
  if (property == nullptr) return std::unexpected(unknown(given.name, schema));
  if (dot == std::string_view::npos) {
    auto value = value_of(given, *property, root);
    if (!value) return std::unexpected(std::move(value.error()));
    out[member] = *std::move(value);
    return {};
  }
  static const json::object kOpen;
  const json::object* const inner = resolved(*property, root);
  const SchemaTypes types = types_of(*property, root);
  if (!types.object && !types.is_silent) {
    return std::unexpected(misfit(member, "has no members, as it is no object", *property));
  }
  json::value& place = out[member];
  if (place.is_null()) place.emplace_object();
  if (!place.is_object()) {
    return std::unexpected(misfit(member, "has no members, as it is no object", *property));
  }
  return put_argument(given, name.substr(dot + 1), inner == nullptr ? kOpen : *inner, root,
                      place.get_object());
}

/// Whether all names of `arguments` are known, and none is missing.
Result<void> check_names(const json::object& arguments, const json::object& schema) {
  for (const auto& [name, value] : arguments) {
    if (property_schema(schema, name) == nullptr) return std::unexpected(unknown(name, schema));
  }
  const json::value* const required = schema.if_contains("required");
  if (required == nullptr || !required->is_array()) return {};
  const json::object* const properties = object_at(schema, "properties");
  std::string missing;
  for (const json::value& each : required->get_array()) {
    if (!each.is_string() || arguments.contains(each.get_string())) continue;
    const std::string_view name = each.get_string();
    const json::value* const property =
        properties == nullptr ? nullptr : properties->if_contains(name);
    missing.append(missing.empty() ? "" : ", ").append(name);
    if (property != nullptr) missing.append(" ").append(quoted_schema(*property));
  }
  if (missing.empty()) return {};
  return fail(kExitUsage, "the tool needs more arguments; give NAME=VALUE for: " + missing);
}

}  // namespace

Result<json::object> tool_arguments(const std::vector<std::string>& assignments,
                                    const json::object& schema, json::object given) {
  const std::vector<Given> all = grouped_assignments(assignments);
  for (const Given& one : all) {
    if (std::ranges::count(one.name, '.') > kMaxNameDots) {
      return fail(kExitUsage, shortened(one.name, kMaxQuote) + ": a name has at most " +
                                  std::to_string(kMaxNameDots) + " dots");
    }
    // Words replace what is given as JSON, but not each other.
    const json::object* const properties = object_at(schema, "properties");
    const auto is_member = [&](const Given& before) {
      return before.name.starts_with(one.name + ".") &&
             (properties == nullptr || !properties->contains(before.name));
    };
    if (std::any_of(all.data(), &one, is_member)) {
      return fail(kExitUsage, one.name + " would replace its members; give it before them");
    }
    if (auto done = put_argument(one, one.name, schema, schema, given); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  if (auto good = check_names(given, schema); !good) {
    return std::unexpected(std::move(good.error()));
  }
  return given;
}

Result<std::vector<std::pair<std::string, std::string>>> text_arguments(
    const std::vector<std::string>& assignments) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Given& one : grouped_assignments(assignments)) {
    if (one.texts.size() > 1) return fail(kExitUsage, one.name + " is given twice");
    if (one.is_json) {
      return fail(kExitUsage, one.name + ":= is for tools; give " + one.name + "=TEXT");
    }
    out.emplace_back(one.name, one.texts.front());
  }
  return out;
}

}  // namespace sluice
