// Tests of what the JSON Schema project's own tests (json_schema_suite_test.cpp) do not cover: what
// is said about a violation, what is refused, and that nothing takes long.

#include "json_schema/json_schema.hpp"

#include <array>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>

namespace sluice {
namespace {

JsonSchema compile(std::string_view schema, const JsonSchemaOptions& options = {}) {
  Result<JsonSchema> compiled = JsonSchema::compile(parse_json(schema).value(), options);
  if (!compiled) throw std::runtime_error(compiled.error().message);
  return *std::move(compiled);
}

std::string compile_error(std::string_view schema, const JsonSchemaOptions& options = {}) {
  const Result<JsonSchema> compiled = JsonSchema::compile(parse_json(schema).value(), options);
  if (compiled) return "";
  EXPECT_TRUE(compiled.error().code == -32602 || compiled.error().code == kLimitReached);
  return compiled.error().message;
}

/// What is wrong with `instance`; empty if it is valid.
std::string violation(const JsonSchema& schema, const json::value& instance) {
  const auto result = schema.validate(instance);
  return result ? "" : result.error().describe("arguments");
}

std::string violation(std::string_view schema, std::string_view instance,
                      const JsonSchemaOptions& options = {}) {
  return violation(compile(schema, options), parse_json(instance).value());
}

TEST(JsonSchema, WhatIsNotSupportedHasACodeOfItsOwn) {
  const auto code = [](std::string_view schema) {
    return JsonSchema::compile(parse_json(schema).value()).error().code;
  };
  for (const char* const schema :
       {R"({"pattern":"a(?!b)c"})", R"({"pattern":"(a)\\1"})", R"({"$ref":"https://a.example/b"})",
        R"({"$schema":"http://json-schema.org/draft-04/schema#"})"}) {
    EXPECT_EQ(code(schema), kLimitReached) << schema;
  }
  for (const char* const schema : {R"({"pattern":"(a"})", R"({"type":"strnig"})"}) {
    EXPECT_EQ(code(schema), -32602) << schema;
  }
}

TEST(JsonSchema, LetsWhatIsNotRequiredBeNullIfItIsTold) {
  constexpr std::string_view kSchema = R"({
    "properties": {"a": {"type": "integer"}, "b": {"properties": {"c": {"type": "string"}}}},
    "required": ["a"],
    "additionalProperties": false
  })";
  constexpr JsonSchemaOptions kNull{.null_for_optional = true};
  EXPECT_EQ(violation(kSchema, R"({"a":1,"b":null})", kNull), "");
  EXPECT_EQ(violation(kSchema, R"({"a":1,"b":{"c":null}})", kNull), "");
  EXPECT_EQ(violation(kSchema, R"({"a":null})", kNull), "arguments.a: expected integer, got null");
  EXPECT_EQ(violation(kSchema, R"({"a":1,"d":null})", kNull),
            "arguments.d: there is no such property");
  EXPECT_EQ(violation(kSchema, R"({"a":1,"b":{"c":null}})"),
            "arguments.b.c: expected string, got null");
}

TEST(JsonSchema, SaysWhereAnInstanceBreaksIt) {
  constexpr std::string_view kSchema = R"({
    "type": "object",
    "properties": {
      "items": {"type": "array", "items": {"properties": {"to": {"type": "integer"}}}},
      "odd key": {"properties": {"x": {"type": ["null", "boolean", "number"]}}},
      "name": {"type": "string"}
    },
    "required": ["name"],
    "additionalProperties": false
  })";
  EXPECT_EQ(violation(kSchema, R"({"name":"a","items":[{},{"to":4},{"to":1.0}]})"), "");
  EXPECT_EQ(violation(kSchema, R"({"name":"a","items":[{},{"to":4},{"to":"5"}]})"),
            "arguments.items[2].to: expected integer, got string");
  EXPECT_EQ(violation(kSchema, R"({"name":"a","items":[{"to":1.5}]})"),
            "arguments.items[0].to: expected integer, got number");
  EXPECT_EQ(violation(kSchema, R"({"name":"a","odd key":{"x":[]}})"),
            "arguments[\"odd key\"].x: expected number, boolean or null, got array");
  EXPECT_EQ(violation(kSchema, "[]"), "arguments: expected object, got array");
  EXPECT_EQ(violation(kSchema, "{}"), "arguments: missing required property \"name\"");
  EXPECT_EQ(violation(kSchema, R"({"name":"a","nmae":"b"})"),
            "arguments.nmae: there is no such property");
}

