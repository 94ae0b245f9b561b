#include "protocol/mirrored_headers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/text/base64.hpp"
#include "core/text/text.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kBase64Prefix = "=?base64?";
constexpr std::string_view kBase64Suffix = "?=";
/// The largest integer that IEEE 754 doubles hold exactly. The specification limits mirrored
/// integers to that.
constexpr std::int64_t kMaxSafeInteger = (std::int64_t{1} << 53U) - 1;

std::unexpected<Error> mismatch(std::string why) {
  return fail(kHeaderMismatch, "Header mismatch: " + std::move(why));
}

std::unexpected<Error> missing(std::string_view name) {
  return mismatch("the " + std::string(name) + " header is required for this request");
}

std::unexpected<Error> repeated(std::string_view name) {
  return mismatch("the " + std::string(name) + " header appears more than once; send it once");
}

std::unexpected<Error> differs(std::string_view name, std::string_view header,
                               std::string_view body) {
  return mismatch(std::string(name) + " header value '" + std::string(header) +
                  "' does not match body value '" + std::string(body) + "'");
}

bool is_plain(std::string_view value) {
  return std::ranges::all_of(value,
                             [](unsigned char c) { return c == '\t' || (c >= 0x20 && c < 0x7F); });
}

/// Checks that the field `name` has the value `body`. Its raw value is `header`, possibly in the
/// Base64 form.
Result<void> check_text(std::string_view name, std::string_view header, std::string_view body) {
  if (!header.starts_with(kBase64Prefix) && header == body && is_plain(header)) return {};
  const std::optional<std::string> decoded = decode_header_value(header);
  if (!decoded)
    return mismatch("the " + std::string(name) +
                    " header has invalid characters; send its value as =?base64?...?=");
  if (*decoded != body) return differs(name, *decoded, body);
  return {};
}

/// Parses a decimal integer, which may have a fraction of zeros.
std::optional<std::int64_t> decode_integer(std::string_view header) {
  if (const std::size_t point = header.find('.'); point != std::string_view::npos) {
    const std::string_view fraction = header.substr(point + 1);
    if (fraction.empty() || fraction.find_first_not_of('0') != std::string_view::npos) return {};
    header = header.substr(0, point);
  }
  std::int64_t value = 0;
  const char* const end = header.data() + header.size();
  const auto [stop, error] = std::from_chars(header.data(), end, value);
  if (error != std::errc() || stop != end) return {};
  return value;
}

/// The value of a JSON number, if it is an integer that can be mirrored.
std::optional<std::int64_t> safe_integer(const json::value& number) {
  if (number.is_double()) {
    const double value = number.get_double();
    if (std::abs(value) > static_cast<double>(kMaxSafeInteger) || value != std::trunc(value)) {
      return {};
    }
    return static_cast<std::int64_t>(value);
  }
  const bool negative = number.is_int64() && number.get_int64() < 0;
  if (negative ? number.get_int64() < -kMaxSafeInteger
               : number.to_number<std::uint64_t>() > std::uint64_t{kMaxSafeInteger}) {
    return {};
  }
  return number.to_number<std::int64_t>();
}

/// The value at `path`, or null if there is none.
const json::value* value_at(const json::object& arguments, const std::vector<std::string>& path) {
  const json::object* object = &arguments;
  const json::value* value = nullptr;
  for (const std::string& member : path) {
    if (object == nullptr) return nullptr;
    value = object->if_contains(member);
    if (value == nullptr || value->is_null()) return nullptr;
    object = value->if_object();
  }
  return value;
}

Result<void> check_parameter(const ParameterHeader& parameter, const json::value& value,
                             std::string_view header) {
  if (const json::string* text = value.if_string()) {
    return check_text(parameter.field, header, *text);
  }
  if (const bool* flag = value.if_bool()) {
    return check_text(parameter.field, header, *flag ? "true" : "false");
  }
  if (value.is_structured()) {
    return mismatch(parameter.field + " mirrors a parameter that is an array or an object in the " +
                    "body, which no header can mirror");
  }
  if (parameter.type != ParameterHeader::Type::integer) {
    return check_text(parameter.field, header, to_json(value));
  }
  const std::optional<std::int64_t> integer = safe_integer(value);
  if (!integer) {
    return mismatch(parameter.field + " mirrors " + to_json(value) +
                    ", which is not an integer between -2^53+1 and 2^53-1");
  }
  const std::optional<std::string> decoded = decode_header_value(header);
  if (!decoded)
    return mismatch("the " + parameter.field +
                    " header has invalid characters; send its value as =?base64?...?=");
  if (decode_integer(*decoded) != integer) {
    return differs(parameter.field, *decoded, std::to_string(*integer));
  }
  return {};
}

