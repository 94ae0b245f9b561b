#include "net/websocket/websocket.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "net/http/compression.hpp"

namespace sluice {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using Role = WebSocketDecoder::Role;

constexpr std::uint32_t kMask = 0x37FA213D;

/// Records what is decoded.
struct Log final : WebSocketEvents {
  void on_message(WebSocketOpcode opcode, std::string_view payload) override {
    entries.push_back((opcode == WebSocketOpcode::text ? "text " : "binary ") +
                      std::string(payload));
  }
  void on_ping(std::string_view payload) override {
    entries.push_back("ping " + std::string(payload));
  }
  void on_pong(std::string_view payload) override {
    entries.push_back("pong " + std::string(payload));
  }
  void on_close(int code, std::string_view reason) override {
    entries.push_back("close " + std::to_string(code) + " " + std::string(reason));
  }
  [[nodiscard]] bool wants_more() const override { return !pauses; }
  std::vector<std::string> entries;
  bool pauses = false;  // after each unit of work
};

std::string frame(WebSocketOpcode opcode, std::string_view payload, bool masked = true) {
  std::string out;
  append_websocket_frame(out, opcode, payload, false, masked ? std::optional(kMask) : std::nullopt);
  return out;
}

/// A masked frame whose first byte is `first`.
std::string raw_frame(unsigned first, std::string_view payload) {
  std::string out = frame(WebSocketOpcode::text, payload);
  out[0] = static_cast<char>(first);
  return out;
}

/// The error code of decoding `bytes`, or 0.
int decode(std::string bytes, Log& log, bool deflate = false, Role role = Role::server,
           std::size_t max_message = 1000) {
  WebSocketDecoder decoder(role, max_message, deflate);
  const Result<void> fed = decoder.feed(bytes, log);
  return fed ? 0 : fed.error().code;
}

TEST(WebSocketAcceptKey, IsThatOfTheStandardsExample) {
  // RFC 6455, section 1.3.
  EXPECT_EQ(websocket_accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(AppendWebSocketFrame, WritesTheStandardsExamples) {
  // RFC 6455, section 5.7.
  EXPECT_EQ(frame(WebSocketOpcode::text, "Hello", false), "\x81\x05Hello");
  EXPECT_EQ(frame(WebSocketOpcode::text, "Hello"), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
  EXPECT_EQ(frame(WebSocketOpcode::ping, "Hello", false), "\x89\x05Hello");
  EXPECT_EQ(frame(WebSocketOpcode::binary, std::string(256, 'x'), false),
            "\x82\x7E\x01\x00"s + std::string(256, 'x'));
  EXPECT_EQ(frame(WebSocketOpcode::binary, std::string(65536, 'x'), false),
            "\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00"s + std::string(65536, 'x'));
}

TEST(AppendWebSocketFrame, UsesTheShortestLength) {
  EXPECT_EQ(frame(WebSocketOpcode::text, std::string(125, 'x'), false).size(), 125U + 2);
  EXPECT_EQ(frame(WebSocketOpcode::text, std::string(126, 'x'), false).size(), 126U + 4);
  EXPECT_EQ(frame(WebSocketOpcode::text, std::string(65535, 'x'), false).size(), 65535U + 4);
}

TEST(AppendWebSocketClose, CutsTheReasonBetweenCharacters) {
  std::string out;
  append_websocket_close(out, 1000, std::string(122, 'x') + "\xC3\xA4");
  EXPECT_EQ(out.size(), 2U + 2 + 122);
  out.clear();
  append_websocket_close(out, 1005, "");
  EXPECT_EQ(out, "\x88\x00"s);
}

TEST(WebSocketDecoder, ReadsWhatIsWrittenAtEachSize) {
  for (const Role role : {Role::server, Role::client}) {
    for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 125U, 126U, 127U, 65535U, 65536U, 70000U}) {
      const std::string payload(size, 'p');
      Log log;
      EXPECT_EQ(decode(frame(WebSocketOpcode::text, payload, role == Role::server), log, false,
                       role, 70000),
                0);
      EXPECT_THAT(log.entries, ElementsAre("text " + payload));
    }
  }
}

TEST(WebSocketDecoder, JoinsFragmentsWithControlFramesBetween) {
  Log log;
  EXPECT_EQ(decode(raw_frame(0x01, "a\xE2\x82") + frame(WebSocketOpcode::ping, "p") +
                       raw_frame(0x00, "\xAC") + frame(WebSocketOpcode::pong, "q") +
                       raw_frame(0x80, "b") + frame(WebSocketOpcode::binary, "\xFF"),
                   log),
            0);
  EXPECT_THAT(log.entries, ElementsAre("ping p", "pong q",
                                       "text a\xE2\x82\xAC"
                                       "b",
                                       "binary \xFF"));
}

TEST(WebSocketDecoder, WhatHasComeOfATextIsChecked) {
  for (const unsigned first : {0x81U, 0x01U}) {
    const std::string bytes =
        raw_frame(first, "a\xE2\x82\xAC" + std::string(500, 'b') + "\xFF" + std::string(500, 'c'));
    WebSocketDecoder decoder(Role::server, 2000, false);
    Log log;
    std::string part = bytes.substr(0, 500);
    ASSERT_TRUE(decoder.feed(part, log));
    part = bytes.substr(500, 100);
    const Result<void> fed = decoder.feed(part, log);
    ASSERT_FALSE(fed) << "the rest of the message is not waited for";
    EXPECT_EQ(fed.error().code, 1007);
    EXPECT_EQ(decoder.held_bytes(), 0U);
  }
}

TEST(WebSocketDecoder, SplitsAnywhereChangeNothing) {
  std::string compressed;
  deflate_message("squeezed", compressed);
  std::string close;
  append_websocket_close(close, 1001, "bye", kMask);
  const std::string bytes = frame(WebSocketOpcode::text, "first") + raw_frame(0x02, "se") +
                            frame(WebSocketOpcode::ping, "p") + raw_frame(0x80, "cond") +
                            raw_frame(0xC1, compressed) +
                            frame(WebSocketOpcode::text, std::string(130, 'z')) + close;
  Log whole;
  ASSERT_EQ(decode(bytes, whole, true), 0);
  ASSERT_THAT(whole.entries, ElementsAre("text first", "ping p", "binary second", "text squeezed",
                                         "text " + std::string(130, 'z'), "close 1001 bye"));
  for (std::size_t i = 0; i <= bytes.size(); ++i) {
    for (std::size_t j = i; j <= bytes.size(); ++j) {
      WebSocketDecoder decoder(Role::server, 1000, true);
      Log log;
      for (std::string part : {bytes.substr(0, i), bytes.substr(i, j - i), bytes.substr(j)}) {
        ASSERT_TRUE(decoder.feed(part, log));
      }
      ASSERT_EQ(log.entries, whole.entries) << "split at " << i << " and " << j;
    }
  }
  WebSocketDecoder decoder(Role::server, 1000, true);
  Log log;
  for (char byte : bytes) ASSERT_TRUE(decoder.feed({&byte, 1}, log));
  EXPECT_EQ(log.entries, whole.entries);
}

struct Broken {
  const char* what;
  std::string bytes;
  int code;
};

std::string close_with(std::string_view payload) {
  return frame(WebSocketOpcode::close, payload);
}

class BrokenFrames : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenFrames, EndWithTheRightCode) {
  Log log;
  EXPECT_EQ(decode(GetParam().bytes, log, true), GetParam().code) << GetParam().what;
  EXPECT_THAT(log.entries, ElementsAre());
  // The result is the same if the bytes arrive one by one, and what follows is ignored.
  WebSocketDecoder decoder(Role::server, 1000, true);
  int code = 0;
  for (char byte : GetParam().bytes + frame(WebSocketOpcode::text, "after")) {
    const Result<void> fed = decoder.feed({&byte, 1}, log);
    if (!fed && code == 0) code = fed.error().code;
  }
  EXPECT_EQ(code, GetParam().code) << GetParam().what;
  EXPECT_THAT(log.entries, ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(
    WebSocketDecoder, BrokenFrames,
    ::testing::Values(
        Broken{"unmasked", frame(WebSocketOpcode::text, "x", false), 1002},
        Broken{"RSV2", raw_frame(0xA1, "x"), 1002}, Broken{"RSV3", raw_frame(0x91, "x"), 1002},
        Broken{"opcode 3", raw_frame(0x83, "x"), 1002},
        Broken{"opcode 7", raw_frame(0x87, "x"), 1002},
        Broken{"opcode 11", raw_frame(0x8B, "x"), 1002},
        Broken{"opcode 15", raw_frame(0x8F, "x"), 1002},
        Broken{"fragmented ping", raw_frame(0x09, "x"), 1002},
        Broken{"fragmented close", raw_frame(0x08, ""), 1002},
        Broken{"long ping", frame(WebSocketOpcode::ping, std::string(126, 'x')), 1002},
        Broken{"compressed ping", raw_frame(0xC9, "x"), 1002},
        Broken{"continuation of nothing", raw_frame(0x80, "x"), 1002},
        Broken{"message within a message", raw_frame(0x01, "a") + frame(WebSocketOpcode::text, "b"),
               1002},
        Broken{"RSV1 on a continuation", raw_frame(0x01, "a") + raw_frame(0xC0, "b"), 1002},
        Broken{"16 bits for a short length", "\x81\xFE\x00\x05"s + "mask", 1002},
        Broken{"64 bits for a short length", "\x81\xFF\0\0\0\0\0\0\xFF\xFF"s + "mask", 1002},
        Broken{"length with the highest bit", "\x81\xFF\x80\0\0\0\0\0\0\0"s + "mask", 1002},
        Broken{"text that is not UTF-8", frame(WebSocketOpcode::text, "\xFF"), 1007},
        Broken{"text cut within a character", frame(WebSocketOpcode::text, "\xE2\x82"), 1007},
        Broken{"surrogate", frame(WebSocketOpcode::text, "\xED\xA0\x80"), 1007},
        Broken{"fragments that are not UTF-8", raw_frame(0x01, "\xE2") + raw_frame(0x80, "x"),
               1007},
        Broken{"broken deflate data", raw_frame(0xC1, "\xFF\xFF"), 1007},
        Broken{"too long", frame(WebSocketOpcode::text, std::string(1001, 'x')), 1009},
        Broken{"absurdly long", "\x81\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, 1009},
        Broken{"fragments too long",
               raw_frame(0x01, std::string(600, 'x')) + raw_frame(0x80, std::string(401, 'x')),
               1009},
        Broken{"half a close code", close_with("\x03"), 1002},
        Broken{"close code 0", close_with("\0\0"s), 1002},
        Broken{"close code 999", close_with("\x03\xE7"), 1002},
        Broken{"close code 1004", close_with("\x03\xEC"), 1002},
        Broken{"close code 1005", close_with("\x03\xED"), 1002},
        Broken{"close code 1006", close_with("\x03\xEE"), 1002},
        Broken{"close code 1015", close_with("\x03\xF7"), 1002},
        Broken{"close code 2999", close_with("\x0B\xB7"), 1002},
        Broken{"close code 5000", close_with("\x13\x88"), 1002},
        Broken{"close reason that is not UTF-8", close_with("\x03\xE8\xFF"), 1007}));

TEST(WebSocketDecoder, RefusesRsv1WithoutDeflate) {
  Log log;
  EXPECT_EQ(decode(raw_frame(0xC1, "x"), log, false), 1002);
}

TEST(WebSocketDecoder, AClientRefusesMaskedFrames) {
  Log log;
  EXPECT_EQ(decode(frame(WebSocketOpcode::text, "x"), log, false, Role::client), 1002);
}

TEST(WebSocketDecoder, RefusesByTheHeaderAlone) {
  // A message beyond the limit is refused before its payload arrives.
  Log log;
  EXPECT_EQ(decode("\x81\xFE\x07\xD0"s, log), 1009);
}

TEST(WebSocketDecoder, RefusesAMessageThatExpandsBeyondTheLimit) {
  std::string bomb;
  deflate_message(std::string(1U << 20U, '0'), bomb);
  ASSERT_LT(bomb.size(), 5000U);
  Log log;
  EXPECT_EQ(decode(raw_frame(0xC1, bomb), log, true, Role::server, 10'000), 1009);
  EXPECT_THAT(log.entries, ElementsAre());
}

TEST(WebSocketDecoder, JoinsCompressedFragments) {
  std::string data;
  deflate_message("compressed and cut in two", data);
  Log log;
  EXPECT_EQ(decode(raw_frame(0x41, data.substr(0, 5)) + raw_frame(0x80, data.substr(5)), log, true),
            0);
  EXPECT_THAT(log.entries, ElementsAre("text compressed and cut in two"));
}

TEST(WebSocketDecoder, ExpandsALongMessageInStepsAndKeepsTheOrder) {
  const std::string text(1U << 20U, 'x');
  std::string data;
  deflate_message(text, data);
  const std::string close = close_with("\x03\xE8");
  for (const std::string& message :
       {raw_frame(0xC1, data), raw_frame(0x41, data.substr(0, 9)) + raw_frame(0x00, "") +
                                   raw_frame(0x80, data.substr(9))}) {
    std::string bytes = message + frame(WebSocketOpcode::ping, "p") +
                        frame(WebSocketOpcode::text, "behind") + close;
    WebSocketDecoder decoder(Role::server, text.size(), true);
    Log log;
    log.pauses = true;
    ASSERT_TRUE(decoder.feed(bytes, log));
    int rounds = 0;
    for (; log.entries.empty(); ++rounds) {
      ASSERT_LT(rounds, 100);
      ASSERT_GT(decoder.held_bytes(), 0U);
      ASSERT_TRUE(decoder.feed({}, log));
    }
    EXPECT_GE(rounds, 7);
    EXPECT_THAT(log.entries, ElementsAre("text " + text));
    while (decoder.held_bytes() > 0) ASSERT_TRUE(decoder.feed({}, log));
    EXPECT_THAT(log.entries, ElementsAre("text " + text, "ping p", "text behind", "close 1000 "));
  }
}

TEST(WebSocketDecoder, WhatComesWhileAMessageIsExpandedWaits) {
  const std::string text(1U << 20U, 'x');
  std::string data;
  deflate_message(text, data);
  std::string first = raw_frame(0xC2, data) + frame(WebSocketOpcode::text, "be").substr(0, 3);
  std::string rest = frame(WebSocketOpcode::text, "be").substr(3) + raw_frame(0x83, "");
  WebSocketDecoder decoder(Role::server, text.size(), true);
  Log log;
  log.pauses = true;
  ASSERT_TRUE(decoder.feed(first, log));
  ASSERT_TRUE(decoder.feed(rest, log));
  EXPECT_THAT(log.entries, ElementsAre());
  log.pauses = false;
  const Result<void> fed = decoder.feed({}, log);
  EXPECT_THAT(log.entries, ElementsAre("binary " + text, "text be"));
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code, 1002);
  EXPECT_EQ(decoder.held_bytes(), 0U);
}

TEST(WebSocketDecoder, AMessageThatExpandsToNothingTakesStepsToo) {
  // Final blocks without content (RFC 1951, section 3.2.6). After each, decoding begins anew.
  std::string data;
  for (int i = 0; i < 100'000; ++i) data += "\x03\x00"s;
  std::string bytes = raw_frame(0xC1, data + "\x00"s);
  WebSocketDecoder decoder(Role::server, bytes.size(), true);
  Log log;
  log.pauses = true;
  ASSERT_TRUE(decoder.feed(bytes, log));
  int rounds = 0;
  for (; log.entries.empty(); ++rounds) {
    ASSERT_LT(rounds, 1000);
    ASSERT_TRUE(decoder.feed({}, log));
  }
  EXPECT_GE(rounds, 100);
  EXPECT_THAT(log.entries, ElementsAre("text "));
}

TEST(WebSocketDecoder, ABombEndsInTheStepThatIsTooMuch) {
  std::string bomb;
  deflate_message(std::string(2U << 20U, '0'), bomb);
  std::string bytes = raw_frame(0xC1, bomb);
  WebSocketDecoder decoder(Role::server, 1U << 20U, true);
  Log log;
  log.pauses = true;
  Result<void> fed = decoder.feed(bytes, log);
  for (int rounds = 0; fed; ++rounds) {
    ASSERT_LT(rounds, 100);
    EXPECT_LE(decoder.held_bytes(), 3U << 20U);
    fed = decoder.feed({}, log);
  }
  EXPECT_EQ(fed.error().code, 1009);
  EXPECT_EQ(decoder.held_bytes(), 0U);
  EXPECT_THAT(log.entries, ElementsAre());
}

TEST(WebSocketDecoder, ReadsTheStandardsCompressedExamples) {
  // RFC 7692, section 7.2.3: one block, an uncompressed block, and a final block.
  for (const std::string& data :
       {"\xF2\x48\xCD\xC9\xC9\x07\x00"s, "\x00\x05\x00\xFA\xFF\x48\x65\x6C\x6C\x6F\x00"s,
        "\xF3\x48\xCD\xC9\xC9\x07\x00\x00"s,
        "\xF2\x48\x05\x00\x00\x00\xFF\xFF\xCA\xC9\xC9\x07\x00"s}) {
    Log log;
    EXPECT_EQ(decode(raw_frame(0xC1, data), log, true), 0);
    EXPECT_THAT(log.entries, ElementsAre("text Hello"));
  }
}

TEST(WebSocketDecoder, TakesEachCloseCodeThatMayBeSent) {
  for (const int code : {1000, 1001, 1002, 1003, 1007, 1011, 1012, 1013, 1014, 3000, 4999}) {
    std::string bytes;
    append_websocket_close(bytes, code, "r", kMask);
    Log log;
    EXPECT_EQ(decode(bytes, log), 0);
    EXPECT_THAT(log.entries, ElementsAre("close " + std::to_string(code) + " r"));
    EXPECT_TRUE(is_sendable_close_code(code));
  }
  Log log;
  EXPECT_EQ(decode(close_with(""), log), 0);
  EXPECT_THAT(log.entries, ElementsAre("close 1005 "));
}

TEST(WebSocketDecoder, IgnoresWhatFollowsAClose) {
  Log log;
  EXPECT_EQ(
      decode(close_with("\x03\xE8") + frame(WebSocketOpcode::text, "x") + raw_frame(0x8F, ""), log),
      0);
  EXPECT_THAT(log.entries, ElementsAre("close 1000 "));
}

TEST(WebSocketDecoder, UnmasksInPlace) {
  struct Where final : WebSocketEvents {
    void on_message(WebSocketOpcode, std::string_view payload) override { data = payload.data(); }
    void on_ping(std::string_view) override {}
    void on_pong(std::string_view) override {}
    void on_close(int, std::string_view) override {}
    const char* data = nullptr;
  } where;
  std::string bytes = frame(WebSocketOpcode::text, "no copy");
  WebSocketDecoder decoder(Role::server, 1000, false);
  ASSERT_TRUE(decoder.feed(bytes, where));
  EXPECT_EQ(where.data, bytes.data() + 6);
}

TEST(NegotiateDeflate, MeetsWhatItCan) {
  for (const char* offer :
       {"permessage-deflate", "permessage-deflate; client_max_window_bits",
        "Permessage-Deflate;server_no_context_takeover ; client_no_context_takeover",
        "permessage-deflate; server_max_window_bits=15; client_max_window_bits=10",
        "permessage-deflate; client_max_window_bits=8; server_max_window_bits=\"15\"",
        "permessage-deflate; client_max_window_bits=\"15\"",
        "permessage-deflate; client_max_window_bits=99, permessage-deflate",
        "x-webkit-deflate-frame, permessage-deflate",
        "permessage-deflate; server_max_window_bits=10, permessage-deflate"}) {
    EXPECT_EQ(negotiate_deflate(offer),
              "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
        << offer;
  }
}

TEST(NegotiateDeflate, DeclinesWhatItCannot) {
  for (const char* offer :
       {"", ",", "x-webkit-deflate-frame", "permessage-deflated",
        "permessage-deflate; server_max_window_bits=10", "permessage-deflate; unknown",
        "permessage-deflate; unknown=1", "permessage-deflate; client_max_window_bits=abc",
        "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=16",
        "permessage-deflate; client_max_window_bits=99",
        "permessage-deflate; client_max_window_bits=08",
        "permessage-deflate; client_max_window_bits=",
        "permessage-deflate; client_max_window_bits=\"",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_no_context_takeover=yes",
        "permessage-deflate; client_no_context_takeover=",
        "permessage-deflate; client_max_window_bits; CLIENT_max_window_bits",
        "permessage-deflate; server_no_context_takeover; "
        "client_no_context_takeover; server_no_context_takeover"}) {
    EXPECT_EQ(negotiate_deflate(offer), std::nullopt) << offer;
  }
}

}  // namespace
}  // namespace sluice
