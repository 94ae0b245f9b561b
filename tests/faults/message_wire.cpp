// Transports that carry messages both ways: lines, WebSocket, HTTP with SSE.

#include <algorithm>
#include <chrono>

#include "fault_server.hpp"
#include "json/members.hpp"
#include "socket.hpp"

namespace sluice::faults {

using namespace std::chrono_literals;

void FaultServer::take_message(std::size_t connection, std::string_view text) {
  const std::optional<json::object> request = read(text);
  if (!request) return;
  const Fault& fault = fault_for(*request);
  const bool is_initialize = text_at(*request, "method") == "initialize";
  Texts texts = texts_for(*request, fault);
  if (is_initialize) ++sessions_;
  if (fault.kind == Kind::reordered && attempts_.size() < plan_.calls.size()) {
    held_ = std::move(texts);
    return;
  }
  say(connection, texts, fault);
  if (!held_.empty()) say(connection, std::exchange(held_, {}), fault_of(Kind::none));
}

void FaultServer::say(std::size_t connection, const Texts& texts, const Fault& fault) {
  std::string bytes;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    bytes.append(frame(texts[i], fault, i + 1 == texts.size()));
  }
  deliver(connection, bytes, fault.kind);
}

std::string FaultServer::frame(const std::string& text, const Fault& fault, bool is_answer) {
  std::string out;
  if (plan_.transport == Transport::lines) {
    if (fault.kind == Kind::blank_lines) out.append(dice_.one_in(2) ? "\n\n" : "\r\n\n");
    return out.append(text).append(dice_.one_in(2) ? "\n" : "\r\n");
  }
  if (plan_.transport == Transport::sse) return event(dice_.one_in(2) ? "7" : "", text);
  if (fault.kind == Kind::ping_flood) {
    for (int i = 0; i < 200; ++i) append_websocket_frame(out, WebSocketOpcode::ping, "?");
  }
  const auto is = [&](Kind kind) { return is_answer && fault.kind == kind; };
  if (is(Kind::close_1011)) {
    append_websocket_close(out, 1011, dice_.one_in(2) ? "" : "out of order");
  } else if (is(Kind::bad_close_code)) {
    append_websocket_frame(out, WebSocketOpcode::close,
                           dice_.one_in(2) ? std::string_view("\x03\xed", 2) : "\x03");
  } else if (is(Kind::binary)) {
    append_websocket_frame(out, WebSocketOpcode::binary, text);
  } else if (is(Kind::lone_continuation)) {
    append_websocket_frame(out, WebSocketOpcode::continuation, text);
  } else if (is(Kind::fragments) && text.size() > 2) {
    const std::size_t middle = std::clamp(draw_place(text), std::size_t{1}, text.size() - 1);
    const std::size_t start = out.size();
    append_websocket_frame(out, WebSocketOpcode::text, text.substr(0, middle));
    out[start] = static_cast<char>(out[start] & 0x7f);  // not final
    append_websocket_frame(out, WebSocketOpcode::ping, "between");
    append_websocket_frame(out, WebSocketOpcode::continuation, text.substr(middle));
  } else {
    const std::size_t start = out.size();
    append_websocket_frame(out, WebSocketOpcode::text, text, false,
                           is(Kind::masked) ? std::optional<std::uint32_t>(7) : std::nullopt);
    if (is(Kind::reserved_bits)) out[start] = static_cast<char>(out[start] | 0x10);
  }
  return out;
}

void FaultServer::shake_hands(std::size_t connection, const HttpRequest& request) {
  const Fault& fault = *plan_.connecting;
  const Kind refusal = manner_of(fault.kind, Place::refusal);
  if (fault.kind == Kind::status || refusal != Kind::none) {
    static constexpr std::string_view kRefusals[] = {"200 OK", "307 Elsewhere", "404 Not Found",
                                                     "426 Upgrade Required", "503 Busy"};
    return reply_shortly(connection, dice_.pick(kRefusals), dice_.one_in(2) ? "" : kCharacters,
                         refusal);
  }
  std::string accept = websocket_accept_key(request.header(KnownHeader::sec_websocket_key));
  if (fault.kind == Kind::bad_accept) accept.front() = accept.front() == 'A' ? 'B' : 'A';
  std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Accept: " +
      accept + "\r\n";
  if (fault.kind == Kind::unoffered_extension) {
    head.append("Sec-WebSocket-Extensions: permessage-deflate\r\n");
  }
  connections_.at(connection).socket = std::make_unique<Socket>(*this, connection);
  deliver(connection, head.append("\r\n"), manner_of(fault.kind, Place::opening), Place::opening);
}

void FaultServer::open_events(std::size_t connection) {
  const Fault& fault = *plan_.connecting;
  if (reply_wrongly(connection, {}, fault)) return;
  events_ = connection;
  std::string text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
  const auto endpoint = [](std::string_view place) {
    return "event: endpoint\ndata: " + std::string(place) + "\n\n";
  };
  static constexpr std::string_view kBad[] = {"http://", "/a b", "http://127.0.0.1:99999/"};
  static constexpr std::string_view kOther[] = {"//elsewhere/x", "https://127.0.0.1/messages",
                                                "http://elsewhere:1/messages"};
  if (fault.kind == Kind::other_origin) {
    text.append(endpoint(dice_.pick(kOther)));
  } else if (fault.kind == Kind::bad_endpoint) {
    text.append(endpoint(dice_.pick(kBad)));
  } else if (fault.kind != Kind::no_endpoint) {
    text.append(endpoint("/messages"));
    if (fault.kind == Kind::two_endpoints) text.append(endpoint("/elsewhere"));
  }
  deliver(connection, text, manner_of(fault.kind, Place::opening), Place::opening);
}

void FaultServer::take_post(std::size_t connection, std::string_view body) {
  const std::optional<json::object> request = read(body);
  if (!request) return reply_shortly(connection, "202 Accepted");
  const Fault& fault = fault_for(*request);
  const Kind refusal = manner_of(fault.kind, Place::refusal);
  if (fault.kind == Kind::post_status || refusal != Kind::none) {
    return reply_shortly(connection, dice_.one_in(2) ? "400 Bad Request" : "503 Busy",
                         dice_.one_in(2) ? "" : kCharacters, refusal);
  }
  if (fault.kind == Kind::post_reset) return end(connection, Step::Kind::reset);
  if (fault.kind != Kind::post_silent) reply_shortly(connection, "202 Accepted");
  if (events_) take_message(*events_, body);
}

}  // namespace sluice::faults
