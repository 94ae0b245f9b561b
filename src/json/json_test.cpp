#include "json/json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/memory_resource.hpp>

#include "core/text/utf8.hpp"
#include "json/parser.hpp"

namespace sluice {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  append_json_escaped(out, text);
  return out;
}

TEST(JsonEscape, EscapesWhatJsonAsksForAndNothingElse) {
  EXPECT_EQ(escaped("plain"), "plain");
  EXPECT_EQ(escaped("\"\\\n\r\t/"), R"(\"\\\n\r\t/)");
  EXPECT_EQ(escaped(std::string("\0\x01\x08\x0C\x1F\x20\x7F", 7)),
            "\\u0000\\u0001\\u0008\\u000c\\u001f \x7F");
  EXPECT_EQ(escaped("\xC3\xA9\xF0\x9F\x98\x80"), "\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(escaped(""), "");
  std::string out = "before";
  append_json_string(out, "a\"");
  EXPECT_EQ(out, R"(before"a\"")");
}

TEST(JsonText, AnObjectIsWrittenWithoutACopyOfIt) {
  /// Counts what is taken from it.
  struct Counting final : json::memory_resource {
    void* do_allocate(std::size_t size, std::size_t align) override {
      ++count;
      return heap->allocate(size, align);
    }
    void do_deallocate(void* memory, std::size_t size, std::size_t align) override {
      heap->deallocate(memory, size, align);
    }
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
      return this == &other;
    }
    json::storage_ptr heap;
    int count = 0;
  } counting;
  const json::object object({{"a", json::object{{"b", 1}}}, {"c", json::array{}}}, &counting);
  const int before = counting.count;
  EXPECT_GT(before, 0);
  EXPECT_EQ(to_json(object), R"({"a":{"b":1},"c":[]})");
  EXPECT_EQ(counting.count, before);
}

TEST(JsonEscape, IsUndoneByParsing) {
  for (int c = 0; c < 0x80; ++c) {
    for (std::size_t size = 1; size <= 20; ++size) {
      for (std::size_t at = 0; at < size; ++at) {
        std::string text(size, 'x');
        text[at] = static_cast<char>(c);
        const Result<json::value> back = parse_json("\"" + escaped(text) + "\"");
        ASSERT_TRUE(back) << c;
        ASSERT_EQ(back->as_string(), text);
      }
    }
  }
}

