#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// Splits bytes into lines that end with "\n" or "\r\n". Skips empty lines. Reports a line that is
/// too long, and skips it without keeping it.
class LineReader {
 public:
  struct Next {
    enum class Kind : std::uint8_t {
      none,      // no line until more is appended
      line,      // `line`, without its end, valid until the next call of any member
      too_long,  // a line is too long; reported once, with its first kBeginning bytes in `line`
    };
    Kind kind = Kind::none;
    std::string_view line = {};
  };

  /// `max_line`: bytes of a line, without its end.
  explicit LineReader(std::size_t max_line) : max_line_(max_line) {}

  static constexpr std::size_t kBeginning = 256;

  /// Copies `bytes`. Before appending more, call next() until it returns `none`; then at most one
  /// line and one piece are held.
  void append(std::string_view bytes);
  /// Nothing more will be appended. The rest is a line even without an end.
  void end() { ended_ = true; }
  Next next();
  void clear();

  [[nodiscard]] std::size_t held_bytes() const { return buffer_.capacity(); }
  /// Whether a line has begun and its end has not arrived.
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
