#include "sluice/schema.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "json/json.hpp"
#include "json_schema/json_schema.hpp"

namespace sluice {
namespace {

struct Add {
  int a;
  int b;
};

enum class Color { red, green = 5, blue = 100 };
enum Level : std::uint8_t { low, high };
enum class Far : int { near = 1, away = 100'000 };

struct Point {
  double x = 0;
  double y = 0;
};

struct Step {
  int to;
  std::optional<std::string> note;
};

struct Everything {
  bool flag;
  std::int8_t tiny;
  std::uint64_t huge;
  float ratio;
  std::string text;
  Color color;
  Level level;
  std::vector<Step> steps;
  std::deque<bool> bits;
  std::array<int, 2> pair;
  std::set<std::string> tags;
  std::map<std::string, Point> places;
  std::unordered_map<std::string, int> counts;
  std::variant<int, std::string, Point> either;
  std::tuple<int, std::string> both;
  std::vector<std::optional<int>> gaps;
  std::optional<Point> maybe;
  std::unique_ptr<Point> owned;
  json::value raw;
  json::object map;
  json::array list;
};

struct Search {
  std::string query;
  int limit = 10;
  bool exact = false;
  std::vector<std::string> order = {"newest"};
  std::optional<Color> color = Color::red;
  Point near = {.x = 1};

  static auto describe() {
    return sluice::describe(
        "Searches the archive",
        field<&Search::query>("What to look for").min_length(1).max_length(200).header("Query"),
        field<&Search::limit>().minimum(1).maximum(100).examples({5, 10}),
        field<&Search::exact>("Whether spelling counts"),
        field<&Search::order>().min_items(1).unique_items());
  }
};

struct Bounds {
  int low;
  bool open;
};

/// Each member of the first half has an initialiser that says no more than none.
struct Initialized {
  bool quiet = false;
  std::int8_t pattern = 0x55;
  std::int16_t negative = static_cast<std::int16_t>(0xAAAA);
  int offset = 0;
  double ratio = 0;
  long double weight = 0;
  Color color = Color::red;
  Bounds bounds = {};

  bool loud;
  int count;
  double share;
  Color paint;
  Bounds limits;
};

struct Required {
  int offset = 0;
  std::optional<int> limit;
  std::string unit = "";

  static auto describe() {
    return sluice::describe("", field<&Required::offset>().required(),
                            field<&Required::limit>().required(),
                            field<&Required::unit>().optional());
  }
};

struct Open {
  int a;
  static auto describe() { return sluice::describe().open(); }
};

struct Tree {
  std::string name;
  std::vector<Tree> children;
  std::unique_ptr<Tree> twin;
};

struct Forest {
  Tree first;
  Tree second;
};

struct Circle {
  Literal<"circle"> kind;
  double radius;
};
struct Square {
  Literal<"square"> kind;
  double side;
};
using Shape = std::variant<Circle, Square>;
struct Drawing {
  std::vector<Shape> shapes;
};

struct None {};

struct Wide {
  int m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15;
  int m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31;
};

/// A type that is not an aggregate.
class Celsius {
 public:
  Celsius() = default;
  explicit Celsius(double degrees) : degrees_(degrees) {}
  double degrees() const { return degrees_; }

