#include "net/lines/line_reader.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

using Kind = LineReader::Next::Kind;

/// The lines of `text`, which is appended in pieces of `piece` bytes; "!" for a line that is too
/// long.
std::vector<std::string> read(std::string_view text, std::size_t piece, bool end = false,
                              std::size_t max_line = 10) {
  LineReader reader(max_line);
  std::vector<std::string> lines;
  const auto take = [&] {
    for (LineReader::Next next = reader.next(); next.kind != Kind::none; next = reader.next()) {
      lines.emplace_back(next.kind == Kind::line ? next.line : "!");
    }
  };
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    reader.append(text.substr(0, piece));
    take();
  }
  if (end) reader.end();
  take();
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReader, CutsLinesHoweverTheyCome) {
  const std::string text = "one\ntwo\r\n\n\r\nth\rree\n four \n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_EQ(read(text, piece), (Lines{"one", "two", "th\rree", " four "})) << piece;
  }
}

TEST(LineReader, WhatHasNoEndIsALineAtTheEndOnly) {
  EXPECT_EQ(read("one\ntwo", 2), (Lines{"one"}));
  EXPECT_EQ(read("one\ntwo", 2, true), (Lines{"one", "two"}));
  EXPECT_EQ(read("one\r", 2, true), (Lines{"one"}));
  EXPECT_EQ(read("one\n\r", 2, true), (Lines{"one"}));
}

TEST(LineReader, ALineMayHaveAsManyBytesAsTheLimit) {
  for (std::size_t piece = 1; piece < 16; ++piece) {
    EXPECT_EQ(read("0123456789\n", piece), (Lines{"0123456789"}));
    EXPECT_EQ(read("0123456789\r\n", piece), (Lines{"0123456789"}));
    EXPECT_EQ(read("0123456789a\nb\n", piece), (Lines{"!", "b"})) << piece;
    EXPECT_EQ(read("0123456789a\r\nb\n", piece), (Lines{"!", "b"})) << piece;
    EXPECT_EQ(read("0123456789abcdefghijklmnopqrstuvwxyz\nb\n", piece), (Lines{"!", "b"})) << piece;
    EXPECT_EQ(read("0123456789abc", piece, true), (Lines{"!"})) << piece;
  }
}

TEST(LineReader, TellsHowALineBeginsThatIsTooLong) {
  for (const std::string& text : {std::string(2000, 'x'), std::string(2000, 'x') + "\nok\n"}) {
    LineReader reader(1000);
    reader.append("first\nid 7 ");
    EXPECT_EQ(reader.next().line, "first");
    EXPECT_EQ(reader.next().kind, Kind::none);
    reader.append(text);
    const LineReader::Next next = reader.next();
    ASSERT_EQ(next.kind, Kind::too_long);
    EXPECT_EQ(next.line, "id 7 " + std::string(LineReader::kBeginning - 5, 'x'));
  }
}

TEST(LineReader, DoesNotKeepALineThatIsTooLong) {
  LineReader reader(1000);
  const std::string piece(600, 'x');
  int refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    reader.append(piece);
    while (reader.next().kind == Kind::too_long) ++refused;
    ASSERT_TRUE(reader.in_line());
  }
  EXPECT_EQ(refused, 1);
  reader.append("\nok\n");
  EXPECT_EQ(reader.next().line, "ok");
  EXPECT_EQ(reader.next().kind, Kind::none);
  EXPECT_FALSE(reader.in_line());
}

}  // namespace
}  // namespace sluice
