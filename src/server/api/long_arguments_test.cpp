// Long arguments are decoded on a worker, before the handler is called on its loop.

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/host/peer_test_support.hpp"
#include "sluice/codec.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

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
    return out.value >= 0 || decoder.fail("is below 0");
  }
  static json::value encode(const Traced& traced, Encoder&) { return traced.value; }
};

namespace {

struct Numbers {
  std::vector<Traced> numbers;
};

std::string seen(const Numbers& in) {
  if (in.numbers.empty()) return "none";
  return std::to_string(in.numbers.size()) + " up to " + std::to_string(in.numbers.back().value) +
         (in.numbers.back().thread == std::this_thread::get_id() ? " here" : " elsewhere");
}

class LongArgumentsTest : public ::testing::Test {
 protected:
  LongArgumentsTest() {
    Server server("test", "1");
    server.tool("immediate", "", [](Numbers in) { return seen(in); });
    server.tool("call", "", [](const Numbers& in, Call&) { return seen(in); });
    server.tool("coroutine", "",
                [](Numbers in, Call&) -> Task<std::string> { co_return seen(in); });
    server.tool("json", "",
                [](json::object in) { return std::to_string(in.at("numbers").as_array().size()); });
    auto started = start(server, http{.port = 0}, ServeOptions{.threads = 1});
    if (started) serving.emplace(*std::move(started));
  }
  void SetUp() override { ASSERT_TRUE(serving); }

  std::string called(const std::string& tool, const std::string& numbers) {
    const std::string body = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" +
                             tool + R"(","arguments":{"numbers":[)" + numbers + "]}}}";
    Peer peer(serving->port());
    peer.send("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
    return peer.rest();
  }
  static std::string many(std::size_t count, const std::string& last) {
    std::string out;
    for (std::size_t i = 1; i < count; ++i) out += "1,";
    return out + last;
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

TEST_F(LongArgumentsTest, WhatDoesNotFitIsRefusedInTheSameWords) {
  EXPECT_THAT(called("immediate", "1,-1"), HasSubstr("arguments.numbers[1]: is below 0"));
  for (const std::string tool : {"immediate", "call", "coroutine"}) {
    const std::string reply = called(tool, many(50'000, "-1"));
    EXPECT_THAT(reply, HasSubstr("-32602")) << tool;
    EXPECT_THAT(reply, HasSubstr("arguments.numbers[49999]: is below 0")) << tool;
  }
}

}  // namespace
}  // namespace sluice