TEST(ParseJson, SaysThatHalfASurrogatePairIsNoCharacter) {
  for (const char* const text :
       {R"("a\ud800b")", R"("\uDBFF")", R"("\udc00")", R"("\ud83d\u0041")"}) {
    const Result<json::value> value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_TRUE(value.error().message.contains("half of a surrogate pair"))
        << value.error().message;
  }
  EXPECT_FALSE(parse_json(R"("\u0041)").error().message.contains("surrogate"));
}

TEST(JsonEscape, WritesNothingButUtf8) {
  EXPECT_EQ(escaped("a\xFF\"b"), "a\uFFFD\\\"b");
  EXPECT_EQ(escaped("\xE2\x82\n\xC3\xA9"), "\uFFFD\\n\u00E9");
  EXPECT_EQ(escaped("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate is not a character
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (unsigned n = random() % 8; n > 0; --n) text.push_back(static_cast<char>(random()));
    const Result<json::value> back = parse_json(to_json_string(text));
    ASSERT_TRUE(back);
    std::string expected;
    append_utf8(expected, text);
    ASSERT_EQ(back->as_string(), expected);
    ASSERT_TRUE(is_valid_utf8(expected));
  }
}

TEST(JsonError, IsJsonWhateverItsDataAre) {
  const auto text = [](std::string data) {
    std::string out;
    append_json_error(out, Error{-1, "m\xFF", std::move(data)});
    return out;
  };
  EXPECT_EQ(text(""), "{\"code\":-1,\"message\":\"m\uFFFD\"}");
  EXPECT_EQ(text("{\"a\":\r\n12345678901234567890123}"),
            "{\"code\":-1,\"message\":\"m\uFFFD\",\"data\":{\"a\":  12345678901234567890123}}");
  EXPECT_EQ(text("not\njson"), "{\"code\":-1,\"message\":\"m\uFFFD\",\"data\":\"not\\njson\"}");
  for (const std::size_t levels : {kMaxNestedDepth, kMaxNestedDepth + 1}) {
    const Result<json::value> whole =
        parse_json(text(std::string(levels, '[') + std::string(levels, ']')));
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->at("data").is_string(), levels > kMaxNestedDepth);
  }
  EXPECT_EQ(text("1,\"x\":2"), "{\"code\":-1,\"message\":\"m\uFFFD\",\"data\":\"1,\\\"x\\\":2\"}");
}

TEST(JsonText, IsKnownToBeTooLongBeforeItIsWritten) {
  for (const char* text :
       {"1", "\"abc\"", "[]", "[1,2,3]", R"({"a":1,"bc":[{}]})", "[[],[],[null]]"}) {
    const json::value value = parse_json(text).value();
    const std::string written = to_json(value);
    EXPECT_FALSE(is_longer_than(value, written.size())) << text;
  }
  EXPECT_TRUE(is_longer_than(parse_json("[1,2,3]").value(), 6));
  EXPECT_TRUE(is_longer_than(parse_json(R"({"a":1,"bc":2})").value(), 12));
  EXPECT_TRUE(is_longer_than(json::value(json::string(100, 'x')), 101));
}

TEST(JsonValue, IsMeasuredAsTheParserCounts) {
  JsonParser parser;
  for (const char* const text : {"1", "\"abc\"", "[]", "{}", R"({"a":1,"bc":[{},"x",[[null]]]})"}) {
    const auto value = parser.parse(text);
    ASSERT_TRUE(value);
    EXPECT_EQ(size_of(*value).values, parser.values()) << text;
    EXPECT_GT(size_of(*value, parser.values() - 1).values, parser.values() - 1) << text;
  }
  EXPECT_EQ(size_of(parse_json(R"({"a":1,"bc":[{},"defg"]})").value()).bytes, 7U);
}

TEST(JsonValue, IsKnownToBeTooDeepWithoutRecursion) {
  EXPECT_FALSE(is_deeper_than("text", 0));
  EXPECT_TRUE(is_deeper_than(json::array(), 0));
  for (const char* const text : {R"([1,{"a":{"b":2}},3])", R"({"a":1,"b":[[]],"c":[1]})"}) {
    const json::value value = parse_json(text).value();
    EXPECT_FALSE(is_deeper_than(value, 3)) << text;
    EXPECT_TRUE(is_deeper_than(value, 2)) << text;
  }
  json::value deep;
  for (int i = 0; i < 10'000; ++i) deep = json::array{std::move(deep)};
  EXPECT_TRUE(is_deeper_than(deep, 9'999));
}

TEST(JsonNumber, IsWrittenInFull) {
  std::string out;
  append_number(out, std::numeric_limits<std::int64_t>::min());
  out.push_back(' ');
  append_number(out, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(out, "-9223372036854775808 18446744073709551615");
}

TEST(JsonText, GoesThereAndBack) {
  for (const std::string_view text :
       {"null", "true", "false", "0", "-1", "9007199254740993", "18446744073709551615",
        "-9223372036854775808", "\"\"", "\"a\\n\\\"\"", "[]", "{}", "[[],{},[null]]",
        R"({"a":1,"b":[1,2.5,"x"],"c":{"d":null}})", R"({"\"":1})"}) {
    const Result<json::value> value = parse_json(text);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(to_json(*value), text);
  }
}

/// The bits of the double that `text` is parsed to.
std::uint64_t bits_of(const std::string& text) {
  const Result<json::value> value = parse_json(text);
  return value && value->is_number() ? std::bit_cast<std::uint64_t>(value->to_number<double>()) : 1;
}

/// Expects that `number` is parsed exactly, both as we write it and with more digits than needed,
/// as others write it.
void expect_exact(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  ASSERT_EQ(bits_of(to_json(json::value(number))), bits) << number;
  std::array<char, 64> digits;
  std::snprintf(digits.data(), digits.size(), "%.20e", number);
  ASSERT_EQ(bits_of(digits.data()), bits) << digits.data();
}

void expect_exact_doubles(int count) {
  std::mt19937_64 random(1);
  for (int i = 0; i < count; ++i) {
    expect_exact(std::uniform_real_distribution<double>(0, 1000)(random));
    const auto any = std::bit_cast<double>(random());
    if (std::isfinite(any)) expect_exact(any);
  }
}

TEST(JsonText, WritesDoublesSoThatTheyComeBackTheSame) {
  for (const double number :
       {0.0, -0.0, 0.1, -2.5, 1e300, 5e-324, 2.2250738585072011e-308, 1.0 / 3, 123456789.125, 1e21,
        934.5146729745181, std::numeric_limits<double>::max()}) {
    expect_exact(number);
  }
  expect_exact_doubles(100'000);
}

// Integers of every length, up to the limits of 64 bits, and beyond them as doubles.
TEST(JsonText, IntegersComeBackTheSame) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t natural = random() >> random() % 64;
    const std::string text = std::to_string(natural);
    const Result<json::value> value = parse_json(text);
    ASSERT_TRUE(value) << text;
    ASSERT_EQ(value->to_number<std::uint64_t>(), natural);
    ASSERT_EQ(to_json(*value), text);
    const auto negative = -static_cast<std::int64_t>(natural >> 1U);
    const Result<json::value> below = parse_json(std::to_string(negative));
    ASSERT_TRUE(below && below->is_int64()) << negative;
    ASSERT_EQ(below->get_int64(), negative);
    ASSERT_EQ(to_json(*below), std::to_string(negative));
    const std::string beyond = "9" + std::to_string(random() | std::uint64_t{1} << 63U);
    ASSERT_EQ(bits_of(beyond), std::bit_cast<std::uint64_t>(std::strtod(beyond.c_str(), nullptr)));
  }
}

// Run in the test stage unit of the optimised build alone, because it takes long.
TEST(JsonText, DISABLED_WritesMillionsOfDoublesSoThatTheyComeBackTheSame) {
  expect_exact_doubles(5'000'000);
}

TEST(JsonText, ReadsWhatHasFewDigitsAsTheCLibraryDoes) {
  for (int exponent = -330; exponent <= 310; ++exponent) {
    for (int mantissa = 1; mantissa < 1000; mantissa += mantissa < 100 ? 1 : 7) {
      const std::string text = std::to_string(mantissa) + "e" + std::to_string(exponent);
      ASSERT_EQ(bits_of(text), std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
          << text;
    }
  }
}

TEST(JsonText, ReadsExponentsOfAnySizeAsTheCLibraryDoes) {
  std::mt19937_64 random(1);
  const auto digits = [&](std::size_t most) {
    std::string out;
    for (std::size_t left = 1 + random() % most; left > 0; --left) {
      out.push_back(static_cast<char>('0' + random() % 10));
    }
    return out;
  };
  for (int i = 0; i < 100'000; ++i) {
    std::string text = random() % 2 == 0 ? "-" : "";
    text += random() % 4 == 0 ? "0" : std::to_string(random() % 1000);
    if (random() % 2 == 0) text += "." + (random() % 4 == 0 ? "000" : digits(20));
    const std::array<std::string, 6> marks = {"e", "E", "e+", "E+", "e-", "E-"};
    text += marks[random() % marks.size()];
    if (random() % 2 == 0) text += std::string(random() % 30, '0');
    text += digits(25);
    ASSERT_EQ(bits_of(text), std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
        << text;
  }
}

// A peer may send 1e999. What is written for it must still be JSON.
TEST(JsonText, HasNoWordForWhatIsNotFinite) {
  EXPECT_EQ(to_json(json::value(std::nan(""))), "null");
  EXPECT_EQ(to_json(json::value(std::numeric_limits<double>::infinity())), "null");
  const Result<json::value> huge = parse_json("[1e999,-1e999]");
  ASSERT_TRUE(huge);
  EXPECT_EQ(to_json(*huge), "[null,null]");
}

TEST(JsonParse, RefusesWhatIsNotJson) {
  for (const std::string_view text : {"",
                                      " ",
                                      "nul",
                                      "NaN",
                                      "[NaN]",
                                      "Infinity",
                                      "-",
                                      "01",
                                      "1.",
                                      "+1",
                                      ".5",
                                      "0x1",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "'a'",
                                      "1 2",
                                      "[1]]",
                                      "// c\n1",
                                      "/**/1",
                                      "\"\t\"",
                                      "\"\\x\"",
                                      "\"abc",
                                      "\"\\ud800\"",
                                      "\xEF\xBB\xBF"
                                      "1",
                                      "{\"a\"}",
                                      "[",
                                      "{\"a\":"}) {
    const Result<json::value> value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, -32700);
    EXPECT_NE(value.error().message.find("at byte"), std::string::npos);
  }
}

/// 2^16 keys of one length that Boost.JSON's own hash puts into one bucket. Their FNV-1a hashes end
/// with the same 16 bits if the salt ends with 0x10, as the address of a large block does.
std::vector<std::string> colliding_keys() {
  constexpr std::size_t kCount = 1U << 16U;
  constexpr std::uint64_t kPrime = 0x100000001B3;
  constexpr std::uint64_t kMask = kCount - 1;
  std::uint64_t inverse = 1;  // of the prime, to compute backwards from a key's end
  for (int i = 0; i < 6; ++i) inverse *= 2 - kPrime * inverse;
  constexpr std::uint64_t kLetters = 64;  // from '?' on, without the backslash
  const auto letters = [](std::uint64_t number) {
    std::string text;
    for (int i = 0; i < 3; ++i, number /= kLetters) {
      const char letter = static_cast<char>('?' + number % kLetters);
      text.push_back(letter == '\\' ? '!' : letter);
    }
    return text;
  };
  std::vector<std::vector<std::string>> starts(kCount);
  for (std::uint64_t n = 0; n < kLetters * kLetters * kLetters; ++n) {
    std::uint64_t hash = 0xcbf29ce484222325 + 0x10;
    for (const char c : letters(n)) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    starts[hash & kMask].push_back(letters(n));
  }
  std::vector<std::string> keys;
  for (std::uint64_t n = 0; keys.size() < kCount; ++n) {
    const std::string end = letters(n);
    std::uint64_t hash = 0;
    for (const char c : {end[2], end[1], end[0]}) {
      hash = (hash * inverse) ^ static_cast<unsigned char>(c);
    }
    for (const std::string& start : starts[hash & kMask]) keys.push_back(start + end);
  }
  keys.resize(kCount);
  return keys;
}

TEST(JsonParse, TakesKeysThatAreMadeToCollideAsQuicklyAsOthers) {
  const auto time_of = [](const std::vector<std::string>& keys) {
    std::string text;
    for (const std::string& key : keys)
      text.append(text.empty() ? "{" : ",").append(to_json_string(key)).append(":0");
    text.push_back('}');
    auto shortest = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const Result<json::value> value = parse_json(text);
      EXPECT_EQ(value->as_object().size(), keys.size());
      EXPECT_TRUE(value->as_object().contains(keys.back()));
      shortest = std::min(shortest, std::chrono::steady_clock::now() - start);
    }
    return shortest;
  };
  std::vector<std::string> keys = colliding_keys();
  const auto chosen = time_of(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::to_string(100'000 + i);
  EXPECT_LT(chosen, 20 * time_of(keys));
}

TEST(JsonParse, RefusesInvalidUtf8InStringsAndKeys) {
  for (const std::string_view bad : {"\xFF", "\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                     "\xE2\x82", "\xF0\x9F\x98"}) {
    EXPECT_FALSE(parse_json("\"" + std::string(bad) + "\""));
    EXPECT_FALSE(parse_json("{\"" + std::string(bad) + "\":1}"));
  }
}

TEST(JsonParse, KeepsIntegersExactAsFarAsTheyFit) {
  EXPECT_EQ(parse_json("9007199254740993")->as_int64(), 9007199254740993);
  EXPECT_EQ(parse_json("18446744073709551615")->as_uint64(), 18446744073709551615U);
  EXPECT_TRUE(parse_json("18446744073709551616")->is_double());
  EXPECT_TRUE(parse_json("-9223372036854775809")->is_double());
  EXPECT_EQ(to_json(*parse_json("-0")), "-0");
}

TEST(JsonParse, ReadsTheNearestDouble) {
  const std::string zeros(400, '0');
  struct {
    std::string text;
    double value;
  } const cases[] = {
      {"0e400", 0},
      {"-0e999999999", -0.0},
      {"0.0e-400", 0},
      {"0e999999999999", 0},
      {"1e-99999999999999999999", 0},
      {"-1e-99999999999999999999", -0.0},
      {"1e99999999999999999999", std::numeric_limits<double>::infinity()},
      {"1e-00000000000000000002", 0.01},
      {"1e-400", 0},
      {"-1e-400", -0.0},
      {"2.4703282292062328e-324", 5e-324},  // just above half of the smallest double
      {"2.4703282292062327e-324", 0},
      {"1.7976931348623157e308", std::numeric_limits<double>::max()},
      {"1.7976931348623159e308", std::numeric_limits<double>::infinity()},
      {"1e400", std::numeric_limits<double>::infinity()},
      {"-1e400", -std::numeric_limits<double>::infinity()},
      {"1" + zeros, std::numeric_limits<double>::infinity()},
      {"1" + zeros + "e-400", 1},
      {"0." + zeros + "1e401", 1},
      {"0." + zeros + "1", 0},
      {"18446744073709551616", 18446744073709551616.0},
      {"9007199254740993.0", 9007199254740992.0},
      {"9007199254740993.00000000000000000000001", 9007199254740994.0},
  };
  for (const auto& [text, value] : cases) {
    EXPECT_EQ(bits_of(text), std::bit_cast<std::uint64_t>(value)) << text;
  }
}

TEST(JsonParse, LongExponentsChangeNothingElse) {
  const std::string text =
      R"({"1e999999999999":["1e999999999999\\",1e-999999999999,"\"2E999999999999",0e999999999999]})";
  EXPECT_EQ(to_json(parse_json(text).value()),
            R"({"1e999999999999":["1e999999999999\\",0,"\"2E999999999999",0]})");
  for (const char* const bad :
       {"[1e999999999999,x]", "[1e999999999999]]", "[1e999999999999.5]", "1e9999999999999e1",
        "[e9999999999999]", "1e-", "[1e+999999999999", "tru1e999999999999"}) {
    EXPECT_FALSE(parse_json(bad).has_value()) << bad;
  }
  EXPECT_EQ(parse_json("[1e999999999999,x]").error().message,
            "Parse error: syntax error at byte 16 of the JSON text");
}

std::string nested(std::size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text.append(open);
  text.append("1");
  for (std::size_t i = 0; i < depth; ++i) text.append(close);
  return text;
}

TEST(JsonParse, GoesAsDeepAsItMayAndNoFurther) {
  for (const auto& [open, close] :
       {std::pair("[", "]"), std::pair("{\"a\":", "}"), std::pair("[{\"a\":", "}]")}) {
    const std::size_t levels = std::string_view(open).starts_with("[{") ? 2 : 1;
    EXPECT_TRUE(parse_json(nested(kMaxJsonDepth / levels, open, close)));
    for (const std::size_t depth : {kMaxJsonDepth / levels + 1, std::size_t{10000}}) {
      const Result<json::value> deep = parse_json(nested(depth, open, close));
      ASSERT_FALSE(deep);
      EXPECT_EQ(deep.error().code, -32700);
      EXPECT_NE(deep.error().message.find("deep"), std::string::npos);
    }
  }
  EXPECT_FALSE(parse_json(std::string(10000000, '[')));
}

TEST(JsonSame, NumbersAreComparedByWhatTheyStandFor) {
  const auto is_same = [](std::string_view one, std::string_view other) {
    EXPECT_EQ(is_same_json(one, other), is_same_json(other, one)) << one << " " << other;
    return is_same_json(one, other);
  };
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"1", "1.0"},
           {R"({"a":[1e2,{"b":2.0}],"c":0})", R"({"c": -0.0, "a": [100, {"b": 2}]})"},
           {"-9223372036854775808", "-9223372036854775808.0"},
           {"9223372036854775808", "9223372036854775808.0"},
           {"1.5", "15e-1"}}) {
    EXPECT_TRUE(is_same(one, other)) << one << " " << other;
  }
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"1", "1.5"},
           {"1", "true"},
           {"1", "\"1\""},
           {"-1", "18446744073709551615"},
           {"9007199254740993", "9007199254740992.0"},
           {"9223372036854775807", "9223372036854775808.0"},
           {"18446744073709551615", "18446744073709551616.0"},
           {"1", "1e300"},
           {"[1]", "[1,1]"},
           {R"({"a":1})", R"({"a":1,"b":1})"},
           {R"({"a":1})", R"({"b":1})"}}) {
    EXPECT_FALSE(is_same(one, other)) << one << " " << other;
  }
}

}  // namespace
}  // namespace sluice
