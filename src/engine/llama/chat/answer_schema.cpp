#include "engine/llama/chat/answer_schema.hpp"

#include <exception>

#include "engine/llama/grammar/followable_schema.hpp"
#include "engine/llama/grammar/schema_bounds.hpp"
#include "engine/llama/grammar/schema_grammar.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

Result<std::string> grammar_of_schema(std::string_view json_schema) {
  const auto refuse = [](const std::string& why) {
    return fail(kInvalidParams, "json_schema " + why);
  };
  const auto schema = parse_json(json_schema);
  if (!schema) return refuse("must be JSON: " + schema.error().message);
  if (!schema->is_object() && !schema->is_bool()) return refuse("must be an object");
  double budget = kSchemaBudget;
  if (auto bounded = check_schema_bounds(*schema, "json_schema", budget); !bounded) {
    return std::unexpected(std::move(bounded).error());
  }
  const auto followed = followable_schema(*schema, Inexpressible::refused);
  if (!followed) return refuse("cannot be followed: " + followed.error().message);
  initialize_llama();
  const LlamaGuard guard;
  try {
    return schema_grammar(*followed);
  } catch (const std::exception& error) {
    return refuse(std::string("cannot be followed: ") + error.what());
  }
}

}  // namespace sluice
