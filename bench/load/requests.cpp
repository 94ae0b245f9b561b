#include "requests.hpp"

#include <stdexcept>

namespace sluice::bench {

std::string tool_call_request(std::string_view tool, std::string_view arguments) {
  std::string body = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")";
  body.append(tool).append(R"(","arguments":)").append(arguments);
  body.append(R"(,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
              R"("io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},)"
              R"("io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}}})");
  std::string request =
      "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
      "Mcp-Method: tools/call\r\nMcp-Name: ";
  request.append(tool);
  request.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  request.append("\r\n\r\n").append(body);
  return request;
}

std::string run_message(std::int64_t count, std::int64_t interval_us) {
  return R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"x","stream":true,"count":)" +
         std::to_string(count) + R"(,"interval_us":)" + std::to_string(interval_us) + "}}";
}

std::string poll_message(std::string_view stream_id, std::int64_t from_seq, std::int64_t wait_ms,
                         std::int64_t max_chunks) {
  const std::string bound =
      max_chunks == 0 ? std::string() : R"(,"max_chunks":)" + std::to_string(max_chunks);
  return R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream_id":")" +
         std::string(stream_id) + R"(","from_seq":)" + std::to_string(from_seq) + R"(,"wait_ms":)" +
         std::to_string(wait_ms) + bound + "}}";
}

std::string post_request(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string event_stream_request(std::string_view path) {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n";
}

std::string upgrade_request(std::string_view path) {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}

std::string websocket_text(std::string_view text) {
  if (text.size() > 0xffff) throw std::runtime_error("message too long for the load");
  std::string frame = "\x81";
  if (text.size() < 126) {
    frame.push_back(static_cast<char>(0x80U | text.size()));
  } else {
    frame.push_back(static_cast<char>(0x80U | 126U));
    frame.push_back(static_cast<char>(text.size() >> 8U));
    frame.push_back(static_cast<char>(text.size() & 0xffU));
  }
  frame.append(4, '\0').append(text);
  return frame;
}

}  // namespace sluice::bench
