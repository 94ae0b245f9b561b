// Long arguments are decoded on a worker, before the handler is called on its loop.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/host/peer_test_support.hpp"
#include "sluice/codec.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// While a test sets this, decoding kHeld waits, at most for some seconds, and then resets it.
std::atomic<bool> holds = false;
std::atomic<bool> waits = false;
constexpr int kHeld = 77;
/// Decoding kStopping stops this server, which it may not.
std::atomic<Serving*> stopped = nullptr;
constexpr int kStopping = 78;

/// A number that knows on which thread it was decoded.
struct Traced {
  int value = 0;
  std::thread::id thread;
};

}  // namespace

template <>
struct Codec<Traced> {
  static json::value schema(SchemaBuilder&) { return {{"type", "integer"}}; }
  static bool decode(const json::value& value, Traced& out, Decoder& decoder) {
    out.thread = std::this_thread::get_id();
    out.value = static_cast<int>(value.to_number<std::int64_t>());
    if (out.value == kHeld) {
      waits = true;
      waits.notify_all();
      for (int ms = 0; holds && ms < 5000; ++ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      holds = false;
    }
    if (out.value == kStopping) {
      try {
        stopped.load()->stop();
      } catch (const std::logic_error&) {
        return decoder.fail("stops its own server");
      }
    }
    return out.value >= 0 || decoder.fail("is below 0");
  }
  static json::value encode(const Traced& traced, Encoder&) { return traced.value; }
};

namespace {

struct Numbers {
  std::vector<Traced> numbers;
};

/// Takes any JSON, which is not looked at to validate it.
struct Anything {
  json::value numbers;
  Traced first;
};

/// Takes much more memory than the text of its JSON.
struct Wide {
  std::optional<std::array<std::int64_t, 128>> cells;  // 1 KiB
};
struct WideRows {
  std::vector<Wide> numbers;
};

std::string seen(const Numbers& in) {
  if (in.numbers.empty()) return "none";
  return std::to_string(in.numbers.size()) + " up to " + std::to_string(in.numbers.back().value) +
         (in.numbers.back().thread == std::this_thread::get_id() ? " here" : " elsewhere");
}

class LongArgumentsTest : public ::testing::Test {
 protected:
  LongArgumentsTest() { begin({}); }
  void SetUp() override { ASSERT_TRUE(serving); }

