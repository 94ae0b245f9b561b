#include "wire.hpp"

#include <charconv>
#include <time.h>

namespace sluice::bench {
namespace {

void append_number(std::string& out, std::int64_t value) {
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

/// Appends the synthetic engine's text of chunk `number`, escaped for a JSON string.
void append_text(std::string& out, std::int64_t number, std::int64_t stamp) {
  out.append(R"({\"n\":)");
  append_number(out, number);
  out.append(R"(,\"t_ns\":)");
  append_number(out, stamp);
  out.append(R"(}\n)");
}

void append_members(std::string& out, std::int64_t number, std::int64_t count, std::int64_t stamp) {
  out.append(R"("seq":)");
  append_number(out, number);
  out.append(R"(,"delta":")");
  if (number < count) append_text(out, number, stamp);
  out.append(number < count ? R"(","end":false)" : R"(","end":true)");
}

void append_pushed(std::string& out, std::int64_t number, std::int64_t count, std::int64_t stamp) {
  out.append(R"({"jsonrpc":"2.0","method":"run","params":{"stream_id":"abcdefghijklmnop",)");
  append_members(out, number, count, stamp);
  out.append("}}");
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void append_http_chunk_size(std::string& out, std::size_t length) {
  char digits[18];
  char* end = std::to_chars(digits, digits + 16, length, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(digits, end);
}

void append_chunk(std::string& out, Form form, std::int64_t number, std::int64_t count,
                  std::int64_t stamp) {
  switch (form) {
    case Form::call:
      out.append(R"(data: {"jsonrpc":"2.0","method":"notifications/progress","params":{)"
                 R"("progressToken":1,"progress":)");
      append_number(out, number + 1);
      out.append(R"(,"message":")");
      append_text(out, number, stamp);
      out.append("\"}}\n\n");
      return;
    case Form::events:
      out.append("id: ");
      append_number(out, number);
      out.append("\ndata: ");
      append_pushed(out, number, count, stamp);
      out.append("\n\n");
      return;
    case Form::frames: {
      static constexpr std::size_t kHeader = 4;
      const std::size_t mark = out.size();
      out.append(kHeader, '\0');
      append_pushed(out, number, count, stamp);
      const std::size_t length = out.size() - mark - kHeader;
      out[mark] = '\x81';
      out[mark + 1] = 126;
      out[mark + 2] = static_cast<char>(length >> 8U);
      out[mark + 3] = static_cast<char>(length & 0xffU);
      return;
    }
    case Form::elements:
      out.push_back('{');
      append_members(out, number, count, stamp);
      out.push_back('}');
      return;
  }
}

void append_end(std::string& out, Form form, std::int64_t count) {
  std::string last;
  if (form == Form::call) {
    last =
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
        "\"done\"}],\"resultType\":\"complete\"}}\n\n";
  } else {
    append_chunk(last, form, count, count, 0);
  }
  if (form == Form::frames || form == Form::elements) {
    out.append(last);
    return;
  }
  append_http_chunk_size(out, last.size());
  out.append(last).append("\r\n0\r\n\r\n");
}

void append_event_stream_head(std::string& out) {
  out.append(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
      "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n\r\n");
}

void append_upgrade_reply(std::string& out) {
  // The answer to the sample key of RFC 6455, section 1.3, which the load generator sends.
  out.append(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
}

void append_json_reply(std::string& out, std::string_view body) {
  out.append("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ");
  append_number(out, static_cast<std::int64_t>(body.size()));
  out.append("\r\n\r\n").append(body);
}

std::string_view run_reply_body() {
  return R"({"jsonrpc":"2.0","id":1,"result":{"stream_id":"abcdefghijklmnop",)"
         R"("status":"streaming_started"}})";
}

std::string_view poll_body_prefix() {
  return R"({"jsonrpc":"2.0","id":1,"result":{"stream_id":"abcdefghijklmnop","chunks":[)";
}

std::string_view poll_body_suffix(bool has_more) {
  return has_more ? R"(],"has_more":true}})" : R"(],"has_more":false}})";
}

}  // namespace sluice::bench
