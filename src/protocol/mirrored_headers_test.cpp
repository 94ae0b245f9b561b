#include "protocol/mirrored_headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

json::value parsed(std::string_view text) {
  return parse_json(text).value();
}

/// A schema with one parameter `p`, whose schema has these members.
std::string schema_of(std::string_view members) {
  return R"({"type":"object","properties":{"p":{)" + std::string(members) + "}}}";
}

class Fields final : public HeaderSource {
 public:
  Fields(std::initializer_list<std::pair<const std::string, std::string>> fields)
      : fields_(fields) {}
  [[nodiscard]] Field find(std::string_view name) const override {
    const auto [begin, end] = fields_.equal_range(std::string(name));
    if (begin == end) return {};
    return {begin->second, static_cast<std::size_t>(std::distance(begin, end))};
  }

 private:
  std::multimap<std::string, std::string> fields_;
};

TEST(DecodeHeaderValue, TakesPlainTextAndBase64) {
  EXPECT_EQ(decode_header_value("plain ~\t!"), "plain ~\t!");
  EXPECT_EQ(decode_header_value(""), "");
  EXPECT_EQ(decode_header_value("=?base64?"
                                "?="),
            "");
  EXPECT_EQ(decode_header_value("=?base64?YQ==?="), "a");
  EXPECT_EQ(encode_header_value("Hello, \xe4\xb8\x96\xe7\x95\x8c"),
            "=?base64?SGVsbG8sIOS4lueVjA==?=");
  for (const std::string value :
       {"", "a b", " a", "a ", "\ta", "a\nb", "=?base64?x?=", "=?base64?", "?=", "\x7f"}) {
    EXPECT_EQ(decode_header_value(encode_header_value(value)), value);
  }
  EXPECT_EQ(decode_header_value("=?base64?YWI=?="), "ab");
  EXPECT_EQ(decode_header_value("=?base64?YWJj?="), "abc");
  EXPECT_EQ(decode_header_value("=?base64?PT9iYXNlNjQ/?="), "=?base64?");
  // The Base64 form is not closed, so this is plain text.
  EXPECT_EQ(decode_header_value("=?base64?YQ=="), "=?base64?YQ==");
  EXPECT_EQ(decode_header_value("=?base64?="), "=?base64?=");
  EXPECT_EQ(decode_header_value("=?base64?YQ=?="), std::nullopt);
  EXPECT_EQ(decode_header_value("=?base64?Y*==?="), std::nullopt);
  EXPECT_EQ(decode_header_value("a\x01"), std::nullopt);
  EXPECT_EQ(decode_header_value("a\x7F"), std::nullopt);
  EXPECT_EQ(decode_header_value("\xC3\xA9"), std::nullopt);
}

TEST(FindParameterHeaders, FollowsPropertiesToAnyDepth) {
  const auto found = find_parameter_headers(parsed(
      R"({"type":"object","properties":{
          "region":{"type":"string","x-mcp-header":"Region"},
          "plain":{"type":"number"},
          "x-mcp-header":{"type":"string","default":{"x-mcp-header":"data"}},
          "deep":{"type":"object","properties":{
            "count":{"type":"integer","x-mcp-header":"Count"},
            "flag":{"type":["null","boolean"],"x-mcp-header":"method"}}}}})"));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].field, "Mcp-Param-Region");
  EXPECT_EQ((*found)[0].path, std::vector<std::string>{"region"});
  EXPECT_EQ((*found)[0].type, ParameterHeader::Type::string);
  EXPECT_EQ((*found)[1].path, (std::vector<std::string>{"deep", "count"}));
  EXPECT_EQ((*found)[1].type, ParameterHeader::Type::integer);
  EXPECT_EQ((*found)[2].type, ParameterHeader::Type::boolean);
  EXPECT_TRUE(find_parameter_headers(parsed("true"))->empty());
  EXPECT_TRUE(find_parameter_headers(parsed(R"({"enum":[{"x-mcp-header":""}]})"))->empty());
}

