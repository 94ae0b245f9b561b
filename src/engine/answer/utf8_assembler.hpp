#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Turns a model's bytes, which may split or damage characters, into complete UTF-8 characters. The
/// bytes of an incomplete character wait for the rest. Bytes that can never become a character are
/// replaced by U+FFFD, one per maximal subpart (Unicode 15, section 3.9). Holds at most 3 bytes.
class Utf8Assembler {
 public:
  /// Takes `bytes` and returns the characters that are complete now, possibly none.
  std::string push(std::string_view bytes);
  /// Ends the input. Returns U+FFFD if a character is incomplete, otherwise nothing.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace sluice