/// Finds the annotations of a schema.
class AnnotationFinder {
 public:
  Result<std::vector<ParameterHeader>> find(const json::value& schema) {
    if (Result<void> walked = walk(schema, Where::reachable); !walked) {
      return std::unexpected(std::move(walked.error()));
    }
    return std::move(found_);
  }

 private:
  enum class Where : std::uint8_t { reachable, elsewhere };

  /// Walks `schema`, which is at path_. The recursion is as deep as JSON may be (kMaxJsonDepth).
  Result<void> walk(const json::value& schema, Where where) {
    const json::object* const object = schema.if_object();
    if (object == nullptr) return {};
    for (const auto& [key, value] : *object) {
      const std::string_view keyword = key;
      Result<void> walked;
      if (keyword == "x-mcp-header") {
        walked = annotate(*object, value, where);
      } else if (keyword == "properties") {
        walked = walk_members(value, where);
      } else if (is_one_of(keyword, kSchemas)) {
        walked = walk_below(value);
      } else if (is_one_of(keyword, kMapsOfSchemas)) {
        walked = walk_members(value, Where::elsewhere);
      }
      if (!walked) return walked;
    }
    return {};
  }

  Result<void> walk_members(const json::value& schemas, Where where) {
    const json::object* const members = schemas.if_object();
    if (members == nullptr) return {};
    for (const auto& [name, schema] : *members) {
      path_.emplace_back(name);
      Result<void> walked = walk(schema, where);
      path_.pop_back();
      if (!walked) return walked;
    }
    return {};
  }

  /// Walks a schema or an array of schemas.
  Result<void> walk_below(const json::value& below) {
    const json::array* const several = below.if_array();
    if (several == nullptr) return walk(below, Where::elsewhere);
    for (const json::value& each : *several) {
      if (Result<void> walked = walk(each, Where::elsewhere); !walked) return walked;
    }
    return {};
  }

  Result<void> annotate(const json::object& schema, const json::value& annotation, Where where) {
    const json::string* const name = annotation.if_string();
    if (name == nullptr || name->empty()) return refuse("must be a non-empty string");
    if (where == Where::elsewhere || path_.empty()) {
      return refuse("is allowed only for parameters that are reachable through `properties` alone");
    }
    if (!std::ranges::all_of(std::string_view(*name), is_token_char)) {
      return refuse("may contain only characters that are allowed in the name of a header field");
    }
    const std::optional<ParameterHeader::Type> type = type_of(schema);
    if (!type) return refuse("is allowed only for parameters of type string, integer or boolean");
    std::string field = "Mcp-Param-" + std::string(std::string_view(*name));
    const auto same = [&](const ParameterHeader& other) {
      return std::ranges::equal(field, other.field,
                                [](char a, char b) { return to_lower(a) == to_lower(b); });
    };
    if (std::ranges::any_of(found_, same)) {
      return refuse("'" + std::string(std::string_view(*name)) +
                    "' is already used by another parameter (case is ignored)");
    }
    found_.push_back({std::move(field), path_, *type});
    return {};
  }

  [[nodiscard]] std::unexpected<Error> refuse(const std::string& why) const {
    std::string at;
    for (const std::string& member : path_) at.append("/").append(member);
    return fail(kInternalError, "x-mcp-header at " + (at.empty() ? "the root" : at) + " " + why);
  }

  static std::optional<ParameterHeader::Type> type_of(const json::object& schema) {
    const json::value* const type = schema.if_contains("type");
    if (type == nullptr) return {};
    if (const json::string* name = type->if_string()) return type_named(*name);
    // A nullable parameter: null has no header field.
    const json::array* const several = type->if_array();
    if (several == nullptr || several->size() != 2) return {};
    for (const std::size_t at : {0U, 1U}) {
      const json::string* const name = (*several)[at].if_string();
      if (name != nullptr && (*several)[1 - at] == "null") return type_named(*name);
    }
    return {};
  }

  static std::optional<ParameterHeader::Type> type_named(std::string_view name) {
    if (name == "string") return ParameterHeader::Type::string;
    if (name == "integer") return ParameterHeader::Type::integer;
    if (name == "boolean") return ParameterHeader::Type::boolean;
    return {};
  }

  template <std::size_t kCount>
  static bool is_one_of(std::string_view keyword,
                        const std::array<std::string_view, kCount>& keywords) {
    return std::ranges::find(keywords, keyword) != keywords.end();
  }

