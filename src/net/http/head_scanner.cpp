#include "net/http/head_scanner.hpp"

#include <bit>
#include <cstring>

#include "core/text/text.hpp"

namespace sluice {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

/// The first control character in `text` from `at` on, or the text's size. Reads eight bytes at a
/// time.
std::size_t find_control(std::string_view text, std::size_t at) {
  static_assert(std::endian::native == std::endian::little);
  static constexpr std::uint64_t kEach = 0x0101010101010101U;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    // Sets the high bit of each byte that is below 0x20, or DEL. A borrow may also set that of a
    // higher byte, but never that of a lower one, so the lowest bit that is set is right.
    const std::uint64_t below = (word - kEach * 0x20) & ~word;
    const std::uint64_t other = word ^ (kEach * 0x7F);
    const std::uint64_t del = (other - kEach) & ~other;
    const std::uint64_t found = (below | del) & (kEach * 0x80);
    if (found != 0) return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
  }
  while (at < text.size() && !is_control(text[at])) ++at;
  return at;
}

}  // namespace

HeadScanner::Outcome HeadScanner::token(char end, std::string_view& out) {
  std::size_t to = at_;
  while (to < input_.size() && is_token_char(input_[to])) ++to;
  if (to == input_.size()) return Outcome::incomplete;
  if (to == at_ || input_[to] != end) return Outcome::bad;
  out = input_.substr(at_, to - at_);
  at_ = to + 1;
  return Outcome::ok;
}

KnownHeader HeadScanner::known_name(std::string_view& out) {
  const std::string_view near = input_.substr(at_, kLongestKnownHeader + 1);
  const std::size_t size = near.find(':');
  if (size == std::string_view::npos) return KnownHeader::unknown;
  const KnownHeader known = known_header(near.substr(0, size));
  if (known != KnownHeader::unknown) {
    out = near.substr(0, size);
    at_ += size + 1;
  }
  return known;
}

HeadScanner::Outcome HeadScanner::target(std::string_view& out) {
  std::size_t to = at_;
  while (to < input_.size() && input_[to] > 0x20 && input_[to] < 0x7F) ++to;
  if (to == input_.size()) return Outcome::incomplete;
  if (to == at_ || input_[to] != ' ') return Outcome::bad;
  out = input_.substr(at_, to - at_);
  at_ = to + 1;
  return Outcome::ok;
}

HeadScanner::Outcome HeadScanner::line(std::string_view& out) {
  std::size_t to = find_control(input_, at_);
  while (to < input_.size() && input_[to] == '\t') to = find_control(input_, to + 1);
  if (to == input_.size()) return Outcome::incomplete;
  if (input_[to] != '\r') return Outcome::bad;
  if (to + 1 == input_.size()) return Outcome::incomplete;
  if (input_[to + 1] != '\n') return Outcome::bad;
  out = input_.substr(at_, to - at_);
  at_ = to + 2;
  return Outcome::ok;
}

HeadScanner::Outcome HeadScanner::end(bool& is_end) {
  is_end = false;
  if (at_ == input_.size()) return Outcome::incomplete;
  if (input_[at_] != '\r') return Outcome::ok;
  if (at_ + 1 == input_.size()) return Outcome::incomplete;
  if (input_[at_ + 1] != '\n') return Outcome::bad;
  is_end = true;
  at_ += 2;
  return Outcome::ok;
}

}  // namespace sluice