  void begin(ServerOptions options) {
    serving.reset();
    Server server("test", "1", std::move(options));
    server.tool("immediate", "", [](Numbers in) { return seen(in); });
    server.tool("call", "", [](const Numbers& in, Call&) { return seen(in); });
    server.tool("coroutine", "",
                [](Numbers in, Call&) -> Task<std::string> { co_return seen(in); });
    server.tool("json", "",
                [](json::object in) { return std::to_string(in.at("numbers").as_array().size()); });
    server.tool("anything", "", [](const Anything& in) {
      return std::to_string(in.numbers.as_array().size()) +
             (in.first.thread == std::this_thread::get_id() ? " here" : " elsewhere");
    });
    server.tool("long", "", [](const Numbers&) { return std::string(100'000, 'x'); });
    server.tool("wide", "", [](WideRows in, Call& call) -> Task<std::string> {
      if (in.numbers.size() > 5'000) co_await call.sleep(std::chrono::hours(1));
      co_return std::to_string(in.numbers.size());
    });
    const http at{.port = 0,
                  .keys = {{"alice", "key-of-alice-12345"}, {"bob", "key-of-bob-1234567"}}};
    auto started = start(server, at, ServeOptions{.threads = 1, .stream_memory = kStreamMemory});
    if (started) serving.emplace(*std::move(started));
  }

  static constexpr std::size_t kStreamMemory = std::size_t{16} << 20U;

  std::string called(const std::string& tool, const std::string& numbers,
                     std::string_view key = "key-of-alice-12345", std::string_view others = {}) {
    const std::string body = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" +
                             tool + R"(","arguments":{"numbers":[)" + numbers + "]" +
                             std::string(others) + "}}}";
    Peer peer(serving->port());
    peer.send(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer " +
        std::string(key) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
        body);
    return peer.rest();
  }
  static std::string many(std::size_t count, const std::string& last) {
    std::string out;
    for (std::size_t i = 1; i < count; ++i) out += "1,";
    return out + last;
  }
  static std::string wide(std::size_t count) {
    std::string out = "{}";
    for (std::size_t i = 1; i < count; ++i) out += ",{}";
    return out;
  }

  std::optional<Serving> serving;
};

TEST_F(LongArgumentsTest, AHandlerOfEachShapeGetsThemDecodedElsewhere) {
  for (const std::string tool : {"immediate", "call", "coroutine"}) {
    EXPECT_THAT(called(tool, "1,2"), HasSubstr("2 up to 2 here")) << tool;
    EXPECT_THAT(called(tool, many(50'000, "7")), HasSubstr("50000 up to 7 elsewhere")) << tool;
  }
  EXPECT_THAT(called("json", many(50'000, "7")), HasSubstr("50000"));
}

TEST_F(LongArgumentsTest, ThatValidateInFewStepsAreDecodedElsewhereToo) {
  const auto called_with = [&](std::size_t count) {
    return called("anything", many(count, "7"), "key-of-alice-12345", R"(,"first":1)");
  };
  EXPECT_THAT(called_with(100), HasSubstr("100 here"));
  EXPECT_THAT(called_with(50'000), HasSubstr("50000 elsewhere"));
}

TEST_F(LongArgumentsTest, TakeLittleMemoryOrAreRefused) {
  EXPECT_THAT(called("wide", wide(5'000)), HasSubstr("\"5000\""));
  EXPECT_THAT(called("wide", wide(70'000)), HasSubstr("takes more memory than the 64 MiB"));
  // Of any length, they count as the memory of the client.
  for (const std::size_t count : {std::size_t{18'000}, std::size_t{60'000}}) {
    EXPECT_THAT(called("wide", wide(count)), HasSubstr("-31010")) << count;
  }
  EXPECT_THAT(called("wide", wide(5'000)), HasSubstr("\"5000\""));
}

TEST_F(LongArgumentsTest, AreDecodedInTimeOrTheCallTimesOut) {
  begin({.call_timeout = std::chrono::milliseconds(100)});
  holds = true;
  EXPECT_THAT(called("call", many(50'000, std::to_string(kHeld))), HasSubstr("-31001"));
  // The next one waits for the same worker.
  EXPECT_THAT(called("call", many(50'000, "7")), HasSubstr("-31001"));
  EXPECT_TRUE(holds.exchange(false)) << "they were decoded before";
}

TEST_F(LongArgumentsTest, WhatDoesNotFitIsRefusedInTheSameWords) {
  EXPECT_THAT(called("immediate", "1,-1"), HasSubstr("arguments.numbers[1]: is below 0"));
  for (const std::string tool : {"immediate", "call", "coroutine"}) {
    const std::string reply = called(tool, many(50'000, "-1"));
    EXPECT_THAT(reply, HasSubstr("-32602")) << tool;
    EXPECT_THAT(reply, HasSubstr("arguments.numbers[49999]: is below 0")) << tool;
  }
}

TEST_F(LongArgumentsTest, ACodecThatStopsItsServerIsToldSoOnAnyThread) {
  stopped = &*serving;
  for (const std::size_t count : {std::size_t{1}, std::size_t{50'000}}) {
    EXPECT_THAT(called("immediate", many(count, std::to_string(kStopping))),
                HasSubstr("stops its own server"));
  }
}

TEST_F(LongArgumentsTest, OfOneClientHoldUpNeitherThoseOfAnotherNorAnyResult) {
  holds = true;
  waits = false;
  std::string reply;
  std::thread slow([&] { reply = called("immediate", many(50'000, std::to_string(kHeld))); });
  waits.wait(false);
  EXPECT_THAT(called("immediate", many(50'000, "7"), "key-of-bob-1234567"),
              HasSubstr("50000 up to 7 elsewhere"));
  EXPECT_THAT(called("long", ""), HasSubstr("xxx"));
  EXPECT_TRUE(holds.exchange(false)) << "they were decoded before";
  slow.join();
  EXPECT_THAT(reply, HasSubstr("50000 up to 77 elsewhere"));
}

}  // namespace
}  // namespace sluice
