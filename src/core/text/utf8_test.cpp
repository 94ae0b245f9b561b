#include "core/text/utf8.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

std::string utf8_of(std::uint32_t code_point) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (code_point < 0x80) return {byte(code_point)};
  if (code_point < 0x800) return {byte(0xC0 | code_point >> 6U), byte(0x80 | (code_point & 0x3F))};
  if (code_point < 0x10000) {
    return {byte(0xE0 | code_point >> 12U), byte(0x80 | (code_point >> 6U & 0x3F)),
            byte(0x80 | (code_point & 0x3F))};
  }
  return {byte(0xF0 | code_point >> 18U), byte(0x80 | (code_point >> 12U & 0x3F)),
          byte(0x80 | (code_point >> 6U & 0x3F)), byte(0x80 | (code_point & 0x3F))};
}

TEST(Utf8, AcceptsEveryCodePointButSurrogates) {
  for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    ASSERT_EQ(is_valid_utf8(utf8_of(code_point)), !surrogate) << std::hex << code_point;
  }
  for (std::uint32_t code_point = 0x110000; code_point <= 0x1FFFFF; ++code_point) {
    ASSERT_FALSE(is_valid_utf8(utf8_of(code_point))) << std::hex << code_point;
  }
}

// Compares every sequence of one, two and three bytes with the set of what utf8_of() produces.
TEST(Utf8, AcceptsNoOtherShortSequence) {
  std::vector<bool> valid(1U << 24U);
  for (std::uint32_t code_point = 0; code_point < 0x10000; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::uint32_t key = 0;
    for (const char c : utf8_of(code_point)) key = key << 8U | static_cast<unsigned char>(c);
    if (code_point >= 0x80) valid[key] = true;
  }
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  for (std::uint32_t a = 0x80; a < 0x100; ++a) {
    ASSERT_FALSE(is_valid_utf8(std::string{byte(a)}));
    for (std::uint32_t b = 0; b < 0x100; ++b) {
      ASSERT_EQ(is_valid_utf8(std::string{byte(a), byte(b)}), valid[a << 8U | b]);
      if (a < 0xE0) continue;
      for (std::uint32_t c = 0; c < 0x100; ++c) {
        ASSERT_EQ(is_valid_utf8(std::string{byte(a), byte(b), byte(c)}),
                  valid[a << 16U | b << 8U | c]);
      }
    }
  }
}

TEST(Utf8, RefusesOverlongForms) {
  for (const std::string_view text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF8\x88\x80\x80\x80", "\xFC\x84\x80\x80\x80\x80"}) {
    EXPECT_FALSE(is_valid_utf8(text));
  }
}

// The check reads eight bytes at a time, so a fault must be found at every offset.
TEST(Utf8, FindsAFaultWhereverItIs) {
  for (std::size_t length = 1; length <= 40; ++length) {
    std::string text(length, 'a');
    ASSERT_TRUE(is_valid_utf8(text));
    for (std::size_t at = 0; at < length; ++at) {
      for (const char bad : {'\x80', '\xFF', '\xC3'}) {
        text[at] = bad;
        ASSERT_FALSE(is_valid_utf8(text)) << length << " " << at;
      }
      text[at] = 'a';
    }
  }
  EXPECT_TRUE(is_valid_utf8(""));
}

TEST(CompleteUtf8Prefix, EndsBeforeAnUnfinishedCharacter) {
  for (const std::uint32_t code_point : {0x61U, 0xE9U, 0x7FFU, 0x800U, 0x20ACU, 0xD7FFU, 0xE000U,
                                         0xFFFFU, 0x10000U, 0x1F600U, 0x10FFFFU}) {
    const std::string character = utf8_of(code_point);
    for (const std::string before : {"", "x", "\xC3\xA9", "\xF0\x9F\x98\x80"}) {
      for (std::size_t cut = 0; cut <= character.size(); ++cut) {
        const bool whole = cut == character.size();
        EXPECT_EQ(complete_utf8_prefix(before + character.substr(0, cut)),
                  before.size() + (whole ? cut : 0))
            << std::hex << code_point << " cut at " << cut;
      }
    }
  }
}

TEST(CompleteUtf8Prefix, DoesNotWaitForWhatCanNeverBecomeACharacter) {
  for (const std::string_view text : {"\x80", "\xFF", "\xC0", "\xF5", "\xE0\x80", "\xED\xA0",
                                      "\xF0\x80", "\xF4\x90", "\x80\x80\x80", "a\xC3x"}) {
    EXPECT_EQ(complete_utf8_prefix(text), text.size());
  }
}

TEST(CompleteUtf8Prefix, LosesNothingHoweverATextIsCut) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\xF4\x8F\xBF\xBF";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::string pending;
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) {
      pending.append(text, at, size);
      const std::size_t complete = complete_utf8_prefix(pending);
      ASSERT_LE(pending.size() - complete, 3U);
      ASSERT_TRUE(is_valid_utf8(pending.substr(0, complete)));
      out.append(pending, 0, complete);
      pending.erase(0, complete);
    }
    EXPECT_EQ(out, text);
    EXPECT_TRUE(pending.empty());
  }
}

TEST(Utf8Control, IsWhatATerminalTakesForMoreThanText) {
  for (const char32_t control :
       {U'\0', U'\n', U'\x1B', U'\x1F', U'\x7F', U'\x80', U'\x9F', U'\u061C', U'\u200E', U'\u200F',
        U'\u2028', U'\u2029', U'\u202A', U'\u202E', U'\u2066', U'\u2069'}) {
    EXPECT_TRUE(is_control(control)) << static_cast<std::uint32_t>(control);
  }
  for (const char32_t other : {U' ', U'~', U'\xA0', U'\u061B', U'\u061D', U'\u200D', U'\u2010',
                               U'\u2027', U'\u202F', U'\u2065', U'\u206A', U'\U0010FFFF'}) {
    EXPECT_FALSE(is_control(other)) << static_cast<std::uint32_t>(other);
  }
}

TEST(Utf8CodePoint, IsThatOfTheCharacter) {
  EXPECT_EQ(code_point_of("a"), U'a');
  EXPECT_EQ(code_point_of("\u00E9"), U'\u00E9');
  EXPECT_EQ(code_point_of("\u202E"), U'\u202E');
  EXPECT_EQ(code_point_of("\U0001F600"), U'\U0001F600');
}

}  // namespace
}  // namespace sluice
