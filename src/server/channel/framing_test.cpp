#include "server/channel/framing.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "net/websocket/websocket.hpp"

namespace sluice {
namespace {

std::string framed(const Framing& framing, std::string_view message) {
  std::string out = "before";
  const std::size_t mark = framing.begin(out);
  out.append(message);
  framing.end(out, mark);
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

TEST(SseFraming, MakesAnEvent) {
  EXPECT_EQ(framed(sse_framing(), R"({"a":1})"), "data: {\"a\":1}\n\n");
  EXPECT_EQ(framed(sse_framing(), ""), "data: \n\n");
}

TEST(WebSocketFraming, HasTheShortestHeaderForEachLength) {
  struct Case {
    std::size_t length;
    std::string header;
  };
  for (const Case& c : {
           Case{0, std::string("\x81\x00", 2)},
           Case{1, "\x81\x01"},
           Case{125, "\x81\x7D"},
           Case{126, std::string("\x81\x7E\x00\x7E", 4)},
           Case{65535, "\x81\x7E\xFF\xFF"},
           Case{65536, std::string("\x81\x7F\x00\x00\x00\x00\x00\x01\x00\x00", 10)},
       }) {
    const std::string message(c.length, 'm');
    EXPECT_EQ(framed(websocket_framing(), message), c.header + message) << c.length;
  }
}

struct Collected final : WebSocketEvents {
  void on_message(WebSocketOpcode opcode, std::string_view payload) override {
    EXPECT_EQ(opcode, WebSocketOpcode::text);
    sizes.push_back(payload.size());
  }
  void on_ping(std::string_view /*payload*/) override { ADD_FAILURE(); }
  void on_pong(std::string_view /*payload*/) override { ADD_FAILURE(); }
  void on_close(int /*code*/, std::string_view /*reason*/) override { ADD_FAILURE(); }
  std::vector<std::size_t> sizes;
};

TEST(WebSocketFraming, IsWhatAClientReads) {
  const std::vector<std::size_t> sizes = {0, 125, 126, 127, 65535, 65536, 70000, 3};
  std::string frames;
  for (const std::size_t size : sizes) {
    const std::size_t mark = websocket_framing().begin(frames);
    frames.append(size, 'x');
    websocket_framing().end(frames, mark);
  }
  Collected collected;
  WebSocketDecoder decoder(WebSocketDecoder::Role::client, 100000, false);
  ASSERT_TRUE(decoder.feed(frames, collected));
  EXPECT_EQ(collected.sizes, sizes);
}

}  // namespace
}  // namespace sluice