struct Case {
  std::string_view schema;
  std::string_view instance;
  std::string_view message;
};

TEST(JsonSchema, SaysHowAnInstanceBreaksIt) {
  constexpr auto kCases = std::to_array<Case>({
      {R"({"minimum":1})", "0", "expected at least 1, got 0"},
      {R"({"maximum":1})", "1.5", "expected at most 1, got 1.5"},
      {R"({"exclusiveMinimum":1})", "1", "expected more than 1, got 1"},
      {R"({"exclusiveMaximum":1})", "1", "expected less than 1, got 1"},
      {R"({"multipleOf":3})", "4", "expected a multiple of 3, got 4"},
      {R"({"minLength":2})", R"("ä")", "expected at least 2 characters, got 1"},
      {R"({"maxLength":1})", R"("äö")", "expected at most 1 character, got 2"},
      {R"({"pattern":"^a"})", R"("b")", R"(expected a match of "^a", got "b")"},
      {R"({"minItems":1})", "[]", "expected at least 1 item, got 0"},
      {R"({"maxItems":1})", "[1,2]", "expected at most 1 item, got 2"},
      {R"({"uniqueItems":true})", "[1,2,1.0]", "items 0 and 2 are equal"},
      {R"({"contains":{"type":"null"}})", "[1]",
       "expected at least 1 item that `contains` describes, got 0"},
      {R"({"minProperties":1})", "{}", "expected at least 1 property, got 0"},
      {R"({"maxProperties":0})", R"({"a":1})", "expected at most 0 properties, got 1"},
      {R"({"propertyNames":{"maxLength":1}})", R"({"ab":1})",
       R"(the name "ab": expected at most 1 character, got 2)"},
      {R"({"dependentRequired":{"a":["b"]}})", R"({"a":1})",
       R"(missing required property "b", which "a" needs)"},
      {R"({"enum":["a",1,null]})", R"("b")", R"(expected one of "a", 1, null, got "b")"},
      {R"({"const":1})", "true", "expected 1, got true"},
      {R"({"not":{"type":"null"}})", "null", "matches what `not` excludes"},
      {R"({"oneOf":[{"minimum":1},{"minimum":2}]})", "3",
       "matches more than one alternative of `oneOf`, expected exactly one"},
      {R"({"prefixItems":[true],"items":false})", "[1,2]", "[1]: there is no such item"},
      {R"({"properties":{"a":true},"unevaluatedProperties":false})", R"({"b":1})",
       ".b: there is no such property"},
      {"false", "1", "no value is allowed here"},
  });
  for (const Case& test : kCases) {
    const bool inside = test.message.starts_with('.') || test.message.starts_with('[');
    EXPECT_EQ(violation(test.schema, test.instance),
              std::string(inside ? "arguments" : "arguments: ").append(test.message))
        << test.schema;
  }
}

TEST(JsonSchema, QuotesLittleOfALongText) {
  const std::string text = '"' + std::string(1000, 'x') + '"';
  EXPECT_LT(violation(R"({"pattern":"^a"})", text).size(), 100U);
  EXPECT_LT(violation(R"({"const":"a"})", text).size(), 100U);
  EXPECT_LT(violation(R"({"additionalProperties":false})", "{" + text + ":1}").size(), 100U);
}

TEST(JsonSchema, ExplainsTheAlternativeThatCameClosest) {
  constexpr std::string_view kShapes = R"({"oneOf": [
    {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
     "required": ["kind", "radius"]},
    {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
     "required": ["kind", "side"]}
  ]})";
  EXPECT_EQ(violation(kShapes, R"({"kind":"square","side":2})"), "");
  EXPECT_EQ(violation(kShapes, R"({"kind":"square","side":"2"})"),
            "arguments.side: expected number, got string");
  EXPECT_EQ(violation(kShapes, R"({"kind":"circle","side":2})"),
            "arguments: missing required property \"radius\"");
  EXPECT_EQ(
      violation(kShapes, R"({"kind":"line"})"),
      R"(arguments: matches none of the 2 alternatives: kind: expected "circle", got "line"; )"
      R"(kind: expected "square", got "line")");
  EXPECT_EQ(violation(R"({"anyOf":[{"type":"string"},{"type":"integer"}]})", "[]"),
            "arguments: expected string or integer, got array");
  EXPECT_EQ(violation(R"({"anyOf":[{"type":"null"},{"type":"integer","minimum":3}]})", "1"),
            "arguments: expected at least 3, got 1");
}

