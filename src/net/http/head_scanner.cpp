#include "net/http/head_scanner.hpp"

#include "core/text/field_value.hpp"
#include "core/text/text.hpp"

namespace sluice {
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
