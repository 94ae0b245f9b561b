#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// Cuts bytes into lines that end with "\n" or "\r\n". Empty lines are passed over; one that is too
/// long is reported and passed over without being kept.
class LineReader {
 public:
  struct Next {
    enum class Kind : std::uint8_t {
      none,      // not before more is appended
      line,      // `line`, without its end, valid until the next call of any member
      too_long,  // a line has more bytes than it may; once for each
    };
    Kind kind = Kind::none;
    std::string_view line = {};
  };

  /// `max_line`: bytes of a line, without its end.
  explicit LineReader(std::size_t max_line) : max_line_(max_line) {}

  /// Copies what came in. Call next() until there is none before appending more: then no more than
  /// one line and one piece is ever held.
  void append(std::string_view bytes);
  /// Nothing will be appended; what is left is a line even without an end.
  void end() { ended_ = true; }
  Next next();
  void clear();

  [[nodiscard]] std::size_t held_bytes() const { return buffer_.capacity(); }
  /// Whether a line has begun and its end has not come.
  [[nodiscard]] bool in_line() const { return skipping_ || begin_ < buffer_.size(); }

 private:
  std::size_t max_line_;
  std::string buffer_;
  std::size_t begin_ = 0;    // of what has not been returned
  std::size_t scanned_ = 0;  // no end of a line between begin_ and here
  bool skipping_ = false;    // up to the end of a line that was too long
  bool ended_ = false;
};

}  // namespace sluice
