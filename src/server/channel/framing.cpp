#include "server/channel/framing.hpp"

#include <cstring>

namespace sluice {
namespace {

class SseFraming final : public Framing {
 public:
  std::size_t begin(std::string& out) const override {
    out.append("data: ");
    return 0;
  }
  void end(std::string& out, std::size_t /*mark*/) const override { out.append("\n\n"); }
};

class WebSocketFraming final : public Framing {
 public:
  // Most messages need the 4-byte header, so begin() reserves 4 bytes. end() adjusts them if the
  // header has another length.
  std::size_t begin(std::string& out) const override {
    const std::size_t mark = out.size();
    out.append(kUsualHeader, '\0');
    return mark;
  }

  void end(std::string& out, std::size_t mark) const override {
    static constexpr unsigned char kFinalText = 0x81;
    const std::size_t length = out.size() - mark - kUsualHeader;
    unsigned char header[10] = {kFinalText};
    std::size_t header_length = 0;
    if (length < 126) {
      header[1] = static_cast<unsigned char>(length);
      header_length = 2;
      out.erase(mark, kUsualHeader - header_length);
    } else if (length < 65536) {
      header[1] = 126;
      header[2] = static_cast<unsigned char>(length >> 8U);
      header[3] = static_cast<unsigned char>(length);
      header_length = kUsualHeader;
    } else {
      header[1] = 127;
      for (std::size_t i = 0; i < 8; ++i) {
        header[2 + i] = static_cast<unsigned char>(length >> (56 - 8 * i));
      }
      header_length = sizeof header;
      out.insert(mark, header_length - kUsualHeader, '\0');
    }
    std::memcpy(out.data() + mark, header, header_length);
  }

 private:
  static constexpr std::size_t kUsualHeader = 4;
};

class LineFraming final : public Framing {
 public:
  std::size_t begin(std::string& /*out*/) const override { return 0; }
  void end(std::string& out, std::size_t /*mark*/) const override { out.push_back('\n'); }
};

}  // namespace

const Framing& sse_framing() {
  static const SseFraming framing;
  return framing;
}

const Framing& websocket_framing() {
  static const WebSocketFraming framing;
  return framing;
}

const Framing& line_framing() {
  static const LineFraming framing;
  return framing;
}

}  // namespace sluice
