// JSON Schemas: the first line is a schema, the rest an instance. For any input, compiling and
// validating terminate and give the same result when repeated, and `not` inverts the result.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/utf8.hpp"
#include "json_schema/json_schema.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

constexpr JsonSchemaOptions kOptions{
    .assert_formats = true,
    .limits = {.max_subschemas = 2000,
               .max_pattern_bytes = 200,
               .max_patterns = 8,
               .max_pattern_memory = 256UL * 1024,
               .max_depth = 128,
               .max_steps = 50'000},
};

bool is_exhausted(const JsonSchemaViolation& violation) {
  return violation.message.starts_with("cannot be checked: ");
}

void check(const JsonSchema& schema, const json::value& text, const json::value& instance) {
  const auto result = schema.validate(instance);
  const auto again = schema.validate(instance);
  require(result.has_value() == again.has_value());
  if (!result) {
    require(!result.error().message.empty());
    require(result.error().message == again.error().message);
    require(result.error().path == again.error().path);
    require(is_valid_utf8(result.error().describe("arguments")));
    if (is_exhausted(result.error())) return;
  }
  // A schema that refers to itself by its location has a different meaning inside another schema.
  if (!text.is_object() || to_json(text).contains("Ref\"") || to_json(text).contains("$ref"))
    return;
  const json::value inverse = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                               {"not", text}};
  const Result<JsonSchema> negated = JsonSchema::compile(inverse, kOptions);
  if (!negated || text.get_object().contains("$schema")) return;
  const auto opposite = negated->validate(instance);
  if (!opposite && is_exhausted(opposite.error())) return;
  require(opposite.has_value() != result.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  const Result<json::value> schema = parse_json(text.substr(0, line));
  const Result<json::value> instance = parse_json(text.substr(line + 1));
  if (!schema || !instance) return 0;
  const Result<JsonSchema> compiled = JsonSchema::compile(*schema, kOptions);
  if (compiled) {
    check(*compiled, *schema, *instance);
  } else {
    const int code = compiled.error().code;
    require(code == -32602 || code == kLimitReached);
    require(is_valid_utf8(compiled.error().message));
  }
  return 0;
}