TEST(FindParameterHeaders, RefusesWhatBreaksTheRules) {
  struct Case {
    std::string schema;
    std::string_view why;
  };
  const std::string_view annotated = R"({"type":"string","x-mcp-header":"A"})";
  const auto below = [&](std::string_view keyword, bool array = false) {
    return R"({"properties":{"p":{")" + std::string(keyword) + "\":" + (array ? "[" : "") +
           std::string(annotated) + (array ? "]" : "") + "}}}";
  };
  std::vector<Case> cases = {
      {schema_of(R"("type":"string","x-mcp-header":"")"), "non-empty"},
      {schema_of(R"("type":"string","x-mcp-header":1)"), "non-empty"},
      {schema_of(R"("type":"string","x-mcp-header":"My Region")"), "characters"},
      {schema_of(R"("type":"string","x-mcp-header":"Region:Primary")"), "characters"},
      {schema_of("\"type\":\"string\",\"x-mcp-header\":\"R\xC3\xA9gion\""), "characters"},
      {schema_of(R"("type":"string","x-mcp-header":"Region\t1")"), "characters"},
      {schema_of(R"("type":"string","x-mcp-header":"a\r\nb")"), "characters"},
      {schema_of(R"("type":"number","x-mcp-header":"A")"), "string, integer or boolean"},
      {schema_of(R"("type":"array","x-mcp-header":"A")"), "string, integer or boolean"},
      {schema_of(R"("type":"object","x-mcp-header":"A")"), "string, integer or boolean"},
      {schema_of(R"("type":"null","x-mcp-header":"A")"), "string, integer or boolean"},
      {schema_of(R"("type":["string","integer"],"x-mcp-header":"A")"), "string, integer"},
      {schema_of(R"("x-mcp-header":"A")"), "string, integer or boolean"},
      {R"({"properties":{"a":{"type":"string","x-mcp-header":"Region"},)"
       R"("b":{"type":"string","x-mcp-header":"REGION"}}})",
       "/b 'REGION' is already used by another"},
      {R"({"type":"object","x-mcp-header":"A"})", "at the root"},
      {R"({"$defs":{"d":)" + std::string(annotated) + "}}", "alone"},
      {R"({"patternProperties":{"^a":)" + std::string(annotated) + "}}", "alone"},
      {R"({"dependentSchemas":{"a":{"properties":{"p":)" + std::string(annotated) + "}}}}",
       "alone"},
  };
  for (const std::string_view keyword : {"items", "additionalProperties", "not", "if", "then",
                                         "else", "contains", "unevaluatedProperties"}) {
    cases.push_back({below(keyword), "alone"});
  }
  for (const std::string_view keyword : {"allOf", "anyOf", "oneOf", "prefixItems", "items"}) {
    cases.push_back({below(keyword, true), "alone"});
  }
  for (const Case& c : cases) {
    const auto found = find_parameter_headers(parsed(c.schema));
    ASSERT_FALSE(found) << c.schema;
    EXPECT_THAT(found.error().message, HasSubstr(c.why)) << c.schema;
  }
}

