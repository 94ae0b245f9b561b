#include "net/http/compression.hpp"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <zlib.h>

namespace sluice {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

/// Bytes that do not compress.
std::string noise(std::size_t size) {
  std::string out;
  std::uint32_t state = 1;
  while (out.size() < size) {
    state = state * 1664525U + 1013904223U;
    out.push_back(static_cast<char>(state >> 24U));
  }
  return out;
}

std::string zlib(std::string_view data) {
  uLongf size = compressBound(data.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
           data.size());
  out.resize(size);
  return out;
}

std::string gzipped(std::string_view data) {
  std::string out;
  gzip(data, out);
  return out;
}

constexpr std::size_t kLimit = std::size_t{4} << 20U;

/// Expands one message.
Result<std::string> inflated(std::string_view payload, std::size_t max_size) {
  MessageInflater inflater(max_size);
  for (;;) {
    const Result<bool> done = inflater.step(payload);
    EXPECT_LE(inflater.text().size(), max_size);
    if (!done) return std::unexpected(done.error());
    if (*done) return std::string(inflater.text());
  }
}

TEST(AcceptsGzip, FollowsTheWeights) {
  for (const char* yes : {"gzip", "GZIP", "x-gzip", "*", "deflate, gzip", "gzip;q=0.5", "br;q=1, *",
                          "gzip;q=1.0, identity; q=0.5", "deflate , gzip ; q=0.001"}) {
    EXPECT_TRUE(accepts_gzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *",
                         "gzipped", "gzip;q=0.5, identity", ",,"}) {
    EXPECT_FALSE(accepts_gzip(no)) << no;
  }
}

TEST(Gzip, IsUndoneByDecodeContent) {
  for (const std::string& data :
       {""s, "a"s, std::string(100000, 'a'), noise(1), noise(16384), noise(100000)}) {
    const auto decoded = decode_content("gzip", gzipped(data), kLimit);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, data);
  }
}

TEST(Gzip, Appends) {
  std::string out = "before";
  gzip("x", out);
  EXPECT_TRUE(out.starts_with("before\x1F\x8B"));
  EXPECT_EQ(decode_content("gzip", out.substr(6), 10), "x");
}

TEST(DecodeContent, KnowsTheCodings) {
  EXPECT_EQ(decode_content("", "as it is", kLimit), "as it is");
  EXPECT_EQ(decode_content("identity", "as it is", kLimit), "as it is");
  EXPECT_EQ(decode_content("X-GZip", gzipped("g"), kLimit), "g");
  EXPECT_EQ(decode_content("deflate", zlib("z"), kLimit), "z");
  EXPECT_EQ(decode_content("deflate, gzip", gzipped(zlib("both")), kLimit), "both");
  EXPECT_EQ(decode_content("gzip , identity", gzipped("g"), kLimit), "g");
}

TEST(DecodeContent, RefusesUnknownCodingsAndTooMany) {
  for (const char* coding : {"br", "zstd", "gzip, br", "gzip, gzip, gzip", "gzip;q=1"}) {
    const auto decoded = decode_content(coding, gzipped("x"), kLimit);
    ASSERT_FALSE(decoded) << coding;
    EXPECT_EQ(decoded.error().code, 415);
  }
}

TEST(DecodeContent, RefusesBrokenData) {
  const std::string whole = gzipped("some text to compress");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto decoded = decode_content("gzip", whole.substr(0, size), kLimit);
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, 400);
  }
  std::string changed = whole;
  changed[changed.size() - 6] ^= 1;
  for (const std::string& body : {changed, whole + "x", "plain text"s}) {
    const auto decoded = decode_content("gzip", body, kLimit);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, 400);
  }
}