  // The keywords whose values are schemas, including those of the older drafts that are supported
  // (JSON Schema 2020-12 Core, section 10).
  static constexpr std::array<std::string_view, 16> kSchemas = {"additionalItems",
                                                                "additionalProperties",
                                                                "allOf",
                                                                "anyOf",
                                                                "contains",
                                                                "contentSchema",
                                                                "else",
                                                                "if",
                                                                "items",
                                                                "not",
                                                                "oneOf",
                                                                "prefixItems",
                                                                "propertyNames",
                                                                "then",
                                                                "unevaluatedItems",
                                                                "unevaluatedProperties"};
  static constexpr std::array<std::string_view, 5> kMapsOfSchemas = {
      "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"};

  std::vector<std::string> path_;
  std::vector<ParameterHeader> found_;
};

}  // namespace

std::size_t bytes_of(const std::vector<ParameterHeader>& parameters) {
  std::size_t bytes = 0;
  for (const ParameterHeader& each : parameters) {
    bytes += each.field.size();
    for (const std::string& name : each.path) bytes += name.size();
  }
  return bytes;
}

std::optional<std::string_view> mirrored_parameter(std::string_view method) {
  if (method == "tools/call" || method == "prompts/get") return "name";
  if (method == "resources/read") return "uri";
  if (method == "tasks/get" || method == "tasks/update" || method == "tasks/cancel") {
    return "taskId";
  }
  return std::nullopt;
}

Result<void> check_mirrored_headers(const Message& message, const MirroredHeaders& headers,
                                    std::string_view version) {
  if (!headers.repeated.empty()) return repeated(headers.repeated);
  if (headers.protocol_version.data() == nullptr) {
    if (headers.required) return missing("MCP-Protocol-Version");
  } else if (version.data() != nullptr && headers.protocol_version != version) {
    return differs("MCP-Protocol-Version", headers.protocol_version, version);
  }
  if (headers.method.data() == nullptr) {
    if (headers.required) return missing("Mcp-Method");
  } else if (headers.method != message.method) {
    return differs("Mcp-Method", headers.method, message.method);
  }
  const std::optional<std::string_view> member = mirrored_parameter(message.method);
  if (!member || message.params == nullptr) return {};
  const json::value* const name = message.params->if_contains(*member);
  if (name == nullptr || !name->is_string()) return {};  // the method's own check reports it
  if (headers.name.data() != nullptr) {
    return check_text("Mcp-Name", headers.name, name->get_string());
  }
  if (headers.required) return missing("Mcp-Name");
  return {};
}

std::optional<std::string> decode_header_value(std::string_view value) {
  if (!value.starts_with(kBase64Prefix) || !value.ends_with(kBase64Suffix) ||
      value.size() < kBase64Prefix.size() + kBase64Suffix.size()) {
    return is_plain(value) ? std::optional(std::string(value)) : std::nullopt;
  }
  value.remove_prefix(kBase64Prefix.size());
  value.remove_suffix(kBase64Suffix.size());
  return decode_base64(value);
}

std::string encode_header_value(std::string_view value) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  const bool is_padded = !value.empty() && (is_space(value.front()) || is_space(value.back()));
  if (is_plain(value) && !is_padded && !value.starts_with(kBase64Prefix)) return std::string(value);
  std::string out(kBase64Prefix);
  append_base64(out, value);
  return out.append(kBase64Suffix);
}

Result<std::vector<ParameterHeader>> find_parameter_headers(const json::value& input_schema) {
  return AnnotationFinder().find(input_schema);
}

std::vector<std::pair<std::string, std::string>> write_parameter_headers(
    const std::vector<ParameterHeader>& parameters, const json::object& arguments) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const ParameterHeader& parameter : parameters) {
    const json::value* const value = value_at(arguments, parameter.path);
    if (value == nullptr || value->is_structured()) continue;
    fields.emplace_back(parameter.field,
                        encode_header_value(value->is_string() ? std::string(value->get_string())
                                                               : to_json(*value)));
  }
  return fields;
}

Result<void> check_parameter_headers(const std::vector<ParameterHeader>& parameters,
                                     const json::object& arguments,
                                     const MirroredHeaders& headers) {
  if (headers.all == nullptr) return {};
  for (const ParameterHeader& parameter : parameters) {
    const json::value* const value = value_at(arguments, parameter.path);
    const HeaderSource::Field field = headers.all->find(parameter.field);
    if (value == nullptr) {
      if (field.count == 0) continue;
      return mismatch(parameter.field +
                      " mirrors a parameter that the body does not have; send both or neither");
    }
    if (field.count == 0) {
      if (headers.required) return missing(parameter.field);
      continue;
    }
    if (field.count > 1) return repeated(parameter.field);
    if (Result<void> checked = check_parameter(parameter, *value, field.value); !checked) {
      return checked;
    }
  }
  return {};
}

}  // namespace sluice
