#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::bench {

/// Splits the bytes from a WebSocket server, which arrive in pieces of any size, into frames (RFC
/// 6455, section 5.2). Servers do not mask.
class FrameSplitter {
 public:
  static constexpr unsigned kFinalText = 0x81;
  static constexpr unsigned kClose = 0x88;
  static constexpr unsigned kPing = 0x89;
  static constexpr unsigned kPong = 0x8a;

  /// Calls `sink(unsigned first_byte, std::string_view payload)` for each frame. If it returns
  /// false, the rest is discarded.
  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    if (partial_.empty()) {
      cut(bytes, sink);
    } else {
      partial_.append(bytes);
      const std::string whole = std::exchange(partial_, {});
      cut(whole, sink);
    }
  }

  void restart() { partial_.clear(); }

 private:
  template <class Sink>
  void cut(std::string_view bytes, Sink&& sink) {
    for (;;) {
      std::size_t header = 2;
      if (bytes.size() < header) break;
      std::size_t length = byte(bytes, 1) & 0x7fU;
      if (length >= 126) {
        const std::size_t extra = length == 126 ? 2 : 8;
        header += extra;
        if (bytes.size() < header) break;
        length = 0;
        for (std::size_t i = 2; i < header; ++i) length = length << 8U | byte(bytes, i);
      }
      if (bytes.size() - header < length) break;
      const std::string_view payload = bytes.substr(header, length);
      const unsigned first = byte(bytes, 0);
      bytes.remove_prefix(header + length);
      if (!sink(first, payload)) return;
    }
    partial_.assign(bytes);
  }

  static unsigned byte(std::string_view bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
  }

  std::string partial_;
};

}  // namespace sluice::bench
