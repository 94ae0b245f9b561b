#include "engine/answer/answer_reader.hpp"

#include <gtest/gtest.h>

#include "engine/answer/answer_test_support.hpp"

namespace sluice {
namespace {

using test::read_answer;

/// Parses "R:why;T:text;C:call", a format that needs a parser.
class ToyParser final : public AnswerParser {
 public:
  std::optional<ParsedAnswer> parse(const std::string& raw, bool whole) override {
    ParsedAnswer answer;
    std::string_view rest = raw;
    while (!rest.empty()) {
      const auto end = rest.find(';');
      const std::string_view part = rest.substr(0, end);
      if (part.starts_with("R:")) answer.reasoning += part.substr(2);
      if (part.starts_with("T:")) answer.text += part.substr(2);
      if (part.starts_with("C:") && (whole || end != std::string_view::npos)) {
        answer.tool_calls.push_back({.name = "toy", .json = std::string(part.substr(2))});
      }
      if (part.starts_with("C:") && !whole) answer.begins_call = true;
      if (part.starts_with("X")) return std::nullopt;
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return answer;
  }
};

TEST(AnswerReader, JoinsBytesIntoCharacters) {
  EXPECT_EQ(read_answer({}, {"a\xF0\x9F", "\x98\x80", "b"}).text, "a😀b");
  EXPECT_EQ(read_answer({}, {"a\xF0\x9F"}).text, "a\uFFFD");
}

TEST(AnswerReader, AStopStringEndsTheTextAcrossTokens) {
  const auto result = read_answer({.stops = {"END"}}, {"one ", "E", "N", "Dtwo"});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.text, "one ");
}

TEST(AnswerReader, WhatWasHeldComesOutAtTheEnd) {
  const auto result = read_answer({.stops = {"END"}}, {"one ", "EN"});
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.text, "one EN");
}

TEST(AnswerReader, AStopStringDoesNotEndTheReasoning) {
  const auto result = read_answer({.stops = {"\n\n"}}, {"<think>a\n\nb</think>", "c\n", "\nd"});
  EXPECT_EQ(result.reasoning, "a\n\nb");
  EXPECT_EQ(result.text, "c");
  EXPECT_TRUE(result.stopped);
}

TEST(AnswerReader, ARawStopEndsAnything) {
  const auto result = read_answer({.raw_stops = {"<|eot|>"}}, {"<think>a<|e", "ot|>b"});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.reasoning, "a");
  EXPECT_EQ(result.text, "");
}

TEST(AnswerReader, FollowsAParserAsItsTextGrows) {
  const auto result = read_answer({.parser = std::make_unique<ToyParser>()},
                                  {"R:w", "hy;T", ":he", "llo;C:{\"name\":1};C:2"});
  EXPECT_EQ(result.reasoning, "why");
  EXPECT_EQ(result.text, "hello");
  EXPECT_EQ(result.calls, (std::vector<std::string>{"{\"name\":1}", "2"}));
  ASSERT_EQ(result.heads.size(), 2U);
  EXPECT_EQ(result.heads[0].name, "toy");
  EXPECT_NE(result.heads[0].id, result.heads[1].id);
  EXPECT_EQ(result.ending, AnswerReader::Ending::calls);
}

TEST(AnswerReader, ATruncatedAnswerHasNoToolCalls) {
  const auto result =
      read_answer({.parser = std::make_unique<ToyParser>()}, {"T:hello;C:{\"na"}, false);
  EXPECT_EQ(result.text, "hello");
  EXPECT_TRUE(result.calls.empty());
  EXPECT_EQ(result.ending, AnswerReader::Ending::cut_call);
}

TEST(AnswerReader, StopStringsHoldInParsedTextToo) {
  const auto result = read_answer({.stops = {"lo"}, .parser = std::make_unique<ToyParser>()},
                                  {"T:hel", "lo w", "orld"});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.text, "hel");
}

TEST(AnswerReader, KeepsWhatCameBeforeTheFormatBroke) {
  const auto result = read_answer({.parser = std::make_unique<ToyParser>()}, {"T:ok;", "X"});
  EXPECT_EQ(result.text, "ok");
  EXPECT_EQ(result.ending, AnswerReader::Ending::text);
}

TEST(AnswerReader, ACallThatIsCutOffIsToldFromText) {
  const auto ending = [](std::string text, bool whole) {
    return read_answer({.parser = std::make_unique<ToyParser>()}, {std::move(text)}, whole).ending;
  };
  EXPECT_EQ(ending("T:yes;C:one", true), AnswerReader::Ending::calls);
  EXPECT_EQ(ending("T:yes;C:on", false), AnswerReader::Ending::cut_call);
  EXPECT_EQ(ending("C:one;T:and", false), AnswerReader::Ending::cut_call);
  EXPECT_EQ(ending("T:ye", false), AnswerReader::Ending::text);
  EXPECT_EQ(ending("T:yes", true), AnswerReader::Ending::text);
}

TEST(AnswerReader, ManyCallsAreNotParsedAnewWithEachPiece) {
  /// Counts the bytes that it is given.
  class CountingParser final : public AnswerParser {
   public:
    explicit CountingParser(std::size_t& bytes) : bytes_(&bytes) {}
    std::optional<ParsedAnswer> parse(const std::string& raw, bool /*whole*/) override {
      *bytes_ += raw.size();
      ParsedAnswer answer;
      answer.has_calls = true;
      return answer;
    }

   private:
    std::size_t* bytes_;
  };
  std::size_t bytes = 0;
  const std::vector<std::string> pieces(1000, "C:call;");
  read_answer({.parser = std::make_unique<CountingParser>(bytes)}, pieces);
  EXPECT_LT(bytes, 20 * 1000 * pieces.front().size());
}

TEST(AnswerReader, KnowsWhetherItIsInTheText) {
  const auto in_text = [](AnswerReader::Options options, std::string_view bytes) {
    AnswerReader reader(std::move(options));
    std::vector<Delta> out;
    reader.push(bytes, out);
    return reader.is_in_text();
  };
  const auto with_parser = [&](std::string_view bytes) {
    return in_text({.parser = std::make_unique<ToyParser>()}, bytes);
  };
  EXPECT_TRUE(with_parser("T:ye"));
  EXPECT_FALSE(with_parser("T:yes;C:on"));
  EXPECT_FALSE(with_parser(""));
  EXPECT_TRUE(in_text({}, "yes"));
  EXPECT_FALSE(in_text({}, "<think>per"));
  EXPECT_TRUE(in_text({}, "<think>perhaps</think>yes"));
}

}  // namespace
}  // namespace sluice