TEST(DecodeContent, ReadsEachMemberOfGzip) {
  // RFC 1952, section 2.2.
  EXPECT_EQ(decode_content("gzip", gzipped("a") + gzipped("") + gzipped("b"), kLimit), "ab");
  EXPECT_EQ(decode_content("deflate, gzip", gzipped(zlib("z")) + gzipped(""), kLimit), "z");
  EXPECT_EQ(decode_content("gzip", gzipped("12345") + gzipped("67890"), 10), "1234567890");
  EXPECT_EQ(decode_content("gzip", gzipped("12345") + gzipped("67890"), 9).error().code, 413);
  for (const std::string& body : {gzipped("a") + gzipped("b").substr(0, 15),
                                  gzipped("a") + std::string(8, '\0'), gzipped("a") + zlib("z")}) {
    EXPECT_EQ(decode_content("gzip", body, kLimit).error().code, 400);
  }
  EXPECT_EQ(decode_content("deflate", zlib("a") + zlib("b"), kLimit).error().code, 400);
}

TEST(DecodeContent, WhatExpandsToNothingTakesStepsToo) {
  std::string members;
  while (members.size() < 1'000'000) members += gzipped("");
  // Empty blocks (RFC 1951, section 3.2.4).
  std::string blocks = "\x78\x9C"s;
  while (blocks.size() < 1'000'000) blocks += "\x00\x00\x00\xFF\xFF"s;
  blocks += "\x03\x00\x00\x00\x00\x01"s;
  const auto steps = [](std::string_view coding, std::string_view body) {
    ContentDecoder decoder(kLimit);
    EXPECT_TRUE(decoder.begin(coding));
    for (int count = 1;; ++count) {
      const Result<bool> done = decoder.step(body, kExpandedAtOnce);
      EXPECT_TRUE(done);
      if (!done || *done) return count;
    }
  };
  EXPECT_GE(steps("gzip", members), 100);
  EXPECT_GE(steps("deflate", blocks), 100);
}

TEST(DecodeContent, RefusesBombs) {
  const std::string bomb = gzipped(std::string(64U << 20U, '0'));
  ASSERT_LT(bomb.size(), 400U << 10U);
  const auto decoded = decode_content("gzip", bomb, 1U << 20U);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, 413);
  EXPECT_THAT(decoded.error().message, HasSubstr("1048576"));
  // A bomb in a bomb: the output of the outer one is limited too.
  const auto twice = decode_content("gzip, gzip", gzipped(bomb), 1U << 10U);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, 413);
}

TEST(DecodeContent, TheLimitIsExact) {
  EXPECT_TRUE(decode_content("gzip", gzipped(std::string(1000, 'x')), 1000));
  EXPECT_FALSE(decode_content("gzip", gzipped(std::string(1001, 'x')), 1000));
}

TEST(DeflateMessage, IsUndoneByMessageInflater) {
  for (const std::string& data :
       {""s, "a"s, std::string(100000, 'a'), noise(1), noise(16384), noise(100000)}) {
    std::string packed = "p";
    deflate_message(data, packed);
    EXPECT_EQ(inflated(std::string_view(packed).substr(1), kLimit), data);
  }
}

TEST(DeflateMessage, KeepsNoContext) {
  std::string first;
  std::string second;
  deflate_message("the same text", first);
  deflate_message("the same text", second);
  EXPECT_EQ(first, second);
}

TEST(MessageInflater, RefusesDataThatBreaksOff) {
  std::string packed;
  deflate_message(noise(300) + std::string(300, 'a'), packed);
  for (std::size_t size = 1; size < packed.size(); ++size) {
    const auto out = inflated(std::string_view(packed).substr(0, size), kLimit);
    // Only a cut at the end of the data can happen to fall between two blocks.
    ASSERT_FALSE(out) << size << " of " << packed.size();
    EXPECT_EQ(out.error().code, 1007);
  }
}

TEST(MessageInflater, RefusesBombs) {
  std::string bomb;
  deflate_message(std::string(64U << 20U, '0'), bomb);
  const auto out = inflated(bomb, 1U << 20U);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, 1009);
}

TEST(MessageInflater, TheLimitIsExact) {
  std::string packed;
  deflate_message(std::string(1000, 'x'), packed);
  EXPECT_TRUE(inflated(packed, 1000));
  EXPECT_FALSE(inflated(packed, 999));
}

}  // namespace
}  // namespace sluice
