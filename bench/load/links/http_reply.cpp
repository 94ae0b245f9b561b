#include "links/http_reply.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace sluice::bench {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::size_t kMaxHead = 16384;

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char expected, char given) {
           return expected == std::tolower(static_cast<unsigned char>(given));
         });
}

}  // namespace

void HttpReply::restart() {
  state_ = State::head;
  status_ = 0;
  left_ = 0;
  last_chunk_ = false;
  partial_.clear();
}

std::size_t HttpReply::take_head(std::string_view bytes) {
  if (partial_.empty()) {
    if (!last_head_.empty() && bytes.starts_with(last_head_)) {
      status_ = 200;
      state_ = last_state_;
      left_ = last_length_;
      return last_head_.size();
    }
    if (const auto end = bytes.find(kHeadEnd); end != std::string_view::npos) {
      parse_head(bytes.substr(0, end + kHeadEnd.size()));
      return end + kHeadEnd.size();
    }
  }
  const std::size_t before = partial_.size();
  partial_.append(bytes);
  const std::size_t end = partial_.find(kHeadEnd, before < 3 ? 0 : before - 3);
  if (end == std::string::npos) {
    if (partial_.size() > kMaxHead) state_ = State::failed;
    return bytes.size();
  }
  partial_.resize(end + kHeadEnd.size());
  const std::string head = std::move(partial_);
  partial_.clear();
  parse_head(head);
  return head.size() - before;
}

void HttpReply::parse_head(std::string_view head) {
  if (!head.starts_with("HTTP/1.1 ") ||
      std::from_chars(head.data() + 9, head.data() + 12, status_).ec != std::errc()) {
    state_ = State::failed;
    return;
  }
  state_ = State::until_close;
  left_ = std::numeric_limits<std::size_t>::max();
  if (status_ == 101 || status_ == 202 || status_ == 204) {
    state_ = State::done;
    return;
  }
  std::string_view rest = head;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (starts_with_ignoring_case(line, "content-length:")) {
      const std::size_t digits = line.find_first_of("0123456789");
      if (digits == std::string_view::npos) continue;
      std::from_chars(line.data() + digits, line.data() + line.size(), left_);
      state_ = left_ == 0 ? State::done : State::length;
    } else if (starts_with_ignoring_case(line, "transfer-encoding:")) {
      state_ = State::size_line;
    }
  }
  if (status_ == 200 && state_ != State::done) {
    last_head_ = head;
    last_state_ = state_;
    last_length_ = left_;
  }
}

std::string_view HttpReply::field(std::string_view name) const {
  std::string_view rest = last_head_;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (!starts_with_ignoring_case(line, name)) continue;
    line.remove_prefix(name.size());
    if (!line.starts_with(": ")) continue;
    return line.substr(2);
  }
  return {};
}

std::size_t HttpReply::take_size_line(std::string_view bytes) {
  const std::size_t newline = bytes.find('\n');
  const std::size_t used = newline == std::string_view::npos ? bytes.size() : newline + 1;
  std::string_view line = bytes.substr(0, used);
  if (newline == std::string_view::npos || !partial_.empty()) {
    partial_.append(line);
    if (newline == std::string_view::npos) {
      if (partial_.size() > kMaxHead) state_ = State::failed;
      return used;
    }
    line = partial_;
  }
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
  if (error != std::errc()) {
    state_ = State::failed;
  } else if (left_ == 0) {
    last_chunk_ = true;
    state_ = State::line_end;
    left_ = 2;
  } else {
    state_ = State::chunk;
  }
  partial_.clear();
  return used;
}

void HttpReply::took_body(std::size_t count) {
  left_ -= count;
  if (left_ != 0) return;
  switch (state_) {
    case State::chunk:
      state_ = State::line_end;
      left_ = 2;
      break;
    case State::line_end:
      state_ = last_chunk_ ? State::done : State::size_line;
      break;
    default:
      state_ = State::done;
  }
}

}  // namespace sluice::bench
