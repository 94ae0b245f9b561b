#include "links/requests.hpp"

#include <stdexcept>

#include "links/frame_splitter.hpp"

namespace sluice::bench {

std::string initialize_message(const Revision& revision) {
  return R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")" +
         std::string(revision.name) +
         R"(","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}})";
}

std::string_view initialized_message() {
  return R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
}

std::string tool_call_message(const Revision& revision, std::size_t id, std::string_view tool,
                              std::string_view arguments) {
  std::string message = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                        R"(,"method":"tools/call","params":{"name":")";
  message.append(tool).append(R"(","arguments":)").append(arguments).append(R"(,"_meta":{)");
  if (revision.era == Era::modern) {
    message.append(R"("io.modelcontextprotocol/protocolVersion":")").append(revision.name);
    message.append(R"(","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},)"
                   R"("io.modelcontextprotocol/clientCapabilities":{},)");
  }
  message.append(R"("progressToken":1}}})");
  return message;
}

std::string mcp_request(const Revision& revision, std::string_view session, std::string_view tool,
                        std::string_view message) {
  std::string request =
      "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: ";
  request.append(revision.name);
  if (revision.routing_headers && !tool.empty()) {
    request.append("\r\nMcp-Method: tools/call\r\nMcp-Name: ").append(tool);
  }
  if (!session.empty()) request.append("\r\nMcp-Session-Id: ").append(session);
  request.append("\r\nContent-Length: ").append(std::to_string(message.size()));
  request.append("\r\n\r\n").append(message);
  return request;
}

std::string tool_call_request(std::string_view tool, std::string_view arguments) {
  const Revision& revision = newest_revision(Era::modern);
  return mcp_request(revision, {}, tool, tool_call_message(revision, 1, tool, arguments));
}

std::string listen_request(const Revision& revision, std::string_view session) {
  return "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
         "MCP-Protocol-Version: " +
         std::string(revision.name) + "\r\nMcp-Session-Id: " + std::string(session) + "\r\n\r\n";
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

std::string websocket_pong(std::string_view payload) {
  std::string frame = websocket_text(payload);
  frame.front() = static_cast<char>(FrameSplitter::kPong);
  return frame;
}

}  // namespace sluice::bench
