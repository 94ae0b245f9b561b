#include "net/lines/line_reader.hpp"

#include <utility>

#include "core/release_memory.hpp"

namespace sluice {

void LineReader::append(std::string_view bytes) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  buffer_.append(bytes);
}

void LineReader::clear() {
  // A reader that waits for a line holds no memory.
  release_memory(buffer_);
  begin_ = 0;
  scanned_ = 0;
}

LineReader::Next LineReader::next() {
  while (begin_ < buffer_.size()) {
    std::size_t end = buffer_.find('\n', scanned_);
    if (end == std::string::npos && !ended_) {
      if (skipping_) {
        clear();
        return {};
      }
      // One byte more than a line may have can be the '\r' of its end.
      if (buffer_.size() - begin_ > max_line_ + 1) {
        std::string(buffer_, begin_, kBeginning).swap(buffer_);
        begin_ = scanned_ = buffer_.size();
        skipping_ = true;
        return {.kind = Next::Kind::too_long, .line = buffer_};
      }
      scanned_ = buffer_.size();
      return {};
    }
    if (end == std::string::npos) end = buffer_.size();
    std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = end + 1;
    scanned_ = begin_;
    if (std::exchange(skipping_, false)) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > max_line_) {
      return {.kind = Next::Kind::too_long, .line = line.substr(0, kBeginning)};
    }
    if (!line.empty()) return {.kind = Next::Kind::line, .line = line};
  }
  clear();
  return {};
}

}  // namespace sluice
