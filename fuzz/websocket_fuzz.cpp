// The WebSocket decoder in both roles. Any split of the bytes gives the same events, and the events
// keep their promises.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/text/utf8.hpp"
#include "net/websocket/websocket.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

constexpr std::size_t kMaxMessage = 4096;

struct Events final : WebSocketEvents {
  void on_message(WebSocketOpcode opcode, std::string_view payload) override {
    require(payload.size() <= kMaxMessage);
    require(opcode == WebSocketOpcode::binary || is_valid_utf8(payload));
    note(static_cast<char>(opcode), payload);
  }
  void on_ping(std::string_view payload) override { note('p', payload); }
  void on_pong(std::string_view payload) override { note('q', payload); }
  void on_close(int code, std::string_view reason) override {
    require(code == 1005 || is_sendable_close_code(code));
    note('c', std::to_string(code).append(reason));
  }
  void note(char kind, std::string_view payload) {
    require(kind != 'p' || payload.size() <= 125);
    log.push_back(std::string(1, kind).append(payload));
  }
  std::vector<std::string> log;
};

}  // namespace

/// The first byte chooses the role and the extension, the second the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto role =
      (data[0] & 1U) != 0 ? WebSocketDecoder::Role::client : WebSocketDecoder::Role::server;
  const bool deflate = (data[0] & 2U) != 0;
  const std::size_t step = 1U + data[1] % 64U;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

  Events whole;
  WebSocketDecoder at_once(role, kMaxMessage, deflate);
  std::string input = bytes;
  const Result<void> fed = at_once.feed(input, whole);
  const int code = fed ? 0 : fed.error().code;
  require(code == 0 || code == 1002 || code == 1007 || code == 1009);

  Events pieces;
  WebSocketDecoder in_pieces(role, kMaxMessage, deflate);
  int code_in_pieces = 0;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::string piece = bytes.substr(at, step);
    const Result<void> piece_fed = in_pieces.feed(piece, pieces);
    if (!piece_fed && code_in_pieces == 0) code_in_pieces = piece_fed.error().code;
  }
  require(code == code_in_pieces);
  require(whole.log == pieces.log);
  return 0;
}
