#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::bench {

/// Splits the bytes from stdio or a Unix socket, which arrive in pieces of any size, into lines.
class LineSplitter {
 public:
  /// Calls `sink(std::string_view line)` for each line, without its newline.
  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    std::size_t end = bytes.find('\n');
    if (!partial_.empty()) {
      partial_.append(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      const std::string whole = std::exchange(partial_, {});
      sink(std::string_view(whole));
      bytes.remove_prefix(end + 1);
      end = bytes.find('\n');
    }
    for (; end != std::string_view::npos; end = bytes.find('\n')) {
      sink(bytes.substr(0, end));
      bytes.remove_prefix(end + 1);
    }
    partial_.assign(bytes);
  }

  void restart() { partial_.clear(); }

 private:
  std::string partial_;
};

}  // namespace sluice::bench
