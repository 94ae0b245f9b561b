// Measures the check of a call's arguments against a tool's schema.

#include <benchmark/benchmark.h>
#include <string_view>

#include "json_schema/json_schema.hpp"

namespace sluice {
namespace {

constexpr std::string_view kSchema = R"({
  "type": "object",
  "properties": {
    "query": {"type": "string", "minLength": 1, "maxLength": 200},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "order": {"enum": ["newest", "oldest", "relevance"]},
    "exact": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
    "range": {
      "type": "object",
      "properties": {"from": {"type": "number"}, "to": {"type": "number"}},
      "required": ["from", "to"],
      "additionalProperties": false
    }
  },
  "required": ["query"],
  "additionalProperties": false
})";

constexpr std::string_view kArguments =
    R"({"query":"streaming servers in C++","limit":20,"order":"relevance","exact":false,)"
    R"("tags":["mcp","c++","streams"],"range":{"from":0.5,"to":12}})";

void validate_arguments(benchmark::State& state) {
  const JsonSchema schema = JsonSchema::compile(parse_json(kSchema).value()).value();
  const json::value arguments = parse_json(kArguments).value();
  for (auto _ : state) {
    if (!schema.validate(arguments)) state.SkipWithError("not valid");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(validate_arguments);

void compile_schema(benchmark::State& state) {
  const json::value schema = parse_json(kSchema).value();
  for (auto _ : state) {
    if (!JsonSchema::compile(schema)) state.SkipWithError("not a schema");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(compile_schema);

}  // namespace
}  // namespace sluice
