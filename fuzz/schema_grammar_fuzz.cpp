// The conversion of a request's JSON Schema. A schema that passes the check of its bounds must be
// converted by llama.cpp and parsed as a grammar without a crash and in time (-timeout).

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "engine/grammar/grammar.hpp"
#include "engine/llama/grammar/schema_bounds.hpp"
#include "engine/llama/grammar/schema_grammar.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "json/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::initialize_llama();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto schema = sluice::parse_json(text);
  if (!schema) return 0;
  double budget = sluice::kSchemaBudget;
  if (!sluice::check_schema_bounds(*schema, "json_schema", budget)) return 0;
  const sluice::LlamaGuard guard;
  std::string grammar;
  try {
    grammar = sluice::schema_grammar(*schema);
  } catch (const std::exception&) {
    return 0;  // refused, with a reason
  }
  const auto parsed = sluice::Grammar::parse(grammar);
  return 0;
}