TEST(JsonSchema, ComparesNumbersExactly) {
  EXPECT_EQ(violation(R"({"maximum":9007199254740993})", "9007199254740993"), "");
  EXPECT_NE(violation(R"({"maximum":9007199254740992.0})", "9007199254740993"), "");
  EXPECT_EQ(violation(R"({"maximum":18446744073709551615})", "18446744073709551615"), "");
  EXPECT_NE(violation(R"({"maximum":-1})", "18446744073709551615"), "");
  EXPECT_EQ(violation(R"({"multipleOf":0.01})", "19.99"), "");
  EXPECT_NE(violation(R"({"multipleOf":0.01})", "19.995"), "");
}

TEST(JsonSchema, SaysWhyASchemaIsInvalid) {
  EXPECT_EQ(compile_error(R"({"properties":{"a":{"type":"strnig"}}})"),
            "invalid schema at #/properties/a/type: there is no type \"strnig\"");
  EXPECT_EQ(compile_error(R"({"$defs":{"a/b":{"minimum":"1"}}})"),
            "invalid schema at #/$defs/a~1b/minimum: expected a number");
  EXPECT_EQ(compile_error(R"({"items":[true]})"),
            "invalid schema at #/items: expected a schema: an object or a boolean");
  EXPECT_EQ(compile_error(R"({"anyOf":{}})"),
            "invalid schema at #/anyOf: expected an array of schemas");
  EXPECT_EQ(compile_error(R"({"minLength":-1})"),
            "invalid schema at #/minLength: expected an integer, 0 or more");
  EXPECT_EQ(compile_error(R"({"multipleOf":0})"),
            "invalid schema at #/multipleOf: expected a number above 0");
  EXPECT_EQ(compile_error(R"({"required":[1]})"),
            "invalid schema at #/required: expected an array of names");
  EXPECT_EQ(compile_error(R"({"$ref":"#/$defs/a"})"),
            "invalid schema at #/$ref: there is nothing at \"/$defs/a\"");
  EXPECT_EQ(compile_error(R"({"$ref":"#/l%ea"})"),
            "invalid schema at #/$ref: there is no anchor \"/l%ea\"");
  EXPECT_EQ(compile_error(R"({"pattern":"(a)\\1"})"),
            "invalid schema at #/pattern: the regular expression is refused: "
            "backreferences are not supported");
  EXPECT_EQ(compile_error("3"), "invalid schema at #: expected a schema: an object or a boolean");
  EXPECT_EQ(
      compile_error(R"({"$schema":"http://json-schema.org/draft-03/schema#"})"),
      "invalid schema at #/$schema: the dialect \"http://json-schema.org/draft-03/schema\" is "
      "not supported; use https://json-schema.org/draft/2020-12/schema");
}

TEST(JsonSchema, RefersOnlyToDocumentsAtHand) {
  constexpr std::string_view kSchema = R"({"$ref":"https://example.com/integer"})";
  EXPECT_EQ(compile_error(kSchema),
            "invalid schema at #/$ref: the document \"https://example.com/integer\" is not known, "
            "and documents are never fetched");
  EXPECT_NE(compile_error(R"({"$ref":"file:///etc/passwd"})"), "");

  // The documents need not outlive the compilation.
  JsonSchemaDocuments documents;
  documents.emplace("https://example.com/integer", parse_json(R"({"type":"integer"})").value());
  const JsonSchema schema = compile(kSchema, {.documents = &documents});
  documents.clear();
  EXPECT_EQ(violation(schema, 1), "");
  EXPECT_EQ(violation(schema, "1"), "arguments: expected integer, got string");
}

TEST(JsonSchema, ReadsOlderDraftsByTheirRules) {
  constexpr std::string_view kDraft07 = R"({"$schema":"http://json-schema.org/draft-07/schema#",
    "definitions":{"a":{"type":"integer"}},
    "items":[{"$ref":"#/definitions/a","maximum":1}],"additionalItems":false})";
  EXPECT_EQ(violation(kDraft07, "[2]"), "");
  EXPECT_EQ(violation(kDraft07, "[2,3]"), "arguments[1]: there is no such item");
  EXPECT_EQ(violation(R"({"$schema":"https://json-schema.org/draft/2019-09/schema",
    "properties":{"next":{"$recursiveRef":"#"}},"required":["x"]})",
                      R"({"x":1,"next":{}})"),
            "arguments.next: missing required property \"x\"");
}

TEST(JsonSchema, ChecksFormatsOnlyIfAsked) {
  EXPECT_EQ(violation(R"({"format":"date"})", R"("soon")"), "");
  EXPECT_EQ(violation(R"({"format":"date"})", R"("soon")", {.assert_formats = true}),
            "arguments: expected the format date, got \"soon\"");
  EXPECT_EQ(violation(R"({"format":"of our own"})", R"("soon")", {.assert_formats = true}), "");
}

TEST(JsonSchema, GivesUpOnEndlessReferences) {
  constexpr std::string_view kTooDeep =
      "arguments: cannot be checked: it takes more than 512 levels of schemas";
  EXPECT_EQ(violation(R"({"$ref":"#"})", "1"), kTooDeep);
  EXPECT_EQ(violation(R"({"not":{"$ref":"#"}})", "1"), kTooDeep);
  EXPECT_EQ(violation(R"({"anyOf":[{"$ref":"#"},true]})", "1"), kTooDeep);
  EXPECT_EQ(violation(R"({"contains":true,"if":{"$ref":"#"}})", "[1]"), kTooDeep);
}

TEST(JsonSchema, ReadsARecursiveSchemaAsDeepAsTheParserGoes) {
  const JsonSchema schema = compile(R"({"type":"array","items":{"$ref":"#"}})");
  std::string nested;
  for (std::size_t i = 1; i < kMaxJsonDepth; ++i) nested += '[';
  const std::string closed(kMaxJsonDepth - 1, ']');
  EXPECT_EQ(violation(schema, parse_json(nested + closed).value()), "");
  EXPECT_NE(violation(schema, parse_json(nested + "1" + closed).value()), "");
}

// There are 2^30 ways through the schema; the step budget ends the validation.
TEST(JsonSchema, GivesUpOnExponentialAlternatives) {
  std::string schema = R"({"$defs":{"a0":{"type":"null"})";
  for (int i = 1; i <= 30; ++i) {
    const std::string inner = R"({"$ref":"#/$defs/a)" + std::to_string(i - 1) + R"("})";
    schema += R"(,"a)" + std::to_string(i) + R"(":{"anyOf":[)" + inner + "," + inner + "]}";
  }
  schema += R"(},"$ref":"#/$defs/a30"})";
  EXPECT_EQ(violation(schema, "1"),
            "arguments: cannot be checked: it takes more than 4000000 steps");
}

TEST(JsonSchema, TellsNestedAlternativesApartAtOnce) {
  const JsonSchema schema = compile(R"({"$defs":{
      "neg":{"type":"object","properties":{"of":{"$ref":"#"},"kind":{"const":"neg"}}},
      "sqrt":{"type":"object","properties":{"of":{"$ref":"#"},"kind":{"enum":["sqrt"]}}}},
      "anyOf":[{"$ref":"#/$defs/neg"},{"$ref":"#/$defs/sqrt"},{"type":"number"}]})");
  std::string text;
  for (int i = 0; i < 40; ++i) text += R"({"of":)";
  text += "1";
  for (int i = 0; i < 40; ++i) text += R"(,"kind":"sqrt"})";
  EXPECT_EQ(violation(schema, parse_json(text).value()), "");
}

TEST(JsonSchema, SaysLessWhereSayingMoreTakesTooLong) {
  const JsonSchema schema =
      compile(R"({"anyOf":[{"const":1},{"const":2},{"const":3},{"const":4}]})",
              {.limits = {.max_steps = 30}});
  EXPECT_EQ(violation(schema, 5),
            "arguments: does not follow the schema; finding the reason takes more than 30 steps");
}

TEST(JsonSchema, SaysWhetherMoreStepsMayHelp) {
  const JsonSchema schema = compile(R"({"items":{"type":"integer"}})");
  const json::value good = json::array(100, 1);
  EXPECT_TRUE(schema.validate(good).has_value());
  EXPECT_TRUE(schema.validate(good, 10).error().is_unfinished);
  EXPECT_EQ(schema.validate(good, 10).error().message,
            "cannot be checked: it takes more than 10 steps");
  EXPECT_FALSE(schema.validate(json::array(100, "a"), 50).error().is_unfinished);
}

TEST(JsonSchema, MatchesCatastrophicPatternsInLinearTime) {
  const json::value text(std::string(100'000, 'a') + "b");
  EXPECT_NE(violation(compile(R"({"pattern":"^(a+)+$"})"), text), "");
  EXPECT_EQ(violation(compile(R"({"pattern":"^(?:.|x)*$"})"), text), "");
  EXPECT_NE(violation(compile(R"({"pattern":"^(a|aa)+$"})"), text), "");
}

TEST(JsonSchema, ChargesForPatternsByTheSizeOfTheText) {
  const JsonSchema schema =
      compile(R"({"items":{"pattern":"(x+x+)+y"}})", {.limits = {.max_steps = 10'000}});
  json::array few(1, json::value(std::string(5'000, 'x')));
  EXPECT_NE(violation(schema, few).find("expected a match"), std::string::npos);
  const json::array many(100, json::value(std::string(10'000, 'x') + "y"));
  EXPECT_NE(violation(schema, many).find("more than 10000 steps"), std::string::npos);
}

TEST(JsonSchema, ChargesForWhatEachByteOfATextMeetsInAPattern) {
  const std::string letters(120'000, 'a');
  for (const char* pattern : {"[a-z]{900}0", "(?:[a-z]{30}){30}0", "(?:a?b?c?d?){200}0"}) {
    const JsonSchema schema = compile(R"({"pattern":")" + std::string(pattern) + "\"}");
    EXPECT_EQ(violation(schema, json::value(letters)),
              "arguments: cannot be checked: it takes more than 4000000 steps")
        << pattern;
    EXPECT_NE(violation(schema, json::value(letters.substr(0, 1000))).find("expected a match"),
              std::string::npos);
  }
  // A class of many characters is as cheap as a class of few.
  for (const char* pattern : {R"(^\\p{L}+$)", "^[a-z]+$"}) {
    const JsonSchema schema = compile(R"({"pattern":")" + std::string(pattern) + "\"}");
    EXPECT_EQ(violation(schema, json::value(std::string(3'000'000, 'a'))), "") << pattern;
  }
}

TEST(JsonSchema, ChargesForComparingItems) {
  const JsonSchema schema = compile(R"({"uniqueItems":true})", {.limits = {.max_steps = 1000}});
  json::array items;
  for (int i = 0; i < 2000; ++i) items.emplace_back(i);
  EXPECT_NE(violation(schema, items).find("more than 1000 steps"), std::string::npos);
}

TEST(JsonSchema, ChargesForNotingMembersInEachAlternative) {
  std::string schema = R"({"unevaluatedItems":true,"anyOf":[true)";
  for (int i = 1; i < 1000; ++i) schema += ",true";
  const JsonSchema compiled = compile(schema + "]}", {.limits = {.max_steps = 50'000}});
  EXPECT_EQ(violation(compiled, json::array(100)), "");
  EXPECT_NE(violation(compiled, json::array(40'000)).find("more than 50000 steps"),
            std::string::npos);
}

TEST(JsonSchema, RefusesSchemasBeyondItsLimits) {
  EXPECT_EQ(compile_error(R"({"allOf":[true,true]})", {.limits = {.max_subschemas = 2}}),
            "invalid schema: it has more than 2 subschemas");
  EXPECT_EQ(compile_error(R"({"pattern":"aaa"})", {.limits = {.max_pattern_bytes = 2}}),
            "invalid schema at #/pattern: the regular expression has more than 2 bytes");
  EXPECT_EQ(
      compile_error(R"({"pattern":"a","patternProperties":{"a":true,"b":true}})",
                    {.limits = {.max_patterns = 1}}),
      "invalid schema at #/patternProperties: the schema has more than 1 regular expressions");
  EXPECT_NE(compile_error(R"({"pattern":"((a{1,100}){1,100}){1,100}"})"), "");
}

TEST(JsonSchema, ValidatesManyPropertiesAndItems) {
  std::string object = "{\"p0\":0";
  for (int i = 1; i < 300; ++i) object += ",\"p" + std::to_string(i) + "\":" + std::to_string(i);
  const std::string known = object + "}";
  constexpr std::string_view kSchema =
      R"({"allOf":[{"patternProperties":{"^p":true}}],"unevaluatedProperties":false})";
  EXPECT_EQ(violation(kSchema, known), "");
  EXPECT_EQ(violation(kSchema, object + ",\"q\":1}"), "arguments.q: there is no such property");
}

}  // namespace
}  // namespace sluice
