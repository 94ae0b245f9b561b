#include "engine/generation_params.hpp"

#include <gtest/gtest.h>
#include <string>

#include "core/json.hpp"

#if SLUICE_WITH_LLAMA
#include "engine/llama/token_sampler.hpp"
#endif

namespace sluice {
namespace {

Result<GenerationRequest> decoded(std::string_view name, const json::value& value) {
  json::object params;
  params["prompt"] = "x";
  params[name] = value;
  return decode_generation(params);
}

/// What the schema says is allowed may not be refused, and what it says is not must be.
TEST(GenerationParams, AreWhatTheSchemaAdvertises) {
  const auto schema = parse_json(generation_schema());
  ASSERT_TRUE(schema);
  std::size_t bounds = 0;
  for (const auto& [name, property] : schema->at("properties").as_object()) {
    for (const std::string_view end : {"minimum", "maximum"}) {
      const json::value* const bound = property.as_object().if_contains(end);
      if (bound == nullptr) continue;
      ++bounds;
      const auto request = decoded(name, *bound);
      EXPECT_TRUE(request) << name << ' ' << end;
      const double outside = bound->to_number<double>() + (end == "minimum" ? -1 : 1);
      EXPECT_FALSE(decoded(name, outside)) << name << ' ' << end;
#if SLUICE_WITH_LLAMA
      if (request) EXPECT_TRUE(check_sampling(request->sampling)) << name << ' ' << end;
#endif
    }
  }
  EXPECT_GT(bounds, 20U);
  const auto longest =
      static_cast<std::size_t>(schema->at("properties").at("stop").at("maxLength").as_int64());
  EXPECT_TRUE(decoded("stop", json::string(std::string(longest, 'x'))));
  EXPECT_TRUE(decoded("stop", json::array{json::string(std::string(longest, 'x'))}));
  EXPECT_FALSE(decoded("stop", json::string(std::string(longest + 1, 'x'))));
}

}  // namespace
}  // namespace sluice
