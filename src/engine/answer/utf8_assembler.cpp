#include "engine/answer/utf8_assembler.hpp"

#include <cstddef>

#include "core/text/utf8.hpp"

namespace sluice {

std::string Utf8Assembler::push(std::string_view bytes) {
  pending_ += bytes;
  const std::size_t complete = complete_utf8_prefix(pending_);
  std::string text;
  append_utf8(text, std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string Utf8Assembler::finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return std::string(unfinished ? kReplacementCharacter : "");
}

}  // namespace sluice
