#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Turns a model's bytes, which may split and mangle characters, into whole UTF-8 characters. Bytes
/// of an unfinished character wait for the rest; what can never become a character turns into
/// U+FFFD, one for each maximal subpart (Unicode 15, section 3.9). Holds at most 3 bytes.
class Utf8Assembler {
 public:
  /// Takes `bytes`; returns the characters that are complete now, maybe none.
  std::string push(std::string_view bytes);
  /// No more bytes come: U+FFFD if a character is unfinished, else nothing.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace sluice
