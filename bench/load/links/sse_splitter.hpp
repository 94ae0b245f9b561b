#pragma once

#include <string>
#include <string_view>

namespace sluice::bench {

/// Splits an event stream, which arrives in pieces of any size, into events at the empty lines
/// ("\n\n", which all measured servers write).
class SseSplitter {
 public:
  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    if (!partial_.empty()) {
      const std::size_t before = partial_.size();
      // The end may be split between two pieces.
      partial_.append(bytes.substr(0, 1));
      std::size_t end = partial_.find("\n\n", before - 1);
      if (end == std::string::npos) {
        const std::size_t rest = bytes.find("\n\n");
        if (rest == std::string_view::npos) {
          partial_.append(bytes.substr(1));
          return;
        }
        partial_.append(bytes.substr(1, rest + 1));
        bytes.remove_prefix(rest + 2);
      } else {
        bytes.remove_prefix(1);
      }
      sink(std::string_view(partial_));
      partial_.clear();
    }
    while (!bytes.empty()) {
      const std::size_t end = bytes.find("\n\n");
      if (end == std::string_view::npos) break;
      sink(bytes.substr(0, end + 2));
      bytes.remove_prefix(end + 2);
    }
    partial_.assign(bytes);
  }

  void restart() { partial_.clear(); }

 private:
  std::string partial_;
};

}  // namespace sluice::bench
