// The line reader. However the bytes are split, it finds the same lines as a plain search for
// newlines, and holds at most one line and one piece.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/lines/line_reader.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

constexpr std::size_t kMaxLine = 32;
// Represents a line that is too long; a real line contains no newline.
constexpr std::string_view kTooLong = "\n";

std::vector<std::string> expected(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    lines.emplace_back(line.size() > kMaxLine ? kTooLong : line);
  }
  return lines;
}

void take(LineReader& reader, std::vector<std::string>& lines) {
  for (LineReader::Next next = reader.next(); next.kind != LineReader::Next::Kind::none;
       next = reader.next()) {
    lines.emplace_back(next.kind == LineReader::Next::Kind::line ? next.line : kTooLong);
  }
}

}  // namespace

/// The first byte says how large the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} + 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  LineReader reader(kMaxLine);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    reader.append(text.substr(at, piece));
    take(reader, lines);
  }
  reader.end();
  take(reader, lines);
  require(lines == expected(text));
  require(!reader.in_line() || text.size() > kMaxLine);
  return 0;
}
