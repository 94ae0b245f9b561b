#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bench {

/// Parses HTTP/1.1 replies from pieces of any size: with a length, chunked, or until the connection
/// ends. It is small and fast rather than complete: it trusts the measured servers to frame
/// correctly, and reports it if they do not.
class HttpReply {
 public:
  /// Takes bytes of one reply and calls `body(std::string_view)` for each piece of its body.
  /// Returns how many bytes were used, which is fewer than given once done() or failed().
  template <class Body>
  std::size_t feed(std::string_view bytes, Body&& body) {
    const std::size_t given = bytes.size();
    while (!bytes.empty() && !done() && !failed()) {
      switch (state_) {
        case State::head:
          bytes.remove_prefix(take_head(bytes));
          break;
        case State::size_line:
          bytes.remove_prefix(take_size_line(bytes));
          break;
        default: {
          const auto piece = bytes.substr(0, left_);
          if (state_ != State::line_end) body(piece);
          bytes.remove_prefix(piece.size());
          took_body(piece.size());
        }
      }
    }
    return given - bytes.size();
  }

  /// Prepares for the next reply on the same connection.
  void restart();

  [[nodiscard]] bool done() const { return state_ == State::done; }
  [[nodiscard]] bool failed() const { return state_ == State::failed; }
  [[nodiscard]] bool has_head() const { return state_ != State::head && !failed(); }
  [[nodiscard]] int status() const { return status_; }
  /// A header field of a reply with status 200 and a body; empty if it is absent. `name` must be in
  /// lower case. Valid until restart().
  [[nodiscard]] std::string_view field(std::string_view name) const;
  /// Whether the reply has no length and ends with the connection.
  [[nodiscard]] bool ends_with_connection() const { return state_ == State::until_close; }

 private:
  enum class State : std::uint8_t {
    head,
    length,
    until_close,
    size_line,
    chunk,
    line_end,
    done,
    failed
  };

  std::size_t take_head(std::string_view bytes);
  void parse_head(std::string_view head);
  std::size_t take_size_line(std::string_view bytes);
  void took_body(std::size_t count);

  State state_ = State::head;
  int status_ = 0;
  std::size_t left_ = 0;  // bytes left of the body, the chunk or the line end
  bool last_chunk_ = false;
  std::string partial_;  // an unfinished head or size line
  // The previous head and its meaning. Most replies begin with the same bytes.
  std::string last_head_;
  State last_state_ = State::head;
  std::size_t last_length_ = 0;
};

}  // namespace sluice::bench
