// Tests of what a struct may contain and still be encoded, or encoded and decoded.

#include <atomic>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "sluice/schema.hpp"

namespace edge {

struct A {
  int a;
};
struct B {
  std::string b;
};
/// Found by argument-dependent lookup for a variant of these types.
template <class F, class V>
int visit(F&&, const V&) {
  return 42;
}

/// A type that can only be encoded.
class Id {
 public:
  explicit Id(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

enum class Http : int { ok = 200, missing = 404 };

/// An expression, whose kind stands behind what is nested in it.
struct Expression;
struct Negation {
  std::unique_ptr<Expression> of;
  sluice::Literal<"neg"> kind;
};
struct Root {
  std::unique_ptr<Expression> of;
  sluice::Literal<"sqrt"> kind;
};
struct Expression {
  std::variant<Negation, Root, double> value;
};

/// Alternatives that only what is nested in them tells apart.
struct Either;
struct One {
  std::unique_ptr<Either> of;
};
struct Other {
  std::unique_ptr<Either> of;
};
struct Either {
  std::variant<One, Other, double> value;
};

}  // namespace edge

namespace sluice {

template <>
struct Codec<edge::Id> {
  static json::value schema(SchemaBuilder&) { return {{"type", "integer"}}; }
  static json::value encode(const edge::Id& value, Encoder&) { return value.number(); }
};

template <>
struct Codec<edge::Http> {
  static json::value schema(SchemaBuilder&) { return {{"type", "integer"}}; }
  static bool decode(const json::value& value, edge::Http& out, Decoder& decoder) {
    if (!value.is_int64()) return decoder.fail_type("integer", value);
    out = static_cast<edge::Http>(value.get_int64());
    return true;
  }
  static json::value encode(edge::Http value, Encoder&) {
    if (value != edge::Http::ok && value != edge::Http::missing) throw std::domain_error("Http");
    return static_cast<int>(value);
  }
};

template <>
struct Codec<std::atomic<int>> {
  static json::value schema(SchemaBuilder&) { return {{"type", "integer"}}; }
  static bool decode(const json::value& value, std::atomic<int>& out, Decoder& decoder) {
    int number = 0;
    if (!Codec<int>::decode(value, number, decoder)) return false;
    out = number;
    return true;
  }
  static json::value encode(const std::atomic<int>& value, Encoder&) { return value.load(); }
};

namespace {

json::value edge_json(std::string_view text) {
  return parse_json(text).value();
}

enum class EdgeLevel { low = 1, high = 2 };

struct Unencodable {
  double value = std::numeric_limits<double>::quiet_NaN();
  EdgeLevel level = static_cast<EdgeLevel>(9);
};

struct Leafy {
  int v = 0;
  std::vector<Leafy> kids = leaves();
  static std::vector<Leafy> leaves() {
    std::vector<Leafy> out;
    out.push_back(Leafy{.v = 7, .kids = {}});
    return out;
  }
};

struct Exemplified {
  int v;
  std::unique_ptr<Exemplified> next;
  static auto describe() {
    return sluice::describe(
        field<&Exemplified::next>().examples({encode(Exemplified{.v = 3, .next = nullptr})}));
  }
};

struct Remembering {
  int v = 0;
  json::value first = example();
  static json::value example() { return encode(Remembering{.v = 1, .first = nullptr}); }
};

TEST(StructSchemaEdge, EncodesWithoutInitialisersAndDescriptions) {
  EXPECT_EQ(encode(Unencodable{.value = 1.5, .level = EdgeLevel::low}),
            edge_json(R"({"value":1.5,"level":"low"})"));
  EXPECT_EQ(encode(Leafy{.v = 1, .kids = {}}), edge_json(R"({"v":1,"kids":[]})"));
  EXPECT_EQ(schema_of<Exemplified>().at("properties").at("next").at("examples"),
            edge_json(R"([{"v":3}])"));
  EXPECT_TRUE(decode<Exemplified>(edge_json(R"({"v":1,"next":{"v":2}})")));
  EXPECT_EQ(encode(Remembering()), edge_json(R"({"v":0,"first":{"v":1,"first":null}})"));
  EXPECT_EQ(decode<Remembering>(edge_json(R"({"v":2})"))->first.at("v"), 1);
}

struct Named {
  int a;
  static auto describe() {
    auto&& said =
        field<&Named::a>("A description that is too long to be stored in place").minimum(1);
    return sluice::describe(said);
  }
};

/// `depth` times `before`, then `inmost`, then as many times `after`.
json::value nested(std::size_t depth, std::string_view before, std::string_view inmost,
                   std::string_view after) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += before;
  text += inmost;
  for (std::size_t i = 0; i < depth; ++i) text += after;
  return parse_json(text).value();
}

TEST(StructSchemaEdge, TellsNestedAlternativesApartAtOnce) {
  constexpr std::size_t kDepth = 60;
  const json::value value =
      nested(kDepth, R"({"value":{"of":)", R"({"value":1.5})", R"(,"kind":"sqrt"}})");
  const auto decoded = decode<edge::Expression>(value);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode(*decoded), value);
  for (const SchemaUse use : {SchemaUse::decoding, SchemaUse::encoding}) {
    const auto schema = JsonSchema::compile(schema_of<edge::Expression>(use));
    ASSERT_TRUE(schema);
    EXPECT_TRUE(schema->validate(value, 10'000));
  }
}

TEST(StructSchemaEdge, WastesLittleOnAlternativesThatFail) {
  const auto decoded =
      decode<edge::Either>(nested(60, R"({"value":{"of":)", R"({"value":"one"})", "}}"));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message,
            "cannot be read: too many alternatives fit a part of it, but not the rest");
  EXPECT_EQ((decode<std::variant<edge::A, edge::B, double>>("x").error().message),
            "expected object or number, got string");
  // In a large value, as much may fail as in many small ones.
  const std::string_view item = R"({"b":"x"},)";
  std::string items;
  for (int i = 0; i < 20'000; ++i) items += item;
  items.pop_back();
  using Items = std::vector<std::variant<int, bool, std::string, edge::A, edge::B>>;
  EXPECT_TRUE(decode<Items>(parse_json("[" + items + "]").value()));
}

TEST(StructSchemaEdge, RefusesKeysThatCollide) {
  struct Constant {
    std::size_t operator()(const std::string& /*key*/) const { return 7; }
  };
  const auto fill = [](int keys) {
    json::object map;
    json::array set;
    for (int i = 0; i < keys; ++i) {
      map[std::to_string(i)] = i;
      set.emplace_back(std::to_string(i));
    }
    return std::pair(json::value(map), json::value(set));
  };
  using Map = std::unordered_map<std::string, int, Constant>;
  using Set = std::unordered_set<std::string, Constant>;
  const auto [map, set] = fill(65);
  EXPECT_EQ(decode<Map>(map).error().message, "too many keys have the same hash");
  EXPECT_EQ(decode<Set>(set).error().message, "too many keys have the same hash");
  const auto [small_map, small_set] = fill(64);
  EXPECT_TRUE(decode<Map>(small_map));
  EXPECT_TRUE(decode<Set>(small_set));
  const auto [large_map, large_set] = fill(10'000);
  EXPECT_TRUE((decode<std::unordered_map<std::string, int>>(large_map)));
  EXPECT_TRUE(decode<std::unordered_set<std::string>>(large_set));
}

TEST(StructSchemaEdge, LetsAFieldHaveAName) {
  EXPECT_EQ(schema_of<Named>().at("properties").at("a").at("minimum"), 1);
}

TEST(StructSchemaEdge, EncodesAVariantWhateverItsNamespaceCallsVisit) {
  const std::variant<edge::A, edge::B, edge::A> value(std::in_place_index<2>, edge::A{.a = 3});
  EXPECT_EQ(encode(value), edge_json(R"({"a":3})"));
}

struct Unaddressable {
  int a = 1;
  Unaddressable* operator&() { return nullptr; }              // NOLINT(google-runtime-operator)
  const Unaddressable* operator&() const { return nullptr; }  // NOLINT(google-runtime-operator)
};
struct HasUnaddressable {
  Unaddressable one;
  std::optional<Unaddressable> maybe;
  std::vector<Unaddressable> more;
  std::variant<int, Unaddressable> either;
};

TEST(StructSchemaEdge, TakesTheAddressesOfWhatOverloadsIt) {
  schema_of<HasUnaddressable>();
  const json::value value =
      edge_json(R"({"one":{"a":2},"maybe":{"a":3},"more":[{"a":4}],"either":{"a":5}})");
  EXPECT_EQ(encode(*decode<HasUnaddressable>(value)), value);
}

struct HasHttp {
  edge::Http zero;
  edge::Http preset = edge::Http::ok;
};

TEST(StructSchemaEdge, DoesNotEncodeTheZeroOfAnEnumThatHasACodec) {
  EXPECT_EQ(schema_of<HasHttp>(), edge_json(R"({"type":"object","properties":{
    "zero":{"type":"integer"},"preset":{"type":"integer","default":200}},"required":["zero"],
    "additionalProperties":false})"));
  EXPECT_TRUE(decode<HasHttp>(edge_json(R"({"zero":404})")));
}

struct OnlyWritten {
  const int constant = 3;
  std::shared_ptr<const edge::A> shared;
  std::optional<const double> maybe;
  std::optional<edge::Id> id;
  std::vector<edge::Id> ids;
  std::map<std::string, edge::Id> by_name;
  std::variant<int, edge::Id> either;
  std::atomic<int> count = 0;
};

TEST(StructSchemaEdge, EncodesWhatCannotBeDecoded) {
  EXPECT_EQ(schema_of<OnlyWritten>().at("required"),
            edge_json(R"(["ids","by_name","either","count"])"));
  const OnlyWritten value{.constant = 4,
                          .shared = std::make_shared<edge::A>(edge::A{.a = 1}),
                          .maybe = 0.5,
                          .id = edge::Id(2),
                          .ids = {edge::Id(3)},
                          .by_name = {{"a", edge::Id(4)}},
                          .either = edge::Id(5),
                          .count = 6};
  EXPECT_EQ(encode(value), edge_json(R"({"constant":4,"shared":{"a":1},"maybe":0.5,"id":2,
                                         "ids":[3],"by_name":{"a":4},"either":5,"count":6})"));
  static_assert(!detail::readable<OnlyWritten>() && detail::readable<HasUnaddressable>());
  EXPECT_THROW(decode<std::vector<std::unique_ptr<OnlyWritten>>>(edge_json("[{}]")),
               std::logic_error);
}

TEST(StructSchemaEdge, KeepsWhatWasDecodedBeforeAFailure) {
  Decoder decoder(UnknownMembers::reject);
  std::vector<int> numbers = {9, 9, 9};
  EXPECT_FALSE(Codec<std::vector<int>>::decode(edge_json(R"([1,2,"x",4])"), numbers, decoder));
  EXPECT_EQ(numbers, (std::vector{1, 2}));
  Decoder second(UnknownMembers::reject);
  std::optional<int> maybe = 5;
  EXPECT_FALSE(Codec<std::optional<int>>::decode(edge_json(R"("no")"), maybe, second));
  EXPECT_EQ(maybe, 5);
}

}  // namespace
}  // namespace sluice
