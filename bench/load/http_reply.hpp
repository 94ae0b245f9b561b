#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bench {

/// Reads HTTP/1.1 replies from pieces of any size: with a length, chunked, or until the end of the
/// connection. Small and quick rather than complete: it trusts the servers it measures to frame
/// correctly, and says so when they do not.
class HttpReply {
 public:
  /// Takes bytes of one reply; `body(std::string_view)` gets each piece of its body. Returns how
  /// many bytes were used: fewer than given once done() or failed().
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

  /// Ready for the next reply on the same connection.
  void restart();

  [[nodiscard]] bool done() const { return state_ == State::done; }
  [[nodiscard]] bool failed() const { return state_ == State::failed; }
  [[nodiscard]] bool has_head() const { return state_ != State::head && !failed(); }
  [[nodiscard]] int status() const { return status_; }
  /// A field of the head of a reply with status 200 and a body, or empty. `name` is in lower case;
  /// valid until restart().
  [[nodiscard]] std::string_view field(std::string_view name) const;
  /// The end of the connection ends a reply without a length.
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
  std::size_t left_ = 0;  // of the body, the chunk or the line end
  bool last_chunk_ = false;
  std::string partial_;  // an unfinished head or size line
  // The head before this one and what it said: most replies begin with the same bytes.
  std::string last_head_;
  State last_state_ = State::head;
  std::size_t last_length_ = 0;
};

}  // namespace sluice::bench
