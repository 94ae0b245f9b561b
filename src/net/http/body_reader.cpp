#include <algorithm>

#include "core/text/text.hpp"
#include "net/http/http_parser.hpp"

namespace sluice {
namespace {

/// Most bytes in the extensions of one chunk, and in all trailers.
constexpr std::size_t kMaxSkipped = std::size_t{16} << 10U;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Whether `c` may stand in a chunk extension or a trailer: no control character but the tab.
bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7F) || byte == '\t';
}

std::unexpected<Error> malformed(const char* what) {
  return fail(400, std::string("Malformed chunked body: ") + what);
}

}  // namespace

Result<std::size_t> BodyReader::feed(std::string_view input) {
  std::size_t used = 0;
  while (used < input.size() && state_ != State::done) {
    if (state_ == State::data || state_ == State::content) {
      const std::size_t part = std::min(remaining_, input.size() - used);
      make_room(body_, body_.size() + remaining_);
      body_.append(input.substr(used, part));
      used += part;
      remaining_ -= part;
      if (remaining_ == 0) state_ = state_ == State::data ? State::data_cr : State::done;
      continue;
    }
    if (Result<void> taken = take(input[used]); !taken) {
      return std::unexpected(std::move(taken.error()));
    }
    ++used;
  }
  return used;
}

/// Takes one character outside of the data.
Result<void> BodyReader::take(char c) {
  switch (state_) {
    case State::size_first:
      if (hex_value(c) < 0) return malformed("a chunk has no size");
      state_ = State::size;
      return take_size(c);
    case State::size:
    case State::size_space:
    case State::extension:
      return take_size(c);
    case State::size_lf:
      if (c != '\n') return malformed("a line does not end with CRLF");
      state_ = remaining_ == 0 ? State::trailer_first : State::data;
      // Counted for each chunk, because a body that is read as it arrives may have any number of
      // them.
      skipped_ = 0;
      return {};
    case State::data_cr:
      if (c != '\r') return malformed("a chunk is longer than its size");
      state_ = State::data_lf;
      return {};
    case State::data_lf:
      if (c != '\n') return malformed("a chunk is longer than its size");
      state_ = State::size_first;
      return {};
    case State::trailer_first:
    case State::trailer:
      return take_trailer(c);
    case State::trailer_lf:
      if (c != '\n') return malformed("a line does not end with CRLF");
      state_ = State::trailer_first;
      return {};
    case State::end_lf:
      if (c != '\n') return malformed("a line does not end with CRLF");
      state_ = State::done;
      return {};
    case State::data:
    case State::content:
    case State::done:
      break;
  }
  return {};
}

Result<void> BodyReader::take_size(char c) {
  if (c == '\r' && state_ != State::size_space) {
    state_ = State::size_lf;
    return {};
  }
  if (state_ == State::extension) {
    if (!is_text(c)) return malformed("a control character in a chunk extension");
    if (++skipped_ > kMaxSkipped) return fail(431, "The chunk extensions are too long");
    return {};
  }
  if (const int digit = hex_value(c); digit >= 0 && state_ == State::size) {
    remaining_ = remaining_ * 16 + static_cast<std::size_t>(digit);
    if (remaining_ > max_body_ - body_.size()) {
      return fail(413, "The request's body is longer than " + std::to_string(max_body_) +
                           " bytes (max_message, or --max-body of sluice serve)");
    }
    return {};
  }
  // White space may stand between a size and its extension, and nowhere else.
  const bool is_space = c == ' ' || c == '\t';
  if (c != ';' && !is_space) return malformed("a chunk's size is no number");
  state_ = is_space ? State::size_space : State::extension;
  return {};
}

Result<void> BodyReader::take_trailer(char c) {
  if (c == '\r') {
    state_ = state_ == State::trailer_first ? State::end_lf : State::trailer_lf;
    return {};
  }
  if (!is_text(c)) return malformed("a control character in a trailer");
  if (++skipped_ > kMaxSkipped) return fail(431, "The trailers are too long");
  state_ = State::trailer;
  return {};
}

}  // namespace sluice
