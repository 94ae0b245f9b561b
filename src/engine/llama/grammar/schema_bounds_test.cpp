#include "engine/llama/grammar/schema_bounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using testing::HasSubstr;

Result<void> check_bounds(const std::string& text) {
  const auto schema = parse_json(text);
  EXPECT_TRUE(schema) << text;
  double budget = kSchemaBudget;
  return check_schema_bounds(*schema, "json_schema", budget);
}

std::string out_of_bounds(const std::string& text) {
  const auto checked = check_bounds(text);
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().code, -32602);
  EXPECT_THAT(checked.error().message, testing::StartsWith("json_schema cannot be followed: "));
  return checked.error().message;
}

std::string object_of(int properties, const std::string& rest = "") {
  std::string text = R"({"type":"object","properties":{)";
  for (int i = 0; i < properties; ++i) {
    if (i > 0) text += ',';
    text += "\"p" + std::to_string(i) + R"(":{"type":"string"})";
  }
  return text + "}" + rest + "}";
}

TEST(SchemaBounds, TakesWhatIsUsual) {
  EXPECT_TRUE(check_bounds("{}"));
  EXPECT_TRUE(check_bounds("true"));
  EXPECT_TRUE(check_bounds(object_of(200)));
  EXPECT_TRUE(check_bounds(R"({"properties":{"next":{"$ref":"#/$defs/node"}},"$defs":{"node":{
      "type":["object","null"],"properties":{"next":{"$ref":"#/$defs/node"}}}}})"));
  EXPECT_TRUE(check_bounds(R"({"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],
      "$defs":{"a":{"type":"string","pattern":"^x+$"},"b":{"$ref":"#/$defs/a"}}})"));
}

TEST(SchemaBounds, ManyOptionalPropertiesAreRefused) {
  EXPECT_THAT(out_of_bounds(object_of(800)), HasSubstr("fewer optional properties"));
  std::string required = R"(,"required":[)";
  for (int i = 0; i < 800; ++i) required += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\"";
  EXPECT_TRUE(check_bounds(object_of(800, required + "]")));
}

TEST(SchemaBounds, NestedListsOfTypesAreRefused) {
  std::string nested = R"({"type":"string"})";
  for (int i = 0; i < 12; ++i) {
    nested = R"({"type":["object","object","object","object"],"properties":{"a":)" + nested + "}}";
  }
  EXPECT_THAT(out_of_bounds(nested), HasSubstr("lists of types"));
}

TEST(SchemaBounds, ReferencesWithoutAnEndAreRefused) {
  EXPECT_THAT(out_of_bounds(R"({"allOf":[{"$ref":"#/$defs/a"}],
      "$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"),
              HasSubstr("let it lead to a schema"));
  EXPECT_THAT(out_of_bounds(R"({"$ref":"#/)" + std::string(300, '/') + "\"}"),
              HasSubstr("256 bytes"));
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 1500; ++i) {
    chain += "\"d" + std::to_string(i) + R"(":{"items":{"$ref":"#/$defs/d)" +
             std::to_string(i + 1) + "\"}},";
  }
  EXPECT_THAT(out_of_bounds(chain + R"("d1500":{}}})"), HasSubstr("too many references"));
}

TEST(SchemaBounds, UnionsThatLeadIntoEachOtherAreRefused) {
  std::string unions = R"({"$ref":"#/$defs/u0","$defs":{)";
  for (int i = 0; i < 40; ++i) {
    const std::string next = R"({"$ref":"#/$defs/u)" + std::to_string(i + 1) + "\"}";
    unions += "\"u" + std::to_string(i) + R"(":{"anyOf":[)" + next + "," + next + "]},";
  }
  EXPECT_THAT(out_of_bounds(unions + R"("u40":{}}})"), HasSubstr("too many ways"));
}

TEST(SchemaBounds, LongNamesAreRefused) {
  std::string name;
  for (int i = 0; i < 20'000; ++i) name += "\xC3\xA9";
  EXPECT_THAT(out_of_bounds(R"({"properties":{")" + name + R"(":{}}})"), HasSubstr("256 bytes"));
}

}  // namespace
}  // namespace sluice
