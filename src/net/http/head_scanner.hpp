#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/http/http_types.hpp"

namespace sluice {

/// Reads the parts of an HTTP/1.1 head (RFC 9112) from the start of a buffer that may not hold all
/// of it yet. Each step that is `ok` moves at() past what it has read. Views point into the buffer.
class HeadScanner {
 public:
  enum class Outcome : std::uint8_t { ok, incomplete, bad };

  explicit HeadScanner(std::string_view input) : input_(input) {}

  /// How far it has read.
  [[nodiscard]] std::size_t at() const { return at_; }

  /// A token (RFC 9110, section 5.6.2) and the character after it, which must be `end`.
  Outcome token(char end, std::string_view& out);
  /// The name of a known field, and the colon after it. Reads nothing if the field is not known.
  KnownHeader known_name(std::string_view& out);
  /// Visible ASCII and the space after it.
  Outcome target(std::string_view& out);
  /// The rest of a line that ends with CRLF and holds no other control character but tabs.
  Outcome line(std::string_view& out);
  /// Whether the empty line that ends a head is here. If so, reads it.
  Outcome end(bool& is_end);
  /// Whether the line that begins here continues the previous one. Must not be called at the end of
  /// the buffer.
  [[nodiscard]] bool is_folded() const { return input_[at_] == ' ' || input_[at_] == '\t'; }

 private:
  std::string_view input_;
  std::size_t at_ = 0;
};

}  // namespace sluice
