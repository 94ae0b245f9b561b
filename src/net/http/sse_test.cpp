#include "net/http/sse.hpp"

#include <algorithm>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;

struct Received {
  std::string type;
  std::string data;
  std::string id;
  bool operator==(const Received&) const = default;
  friend void PrintTo(const Received& event, std::ostream* out) {
    *out << event.type << " '" << event.data << "' id '" << event.id << "'";
  }
};

struct Reader {
  SseDecoder decoder;
  std::vector<Received> events;
  Result<void> feed(std::string_view bytes) {
    return decoder.feed(bytes, [this](const SseEvent& event) {
      events.push_back(
          {std::string(event.type), std::string(event.data), std::string(event.last_event_id)});
    });
  }
};

std::vector<Received> decode(std::string_view text) {
  Reader reader;
  EXPECT_TRUE(reader.feed(text));
  return reader.events;
}

TEST(AppendSse, WritesTheIdTheTypeAndEachLineOfTheData) {
  std::string out;
  append_sse_event(out, "7", "a\nb\r\nc\rd", "note");
  EXPECT_EQ(out, "event: note\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n");
}

TEST(AppendSse, WritesANumberAsId) {
  std::string out;
  append_sse_event(out, std::uint64_t{18446744073709551615U}, "x");
  EXPECT_EQ(out, "id: 18446744073709551615\ndata: x\n\n");
}

TEST(AppendSse, EmptyDataIsStillAnEvent) {
  std::string out;
  append_sse_event(out, "1", "");
  EXPECT_EQ(out, "id: 1\ndata: \n\n");
  EXPECT_THAT(decode(out), ElementsAre(Received{"message", "", "1"}));
}

TEST(AppendSse, ACommentStaysOnOneLine) {
  std::string out;
  append_sse_comment(out);
  append_sse_comment(out, "a\ndata: b");
  EXPECT_EQ(out, ":\n\n: a data: b\n\n");
  EXPECT_THAT(decode(out), ElementsAre());
}

TEST(AppendSse, RetryReachesTheReader) {
  std::string out;
  append_sse_retry(out, 1500);
  Reader reader;
  ASSERT_TRUE(reader.feed(out));
  EXPECT_EQ(reader.decoder.retry_milliseconds(), 1500U);
}

TEST(AppendSse, WhatIsWrittenIsReadBack) {
  for (const std::string_view data : {"", " ", "a", "\n", "a\n", "\n\nb", ": x", "data: y"}) {
    std::string out;
    append_sse_event(out, "i", data, "t");
    EXPECT_THAT(decode(out), ElementsAre(Received{"t", std::string(data), "i"}));
  }
}

// If each line were searched for to the end of the text, this would take minutes.
TEST(AppendSse, ALineEndCostsTheSameWhateverItIs) {
  for (const std::string_view end : {"\r", "\n", "\r\n"}) {
    std::string data;
    while (data.size() < 2'000'000) data.append(end);
    std::string out;
    append_sse_event(out, "", data);
    EXPECT_EQ(std::ranges::count(out, '\n'),
              static_cast<std::ptrdiff_t>(data.size() / end.size() + 2));
    Reader reader{.decoder = SseDecoder(), .events = {}};
    EXPECT_TRUE(reader.feed(data));
  }
}

TEST(SseDecoder, TakesAllThreeLineEnds) {
  EXPECT_THAT(decode("data: a\n\ndata: b\r\n\r\ndata: c\r\r"),
              ElementsAre(Received{"message", "a", ""}, Received{"message", "b", ""},
                          Received{"message", "c", ""}));
}

TEST(SseDecoder, FollowsTheStandardsExamples) {
  // WHATWG HTML, section 9.2.6.
  EXPECT_THAT(decode("data: YHOO\ndata: +2\ndata: 10\n\n"),
              ElementsAre(Received{"message", "YHOO\n+2\n10", ""}));
  EXPECT_THAT(
      decode(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
             "data:  third event\n\n"),
      ElementsAre(Received{"message", "first event", "1"}, Received{"message", "second event", ""},
                  Received{"message", " third event", ""}));
  EXPECT_THAT(decode("data\n\ndata\ndata\n\ndata:"),
              ElementsAre(Received{"message", "", ""}, Received{"message", "\n", ""}));
}

TEST(SseDecoder, TheIdStaysUntilAnotherComes) {
  EXPECT_THAT(decode("id: 5\ndata: a\n\ndata: b\n\n"),
              ElementsAre(Received{"message", "a", "5"}, Received{"message", "b", "5"}));
}

