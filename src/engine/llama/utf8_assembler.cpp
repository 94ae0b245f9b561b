#include "engine/llama/utf8_assembler.hpp"

#include <cstddef>

#include "core/utf8.hpp"

namespace sluice {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Copies `text`, which does not end inside a character, with what is malformed replaced.
std::string replace_malformed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t valid = 1;
    while (valid <= 4 && valid <= text.size() && !is_valid_utf8(text.substr(0, valid))) ++valid;
    if (valid <= 4 && valid <= text.size()) {
      out += text.substr(0, valid);
      text.remove_prefix(valid);
      continue;
    }
    // The longest start of a character that stands here, at least one byte.
    std::size_t broken = 1;
    while (broken < 3 && broken < text.size() &&
           complete_utf8_prefix(text.substr(0, broken + 1)) == 0) {
      ++broken;
    }
    out += kReplacement;
    text.remove_prefix(broken);
  }
  return out;
}

}  // namespace

std::string Utf8Assembler::push(std::string_view bytes) {
  pending_ += bytes;
  const std::size_t complete = complete_utf8_prefix(pending_);
  std::string text = pending_.substr(0, complete);
  pending_.erase(0, complete);
  return is_valid_utf8(text) ? text : replace_malformed(text);
}

std::string Utf8Assembler::finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return std::string(unfinished ? kReplacement : "");
}

}  // namespace sluice