TEST(CheckParameterHeaders, FieldsSayWhatTheBodySays) {
  const auto parameters = find_parameter_headers(parsed(
      R"({"properties":{"s":{"type":"string","x-mcp-header":"S"},
          "n":{"type":"integer","x-mcp-header":"N"},
          "o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}})"));
  ASSERT_TRUE(parameters);
  struct Case {
    std::string_view arguments;
    Fields fields;
    std::string_view why;  // empty: the headers match
  };
  for (const Case& c : {
           Case{R"({})", {}, ""},
           Case{R"({"s":null,"o":{}})", {}, ""},
           Case{R"({"o":7})", {}, ""},
           Case{R"({"s":"us-west1"})", {{"Mcp-Param-S", "us-west1"}}, ""},
           Case{R"({"s":""})", {{"Mcp-Param-S", ""}}, ""},
           Case{R"({"s":"us-west1"})", {{"Mcp-Param-S", "US-west1"}}, "does not match"},
           Case{R"({"s":"us-west1"})", {}, "the Mcp-Param-S header is required"},
           Case{R"({})", {{"Mcp-Param-S", "a"}}, "the body does not have"},
           Case{R"({"s":null})", {{"Mcp-Param-S", ""}}, "the body does not have"},
           Case{R"({"s":"a"})", {{"Mcp-Param-S", "a"}, {"Mcp-Param-S", "b"}}, "more than once"},
           Case{"{\"s\":\"Hello, \xE4\xB8\x96\xE7\x95\x8C\"}",
                {{"Mcp-Param-S", "=?base64?SGVsbG8sIOS4lueVjA==?="}},
                ""},
           Case{"{\"s\":\"\xC3\xA9\"}", {{"Mcp-Param-S", "\xC3\xA9"}}, "invalid characters"},
           Case{R"({"s":" padded "})", {{"Mcp-Param-S", "=?base64?IHBhZGRlZCA=?="}}, ""},
           Case{R"({"s":"line1\nline2"})", {{"Mcp-Param-S", "=?base64?bGluZTEKbGluZTI=?="}}, ""},
           Case{R"({"s":"=?base64?literal?="})",
                {{"Mcp-Param-S", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
                ""},
           Case{R"({"s":"Hello"})", {{"Mcp-Param-S", "=?base64?SGVsbG8?="}}, "invalid characters"},
           Case{R"({"s":"Hello"})",
                {{"Mcp-Param-S", "=?base64?SGVs!!!bG8=?="}},
                "invalid characters"},
           Case{R"({"s":"=?base64?SGVsbG8="})", {{"Mcp-Param-S", "=?base64?SGVsbG8="}}, ""},
           Case{R"({"s":"SGVsbG8="})", {{"Mcp-Param-S", "SGVsbG8="}}, ""},
           Case{R"({"n":42})", {{"Mcp-Param-N", "42"}}, ""},
           Case{R"({"n":42})", {{"Mcp-Param-N", "42.0"}}, ""},
           Case{R"({"n":42.0})", {{"Mcp-Param-N", "42"}}, ""},
           Case{R"({"n":42})", {{"Mcp-Param-N", "=?base64?NDI=?="}}, ""},
           Case{R"({"n":-7})", {{"Mcp-Param-N", "-7"}}, ""},
           Case{R"({"n":42})", {{"Mcp-Param-N", "42.5"}}, "does not match"},
           Case{R"({"n":42})", {{"Mcp-Param-N", "42."}}, "does not match"},
           Case{R"({"n":42})", {{"Mcp-Param-N", "0x2A"}}, "does not match"},
           Case{R"({"n":9007199254740991})", {{"Mcp-Param-N", "9007199254740991"}}, ""},
           Case{R"({"n":-9007199254740992})",
                {{"Mcp-Param-N", "-9007199254740992"}},
                "not an integer between"},
           Case{R"({"n":18446744073709551615})",
                {{"Mcp-Param-N", "18446744073709551615"}},
                "not an integer between"},
           Case{R"({"n":1.5})", {{"Mcp-Param-N", "1.5"}}, "not an integer between"},
           Case{R"({"o":{"b":true}})", {{"Mcp-Param-B", "true"}}, ""},
           Case{R"({"o":{"b":true}})", {{"Mcp-Param-B", "True"}}, "does not match"},
           Case{R"({"o":{"b":false}})", {}, "the Mcp-Param-B header is required"},
           // The check against the schema, if there is one, says what is wrong with these.
           Case{R"({"s":5})", {{"Mcp-Param-S", "5"}}, ""},
           Case{R"({"o":{"b":1}})", {{"Mcp-Param-B", "1"}}, ""},
           // A proxy has no schema, and nobody may read another value in the header.
           Case{R"({"s":5})", {{"Mcp-Param-S", "evil"}}, "does not match"},
           Case{R"({"s":1.5})", {{"Mcp-Param-S", "evil"}}, "does not match"},
           Case{R"({"o":{"b":1}})", {{"Mcp-Param-B", "true"}}, "does not match"},
           Case{R"({"s":[1]})", {{"Mcp-Param-S", "x"}}, "an array or an object"},
           Case{R"({"s":{"q":1}})", {{"Mcp-Param-S", "x"}}, "an array or an object"},
       }) {
    const json::value arguments = parsed(c.arguments);
    MirroredHeaders headers;
    headers.all = &c.fields;
    const auto checked = check_parameter_headers(*parameters, arguments.get_object(), headers);
    if (c.why.empty()) {
      EXPECT_TRUE(checked) << c.arguments << checked.error().message;
      continue;
    }
    ASSERT_FALSE(checked) << c.arguments;
    EXPECT_EQ(checked.error().code, kHeaderMismatch);
    EXPECT_THAT(checked.error().message, HasSubstr(c.why)) << c.arguments;
  }
}

}  // namespace
}  // namespace sluice