TEST(SseDecoder, AnIdWithoutDataCountsForResuming) {
  Reader reader;
  ASSERT_TRUE(reader.feed("id: 9\n\n"));
  EXPECT_TRUE(reader.events.empty());
  EXPECT_EQ(reader.decoder.last_event_id(), "9");
}

TEST(SseDecoder, ANewStreamKeepsThePlaceAndTheReconnectionTimeOfTheLastOne) {
  Reader reader;
  ASSERT_TRUE(reader.feed("retry: 7\nid: 1\ndata: a\n\nid: 2\nevent: lost\ndata: los"));
  reader.decoder.begin_stream("1");
  ASSERT_TRUE(
      reader.feed("\xEF\xBB\xBF"
                  "data: b\n\n"));
  EXPECT_THAT(reader.events,
              ElementsAre(Received{"message", "a", "1"}, Received{"message", "b", "1"}));
  EXPECT_EQ(reader.decoder.last_event_id(), "1");
  EXPECT_EQ(reader.decoder.retry_milliseconds(), 7);
  reader.decoder.begin_stream("");
  EXPECT_EQ(reader.decoder.last_event_id(), "");
}

TEST(SseDecoder, AnUnfinishedEventDoesNotMoveTheIdToResumeFrom) {
  Reader reader;
  ASSERT_TRUE(reader.feed("id: 1\ndata: a\n\nid: 2\ndata: b\n"));
  EXPECT_EQ(reader.decoder.last_event_id(), "1");
}

TEST(SseDecoder, IgnoresWhatItDoesNotKnow) {
  using namespace std::string_view_literals;
  Reader reader;
  ASSERT_TRUE(reader.feed("id: a\0b\nretry: 12x\nretry:\nfoo: bar\nevent: e\n\ndata: d\n\n"sv));
  EXPECT_THAT(reader.events, ElementsAre(Received{"message", "d", ""}));
  EXPECT_FALSE(reader.decoder.retry_milliseconds().has_value());
}

TEST(SseDecoder, SplitsAnywhereChangeNothing) {
  const std::string text =
      "\xEF\xBB\xBF"
      "event: e\r\nid: 1\r\ndata: a\r\ndata: b\r\n\r\n:c\rdata: \xE2\x82\xAC\r\r"
      "retry: 10\n\ndata:x\n\n";
  const std::vector<Received> whole = decode(text);
  ASSERT_EQ(whole.size(), 3U);
  EXPECT_EQ(whole[0], (Received{"e", "a\nb", "1"}));
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      Reader reader;
      ASSERT_TRUE(reader.feed(text.substr(0, i)));
      ASSERT_TRUE(reader.feed(text.substr(i, j - i)));
      ASSERT_TRUE(reader.feed(text.substr(j)));
      ASSERT_EQ(reader.events, whole) << "split at " << i << " and " << j;
    }
  }
}

TEST(SseDecoder, AByteOrderMarkCountsOnlyAtTheBeginning) {
  EXPECT_THAT(decode("\xEF\xBB\xBF"
                     "data: a\n\n\xEF\xBB\xBF"
                     "data: b\n\n"),
              ElementsAre(Received{"message", "a", ""}));
  EXPECT_THAT(decode("\xEF\xBB"
                     "data: a\ndata: b\n\n"),
              ElementsAre(Received{"message", "b", ""}));
}

TEST(SseDecoder, RefusesALineThatIsTooLong) {
  for (const std::size_t step : {1U, 7U, 100U}) {
    Reader reader{.decoder = SseDecoder({.line = 10, .event = 100}), .events = {}};
    ASSERT_TRUE(reader.feed("data: 1234\n\n"));
    Result<void> fed;
    const std::string line = "data: 12345\n\n";
    for (std::size_t i = 0; i < line.size() && fed; i += step)
      fed = reader.feed(line.substr(i, step));
    ASSERT_FALSE(fed);
    EXPECT_EQ(fed.error().code, 502);
    EXPECT_FALSE(reader.feed("\n\ndata: x\n\n"));
    EXPECT_EQ(reader.events.size(), 1U);
  }
}

TEST(SseDecoder, RefusesAnEventThatIsTooLarge) {
  Reader reader{.decoder = SseDecoder({.line = 20, .event = 20}), .events = {}};
  ASSERT_TRUE(reader.feed("data: 123456789\ndata: 123456789\n\n"));
  ASSERT_EQ(reader.events.size(), 1U);
  EXPECT_FALSE(reader.feed("data: 123456789\ndata: 123456789\ndata\n\n"));
  EXPECT_EQ(reader.events.size(), 1U);
}

}  // namespace
}  // namespace sluice