 private:
  double degrees_ = 0;
};

}  // namespace

template <>
struct Describe<Far> {
  // NOLINTNEXTLINE(readability-identifier-naming): the name that Describe asks for
  static constexpr auto names = std::to_array<std::pair<Far, std::string_view>>(
      {{Far::near, "close by"}, {Far::away, "far away"}});
};

template <>
struct Describe<Step> {
  static auto describe() { return sluice::describe(field<&Step::to>("The next place").minimum(0)); }
};

template <>
struct Codec<Celsius> {
  static json::value schema(SchemaBuilder&) { return {{"type", "string"}}; }
  static bool decode(const json::value& value, Celsius& out, Decoder& decoder) {
    if (!value.is_string() || !value.get_string().ends_with("C")) {
      return decoder.fail_value("degrees such as 20C", value);
    }
    out = Celsius(std::stod(std::string(value.get_string())));
    return true;
  }
  static json::value encode(const Celsius& value, Encoder&) {
    return json::value(std::to_string(value.degrees()) + "C");
  }
};

namespace {

json::value parsed(std::string_view text) {
  return parse_json(text).value();
}

template <class T>
std::string error_of(std::string_view text) {
  const auto decoded = decode<T>(parsed(text), "arguments");
  return decoded ? "" : decoded.error().describe();
}

/// Expects that the schema is valid, and that what encode() writes follows it and decodes to the
/// same value.
template <class T>
void expect_round_trip(const T& value) {
  const json::value schema = schema_of<T>();
  const Result<JsonSchema> compiled = JsonSchema::compile(schema, {.assert_formats = true});
  ASSERT_TRUE(compiled) << compiled.error().message << " in " << to_json(schema);
  const Result<JsonSchema> meta = JsonSchema::compile(
      {{"$ref", "https://json-schema.org/draft/2020-12/schema"}}, {.assert_formats = true});
  EXPECT_TRUE(meta->validate(schema)) << to_json(schema);

  const json::value encoded = encode(value);
  const auto valid = compiled->validate(encoded);
  EXPECT_TRUE(valid) << valid.error().describe("value") << " in " << to_json(encoded);
  const auto decoded = decode<T>(encoded);
  ASSERT_TRUE(decoded) << decoded.error().describe();
  EXPECT_EQ(encode(*decoded), encoded);
}

Everything everything() {
  Everything out{.flag = true,
                 .tiny = -128,
                 .huge = std::numeric_limits<std::uint64_t>::max(),
                 .ratio = 0.25F,
                 .text = "\xC3\xA4",
                 .color = Color::blue,
                 .level = high,
                 .steps = {{.to = 1, .note = {}}, {.to = 2, .note = "two"}},
                 .bits = {true, false},
                 .pair = {3, 4},
                 .tags = {"a", "b"},
                 .places = {{"home", {.x = 1, .y = 2}}},
                 .counts = {{"n", 5}},
                 .either = Point{.x = 3, .y = 4},
                 .both = {6, "six"},
                 .gaps = {1, std::nullopt},
                 .maybe = Point{},
                 .owned = std::make_unique<Point>(),
                 .raw = nullptr,
                 .map = {{"k", 1}},
                 .list = {1, "x"}};
  return out;
}

TEST(StructSchema, DescribesAPlainStruct) {
  EXPECT_EQ(schema_of<Add>(), parsed(R"({"type":"object","properties":
    {"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],
    "additionalProperties":false})"));
  const auto add = decode<Add>(parsed(R"({"a":1,"b":2.0})"));
  ASSERT_TRUE(add);
  EXPECT_EQ(add->a + add->b, 3);
  EXPECT_EQ(to_json(encode(*add)), R"({"a":1,"b":2})");
}

TEST(StructSchema, TellsWhatADescriptionSays) {
  EXPECT_EQ(schema_of<Search>(), parsed(R"({"type":"object","description":"Searches the archive",
    "properties":{
      "query":{"type":"string","description":"What to look for","minLength":1,"maxLength":200,
               "x-mcp-header":"Query"},
      "limit":{"type":"integer","minimum":1,"maximum":100,"examples":[5,10],"default":10},
      "exact":{"type":"boolean","description":"Whether spelling counts","default":false},
      "order":{"type":"array","items":{"type":"string"},"minItems":1,"uniqueItems":true,
               "default":["newest"]},
      "color":{"type":"string","enum":["red","green","blue"],"default":"red"},
      "near":{"type":"object","properties":{"x":{"type":"number","default":0.0},"y":{"type":"number","default":0.0}},
              "additionalProperties":false,"default":{"x":1.0,"y":0.0}}},
    "required":["query"],"additionalProperties":false})"));
  const auto search = decode<Search>(parsed(R"({"query":"x"})"));
  ASSERT_TRUE(search);
  EXPECT_EQ(search->limit, 10);
  EXPECT_EQ(search->order.size(), 1U);
  EXPECT_EQ(search->color, Color::red);
  EXPECT_EQ(search->near.x, 1);
  expect_round_trip(*search);
}

TEST(StructSchema, RequiresMembersWithoutInitialiser) {
  const json::value schema = schema_of<Initialized>();
  EXPECT_EQ(schema.at("required"), parsed(R"(["loud","count","share","paint","limits"])"));
  const json::value& properties = schema.at("properties");
  EXPECT_EQ(properties.at("quiet"), parsed(R"({"type":"boolean","default":false})"));
  EXPECT_EQ(properties.at("offset"), parsed(R"({"type":"integer","default":0})"));
  EXPECT_EQ(properties.at("color").at("default"), "red");
  EXPECT_EQ(properties.at("bounds").at("default"), parsed(R"({"low":0,"open":false})"));
  EXPECT_FALSE(properties.at("count").as_object().contains("default"));

  const auto decoded = decode<Initialized>(
      parsed(R"({"loud":true,"count":1,"share":2,"paint":"blue","limits":{"low":1,"open":true}})"));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->pattern, 0x55);
  EXPECT_EQ(decoded->offset, 0);
  EXPECT_EQ(error_of<Initialized>("{}"), "arguments: missing required property \"loud\"");
}

TEST(StructSchema, WhatIsEncodedHasAllMembers) {
  EXPECT_EQ(schema_of<Required>(SchemaUse::encoding),
            parsed(R"({"type":"object","properties":{"offset":{"type":"integer"},
    "limit":{"type":"integer"},"unit":{"type":"string"}},
    "required":["offset","unit"],"additionalProperties":false})"));
  EXPECT_EQ(encode(Required{}), parsed(R"({"offset":0,"unit":""})"));
}

TEST(StructSchema, RequiresWhatTheDescriptionSays) {
  EXPECT_EQ(schema_of<Required>(),
            parsed(R"({"type":"object","properties":{"offset":{"type":"integer"},
    "limit":{"type":"integer"},"unit":{"type":"string","default":""}},
    "required":["offset","limit"],"additionalProperties":false})"));
  EXPECT_EQ(error_of<Required>(R"({"offset":1,"limit":2})"), "");
  EXPECT_EQ(error_of<Required>(R"({"limit":2})"),
            "arguments: missing required property \"offset\"");
}

TEST(StructSchema, ReadsAndWritesEveryKindOfType) {
  expect_round_trip(everything());
  expect_round_trip(
      Add{.a = std::numeric_limits<int>::min(), .b = std::numeric_limits<int>::max()});
  expect_round_trip(None{});
  Wide wide{};
  wide.m31 = 31;
  expect_round_trip(wide);
  expect_round_trip(Far::away);
  expect_round_trip(Celsius(20));
  expect_round_trip(std::vector<Point>{{}, {}});
  expect_round_trip(std::variant<std::monostate, int>{});
  expect_round_trip(std::optional<int>{});
}

TEST(StructSchema, KeepsIntegersExact) {
  using Numbers = std::pair<std::int64_t, std::uint64_t>;
  const auto numbers = decode<Numbers>(parsed("[-9223372036854775808,18446744073709551615]"));
  ASSERT_TRUE(numbers);
  EXPECT_EQ(*numbers, Numbers(std::numeric_limits<std::int64_t>::min(),
                              std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(to_json(encode(*numbers)), "[-9223372036854775808,18446744073709551615]");
  const auto rounded = decode<Numbers>(parsed("[9007199254740993,9007199254740993]"));
  ASSERT_TRUE(rounded);
  EXPECT_EQ(*rounded, Numbers(9007199254740993, 9007199254740993U));
  EXPECT_EQ(decode<std::int64_t>(parsed("9007199254740991.0")), 9007199254740991);
  EXPECT_EQ(decode<std::int64_t>(parsed("-9.007199254740991e15")), -9007199254740991);
  // What would become another one.
  EXPECT_EQ(error_of<std::int64_t>("-9223372036854775809"),
            "arguments: expected integer from -9223372036854775808 to 9223372036854775807, got "
            "one that is too large to be exact");
  EXPECT_TRUE(error_of<std::int64_t>("9007199254740993.0").contains("expected integer from"));
  EXPECT_TRUE(error_of<std::uint64_t>("9007199254740993.0").contains("expected integer from"));
  EXPECT_TRUE(error_of<std::uint64_t>("1e400").contains("expected integer from"));
  EXPECT_TRUE(error_of<std::int8_t>("128.0").contains("expected integer from -128 to 127"));
}

TEST(StructSchema, SaysWhereAndWhyDecodingFails) {
  EXPECT_EQ(error_of<Everything>(R"({"flag":1})"), "arguments.flag: expected boolean, got integer");
  EXPECT_EQ(error_of<Add>("[]"), "arguments: expected object, got array");
  EXPECT_EQ(error_of<Add>(R"({"a":1})"), "arguments: missing required property \"b\"");
  EXPECT_EQ(error_of<Add>(R"({"a":1,"b":2,"c d":3})"),
            "arguments[\"c d\"]: there is no such property");
  EXPECT_EQ(error_of<Add>(R"({"a":1,"b":"2"})"), "arguments.b: expected integer, got string");
  EXPECT_EQ(error_of<Add>(R"({"a":1,"b":2.5})"), "arguments.b: expected integer, got 2.5");
  EXPECT_EQ(error_of<Add>(R"({"a":1,"b":null})"), "arguments.b: expected integer, got null");
  EXPECT_EQ(error_of<std::vector<Step>>(R"([{"to":1},{"to":2},{"to":"3"}])"),
            "arguments[2].to: expected integer, got string");
  EXPECT_EQ(error_of<Step>(R"({"to":1,"note":null})"), "");
  EXPECT_EQ(error_of<Step>(R"({"to":1,"note":2})"), "arguments.note: expected string, got integer");
  EXPECT_EQ(error_of<Color>(R"("pink")"),
            R"(arguments: expected one of "red", "green", "blue", got "pink")");
  EXPECT_EQ(error_of<std::set<int>>("[1,2,1]"), "arguments[2]: is equal to an item before it");
  EXPECT_EQ((error_of<std::array<int, 2>>("[1]")), "arguments: expected 2 items, got 1");
  EXPECT_EQ((error_of<std::map<std::string, int>>(R"({"k k":true})")),
            "arguments[\"k k\"]: expected integer, got boolean");
  EXPECT_EQ(error_of<float>("1e300"),
            "arguments: expected number, got one that is too large to be stored");
  EXPECT_EQ(error_of<json::object>(R"({"a":[1,{"b c":-1e400}]})"),
            "arguments.a[1][\"b c\"]: expected number, got one that is too large to be stored");
  EXPECT_EQ(error_of<json::array>("[1e400]"),
            "arguments[0]: expected number, got one that is too large to be stored");
  EXPECT_EQ(error_of<json::value>("1e400"),
            "arguments: expected number, got one that is too large to be stored");
  EXPECT_EQ(error_of<Celsius>(R"("20F")"), "arguments: expected degrees such as 20C, got \"20F\"");
}

TEST(StructSchema, RefusesIntegersThatDoNotFit) {
  EXPECT_EQ(error_of<std::int8_t>("128"), "arguments: expected integer from -128 to 127, got 128");
  EXPECT_EQ(error_of<unsigned>("-1"), "arguments: expected integer from 0 to 4294967295, got -1");
  EXPECT_NE(error_of<std::int64_t>("9223372036854775808"), "");
  EXPECT_NE(error_of<std::int64_t>("9223372036854775808.0"), "");
  EXPECT_NE(error_of<std::uint64_t>("1e20"), "");
  EXPECT_NE(error_of<std::uint64_t>("1e400"), "");
  EXPECT_NE(error_of<std::int64_t>("-9223372036854775808.0"), "");
  EXPECT_EQ(error_of<int>("3e2"), "");
}

TEST(StructSchema, ExplainsTheAlternativeThatCameClosest) {
  EXPECT_EQ(error_of<Drawing>(R"({"shapes":[{"kind":"square","side":1}]})"), "");
  EXPECT_EQ(error_of<Drawing>(R"({"shapes":[{"kind":"square","side":"1"}]})"),
            "arguments.shapes[0].side: expected number, got string");
  EXPECT_EQ(
      error_of<Drawing>(R"({"shapes":[{"kind":"line"}]})"),
      R"(arguments.shapes[0]: matches none of the 2 alternatives: kind: expected "circle", got "line"; )"
      R"(kind: expected "square", got "line")");
  EXPECT_EQ((error_of<std::variant<int, std::string>>("[]")),
            "arguments: expected integer or string, got array");
  expect_round_trip(Drawing{.shapes = {Circle{.kind = {}, .radius = 1}, Square{}}});
}

TEST(StructSchema, LetsUnknownMembersThroughWhereItIsTold) {
  EXPECT_FALSE(decode<Add>(parsed(R"({"a":1,"b":2,"c":3})")));
  EXPECT_TRUE(decode<Add>(parsed(R"({"a":1,"b":2,"c":3})"), "result", UnknownMembers::ignore));
  EXPECT_TRUE(decode<Open>(parsed(R"({"a":1,"b":2})")));
  EXPECT_FALSE(schema_of<Open>().as_object().contains("additionalProperties"));
}

TEST(StructSchema, RefersToStructsThatContainThemselves) {
  EXPECT_EQ(schema_of<Tree>(), parsed(R"({"type":"object","properties":{"name":{"type":"string"},
    "children":{"type":"array","items":{"$ref":"#"}},"twin":{"$ref":"#"}},
    "required":["name","children"],"additionalProperties":false})"));
  const json::value forest = schema_of<Forest>();
  EXPECT_EQ(forest.at("properties").at("second"), parsed(R"({"$ref":"#/$defs/Tree"})"));
  EXPECT_TRUE(forest.at("$defs").as_object().contains("Tree"));

  Tree tree{.name = "a", .children = {}, .twin = std::make_unique<Tree>()};
  tree.children.push_back({.name = "b", .children = {}, .twin = nullptr});
  expect_round_trip(tree);
  expect_round_trip(Forest{.first = std::move(tree), .second = {}});
}

TEST(StructSchema, StopsAtADepthThatNobodyReads) {
  Tree tree;
  for (int i = 0; i < 200; ++i) {
    Tree outer;
    outer.twin = std::make_unique<Tree>(std::move(tree));
    tree = std::move(outer);
  }
  EXPECT_THROW(encode(tree), std::length_error);

  json::value value = {{"name", ""}, {"children", json::array()}};
  for (int i = 0; i < 200; ++i) {
    json::object outer = {{"name", ""}, {"children", json::array()}};
    outer["twin"] = std::move(value);
    value = std::move(outer);
  }
  const auto decoded = decode<Tree>(value);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message, "is more than 128 levels deep");
}

TEST(StructSchema, ThrowsForValuesThatJsonCannotExpress) {
  EXPECT_THROW(encode(std::nan("")), std::domain_error);
  EXPECT_THROW(encode(Point{.y = std::numeric_limits<double>::infinity()}), std::domain_error);
  EXPECT_THROW(encode(static_cast<Color>(1)), std::domain_error);
}

struct Twice {
  std::string a;
  std::string b;
  static auto describe() {
    return sluice::describe(field<&Twice::a>().header("Region"),
                            field<&Twice::b>().header("region"));
  }
};

struct Inside {
  std::vector<Search> searches;
};

struct Nested {
  Search search;
};

TEST(StructSchema, ChecksWhereHeadersAre) {
  EXPECT_THROW(schema_of<Twice>(), std::logic_error);
  EXPECT_THROW(schema_of<Inside>(), std::logic_error);
  EXPECT_NO_THROW(schema_of<Nested>());
}

TEST(StructSchema, BoundsNarrowIntegers) {
  EXPECT_EQ(schema_of<std::int8_t>(), parsed(R"({"type":"integer","minimum":-128,"maximum":127})"));
  EXPECT_EQ(schema_of<unsigned>(), parsed(R"({"type":"integer","minimum":0})"));
  EXPECT_EQ(schema_of<std::optional<int>>(),
            parsed(R"({"anyOf":[{"type":"integer"},{"type":"null"}]})"));
}

}  // namespace
}  // namespace sluice
