// Streamable HTTP, and what both transports over HTTP share.

#include <algorithm>
#include <charconv>
#include <chrono>

#include "fault_server.hpp"
#include "json/members.hpp"
#include "socket.hpp"

namespace sluice::faults {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\n";
constexpr std::string_view kChunked = "Transfer-Encoding: chunked\r\n";
constexpr std::string_view kEvents = "Content-Type: text/event-stream\r\n";

std::string with_length(std::string_view head, std::string_view body) {
  return std::string(head) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

std::string redirection(std::string_view status, std::string_view to) {
  return with_length(
      "HTTP/1.1 " + std::string(status) + " Elsewhere\r\nLocation: " + std::string(to) + "\r\n",
      {});
}

std::string hex(std::size_t number) {
  char digits[16];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), number, 16);
  return {std::begin(digits), end};
}

bool breaks_off(Kind kind) {
  return kind == Kind::break_and_resume || kind == Kind::resume_duplicates ||
         kind == Kind::resume_refused || kind == Kind::resume_endless ||
         kind == Kind::retry_absurd || kind == Kind::retry_zero || kind == Kind::odd_event_ids;
}

}  // namespace

void FaultServer::take_http(std::size_t connection) {
  for (;;) {
    const auto at = connections_.find(connection);
    if (at == connections_.end() || at->second.socket != nullptr) return;
    std::string& input = at->second.input;
    bool found = false;
    HttpRequestHead head;
    if (!heads_.parse(input, found, head)) return complain("the client sends no HTTP: " + input);
    if (!found || input.size() < head.size + head.content_length) return;
    // The views of the head point into the input.
    const std::string whole = std::exchange(input, {});
    if (!heads_.parse(whole, found, head)) return;
    input = whole.substr(head.size + head.content_length);
    take_request(connection, head.request,
                 std::string_view(whole).substr(head.size, head.content_length));
  }
}

void FaultServer::take_request(std::size_t connection, const HttpRequest& request,
                               std::string_view body) {
  if (plan_.transport == Transport::websocket) return shake_hands(connection, request);
  if (plan_.transport == Transport::sse) {
    return request.method == Method::get ? open_events(connection) : take_post(connection, body);
  }
  if (request.method == Method::get) return get(connection, request);
  if (request.method == Method::post) return post(connection, request, body);
  reply_shortly(connection, "204 No Content");
}

void FaultServer::reply_shortly(std::size_t connection, std::string_view head,
                                std::string_view body, Kind manner) {
  deliver(connection, with_length("HTTP/1.1 " + std::string(head) + "\r\n", body), manner,
          Place::refusal);
}

std::string FaultServer::session_field(const json::object& request) {
  if (text_at(request, "method") != "initialize") return {};
  if (plan_.connecting->kind == Kind::odd_session_id) {
    static const std::string kOdd[] = {"", "a b", "\xc3\xbc", std::string(5000, 'x')};
    return "Mcp-Session-Id: " + dice_.pick(kOdd) + "\r\n";
  }
  return "Mcp-Session-Id: session-" + std::to_string(++sessions_) + "\r\n";
}

void FaultServer::post(std::size_t connection, const HttpRequest& request, std::string_view body) {
  const std::optional<json::object> message = read(body);
  if (!message) return reply_shortly(connection, "202 Accepted");
  const std::string_view method = text_at(*message, "method");
  if (sessions_ > 0 && method != "initialize" && method != "server/discover" &&
      request.header(KnownHeader::mcp_session_id) != "session-" + std::to_string(sessions_)) {
    complain("a request without the session's id: " + std::string(body.substr(0, 200)));
  }
  const Fault& fault = fault_for(*message);
  if (fault.kind == Kind::forgotten_once || fault.kind == Kind::forgotten_always) {
    return reply_shortly(connection, "404 Not Found");
  }
  if (fault.kind == Kind::redirect_loop) {
    // With these two, a client that follows sends the same request again.
    return deliver(connection,
                   redirection(dice_.one_in(2) ? "307" : "308",
                               request.target == "/mcp" ? "/elsewhere" : "/mcp"),
                   Kind::none, Place::refusal);
  }
  reply(connection, *message, fault, texts_for(*message, fault));
}

void FaultServer::reply(std::size_t connection, const json::object& request, const Fault& fault,
                        const Texts& texts) {
  if (fault.kind == Kind::silent || reply_wrongly(connection, texts, fault)) return;
  const bool is_legacy = plan_.revision->era == Era::legacy;
  std::string extra = session_field(request);
  if (fault.kind == Kind::session_changes) extra = "Mcp-Session-Id: another\r\n";
  if (fault.kind == Kind::answer_on_get || fault.kind == Kind::answer_only_on_get) {
    if (standalone_) send(*standalone_, event("", texts.back()));
    if (fault.kind == Kind::answer_only_on_get) return reply_shortly(connection, "202 Accepted");
  }
  if (fault.kind == Kind::few_interims) {
    for (std::size_t i = dice_.below(16); i > 0; --i) {
      send(connection, dice_.one_in(2) ? "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
                                       : "HTTP/1.1 100 Continue\r\n\r\n");
    }
  }
  const bool is_json = texts.size() == 1 && fault.kind != Kind::no_end_of_stream &&
                       !breaks_off(fault.kind) && dice_.one_in(2);
  if (!is_json) {
    const std::size_t number = streams_.size() + 1;
    streams_[number] = {.texts = texts, .fault = &fault};
    return reply_events(connection, std::string(kOk) + extra + std::string(kEvents),
                        is_legacy ? number : 0, 0, fault);
  }
  static constexpr std::string_view kTypes[] = {"application/json",
                                                "Application/JSON; charset=utf-8"};
  extra.append("Content-Type: ").append(dice_.pick(kTypes)).append("\r\n");
  const std::string& body = texts.back();
  const std::size_t way = fault.kind == Kind::chunk_extensions ? 1 : dice_.below(3);
  if (way == 0) return deliver(connection, with_length(std::string(kOk) + extra, body), fault.kind);
  if (way == 1) {
    std::string bytes = std::string(kOk) + extra + "Transfer-Encoding: chunked\r\n\r\n";
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t length =
          std::max(std::size_t{1}, draw_place(std::string_view(body).substr(at)));
      bytes.append(dice_.one_in(2) ? "00" : "").append(hex(length));
      if (fault.kind == Kind::chunk_extensions) bytes.append(R"(;a;b="c;\"d";e=f)");
      bytes.append("\r\n").append(body, at, length).append("\r\n");
      at += length;
    }
    return deliver(connection,
                   bytes + "0\r\n" + (dice_.one_in(3) ? "X-Trailer: 1\r\n\r\n" : "\r\n"),
                   fault.kind);
  }
  deliver(connection, std::string(kOk) + extra + "Connection: close\r\n\r\n" + body, fault.kind);
  end(connection, Step::Kind::end);
}

/// Sends a stream's events from `from` on; `stream` 0: without ids. The head lacks how long it is.
void FaultServer::reply_events(std::size_t connection, const std::string& head, std::size_t stream,
                               std::size_t from, const Fault& fault) {
  const auto deliver_with = [&](std::string_view fields, std::string_view rest) {
    const std::string whole = head + std::string(fields) + "\r\n";
    deliver(connection, whole + std::string(rest), fault.kind, Place::answer, whole.size());
  };
  const auto id = [stream](std::size_t index) {
    return stream == 0 ? std::string() : std::to_string(stream) + "-" + std::to_string(index);
  };
  const Texts& texts =
      streams_.contains(stream) ? streams_.at(stream).texts : streams_.rbegin()->second.texts;
  std::string body = dice_.one_in(4) ? "\xEF\xBB\xBF" : "";
  // Events are numbered from 1; the one without data that may come first is 0.
  if (from == 0 && (breaks_off(fault.kind) || dice_.one_in(3))) {
    body.append("id: ").append(id(0)).append("\ndata:\n\n");
  }
  std::size_t until = texts.size();
  if (breaks_off(fault.kind)) {
    until = from == 0 ? dice_.below(texts.size()) : from;
    if (fault.kind == Kind::retry_absurd) {
      static constexpr std::string_view kAbsurd[] = {"99999999999", "9223372036854775807",
                                                     "9223372036854775808", "18446744073709551615"};
      body.append("retry: ").append(dice_.pick(kAbsurd)).append("\n\n");
    }
    if (fault.kind == Kind::odd_event_ids) {
      static const std::string kOdd[] = {
          "\x01", "\xc3\xbc", "a\tb", "a: b", std::string(5000, 'x'), "\xff\xfe", "0"};
      streams_.at(stream).odd_id = dice_.pick(kOdd);
      body.append("id: ").append(streams_.at(stream).odd_id).append("\ndata:\n\n");
      until = 0;
    }
    if (fault.kind == Kind::retry_zero) body.append("retry: 0\n\n");
    // Each event is a success, after which the client is as patient as at first.
    if (fault.kind == Kind::resume_endless && dice_.one_in(2)) {
      body.append("retry: 1000\n\n");
      body.append("id: ").append(id(until)).append("\ndata:\n\n");
    }
  }
  for (std::size_t i = from; i < until; ++i) {
    body.append(event(id(i + 1), texts[i]));
    if (dice_.one_in(4)) body.append(": a comment ñ語😀\n\n");
  }
  if (fault.kind == Kind::no_end_of_stream) {
    unended_.insert(connection);
    deliver_with({}, body);
    for (int i = 0; i < 1000; ++i) send(connection, ": still here\n\n", 10s);
    return;
  }
  if (dice_.one_in(3) && !breaks_off(fault.kind)) {
    return deliver_with("Content-Length: " + std::to_string(body.size()) + "\r\n", body);
  }
  if (dice_.one_in(2)) {
    deliver_with("Connection: close\r\n", body);
  } else if (body.empty()) {
    deliver_with(kChunked, "0\r\n\r\n");
  } else {
    // What breaks off may lack its last chunk.
    const bool is_whole = !breaks_off(fault.kind) || dice_.one_in(2);
    deliver_with(kChunked,
                 hex(body.size()) + "\r\n" + body + "\r\n" + (is_whole ? "0\r\n\r\n" : ""));
    if (is_whole) return;
  }
  end(connection, breaks_off(fault.kind) && dice_.one_in(3) ? Step::Kind::reset : Step::Kind::end);
}

void FaultServer::get(std::size_t connection, const HttpRequest& request) {
  const std::string_view last = request.header(KnownHeader::last_event_id);
  if (last.empty() || last == "s") return listen(connection);
  const auto found = find_event(last);
  if (!found) {
    complain("a stream is resumed from an event that never was: " + std::string(last));
    return reply_shortly(connection, "400 Bad Request");
  }
  const auto [number, index] = *found;
  Stream& stream = streams_.at(number);
  const Fault& fault = *stream.fault;
  if (fault.kind == Kind::resume_refused) {
    static constexpr std::string_view kRefusals[] = {"400 Bad Request", "404 Not Found", "410 Gone",
                                                     "503 Busy", "307 Elsewhere"};
    return reply_shortly(connection, dice_.pick(kRefusals));
  }
  const bool is_spoilt = fault.kind == Kind::retry_zero || is_cut(fault.kind);
  const bool goes_on = fault.kind == Kind::resume_endless || (is_spoilt && ++stream.resumed < 3);
  reply_events(connection, std::string(kOk) + std::string(kEvents), number,
               fault.kind == Kind::resume_duplicates ? 0 : index,
               goes_on ? fault : fault_of(Kind::none));
}

/// The stream of messages that belong to no request.
void FaultServer::listen(std::size_t connection) {
  static constexpr Kind kRefusals[] = {Kind::status, Kind::redirect,     Kind::html,
                                       Kind::gzip,   Kind::empty_events, Kind::garbage,
                                       Kind::empty,  Kind::accepted};
  Kind manner = manner_of(plan_.connecting->kind, Place::listening);
  const bool is_planned = manner != Kind::none;
  if (!is_planned && dice_.one_in(4)) manner = dice_.pick(kManners);
  if (!is_planned && dice_.one_in(3)) {
    if (dice_.one_in(8)) return end(connection, Step::Kind::reset);
    return deliver(connection, wrong_reply(dice_.pick(kRefusals), {}), manner, Place::listening);
  }
  standalone_ = connection;
  // One that ends again and again is asked for again and again, but not at once.
  const std::string events = "retry: 1000\n\n" + event("s", log_message(kListener));
  deliver(connection, std::string(kOk) + std::string(kEvents) + "\r\n" + events, manner,
          Place::listening);
  if (manner == Kind::none && dice_.one_in(4)) {
    end(connection, dice_.one_in(2) ? Step::Kind::end : Step::Kind::reset, 10ms);
  }
}

std::optional<std::pair<std::size_t, std::size_t>> FaultServer::find_event(std::string_view id) {
  for (const auto& [number, stream] : streams_) {
    if (stream.odd_id == id) return std::pair(number, std::size_t{0});
  }
  std::size_t number = 0;
  std::size_t index = 0;
  const char* const end = id.data() + id.size();
  const auto [dash, error] = std::from_chars(id.data(), end, number);
  const auto found = streams_.find(number);
  if (error != std::errc() || dash == end || *dash != '-' || found == streams_.end() ||
      std::from_chars(dash + 1, end, index).ptr != end || index > found->second.texts.size()) {
    return std::nullopt;
  }
  return std::pair(number, index);
}

/// An event in any of the forms that mean the same.
std::string FaultServer::event(std::string_view id, std::string_view text) {
  static constexpr std::string_view kEnds[] = {"\n", "\r\n", "\r"};
  const std::string_view end = dice_.pick(kEnds);
  std::string out;
  if (dice_.one_in(3)) out.append("event: message").append(end);
  if (!id.empty()) out.append("id:").append(id).append(end);
  // Between its first bracket and what follows, JSON may have a line break.
  const bool is_parted = text.size() > 1 && text[0] == '{' && dice_.one_in(4);
  if (is_parted) {
    out.append("data: {").append(end);
    text.remove_prefix(1);
  }
  out.append(dice_.one_in(2) ? "data: " : "data:").append(text).append(end);
  if (dice_.one_in(4)) out.append("unknown: field").append(end);
  return out.append(end);
}

/// Faults whose reply holds no message. Returns whether `fault` is one.
bool FaultServer::reply_wrongly(std::size_t connection, const Texts& texts, const Fault& fault) {
  const Kind manner = manner_of(fault.kind, Place::refusal);
  const std::string bytes =
      wrong_reply(manner == Kind::none ? fault.kind : plan_.refusal->kind, texts);
  if (bytes.empty()) return false;
  deliver(connection, bytes, manner, Place::refusal);
  return true;
}

/// A reply that holds no message, or empty if that is not what `kind` is.
std::string FaultServer::wrong_reply(Kind kind, const Texts& texts) {
  static constexpr std::string_view kStatuses[] = {
      "400 Bad Request", "401 Unauthorized",      "403 Forbidden", "405 Method Not Allowed",
      "406 No",          "429 Too Many Requests", "500 Broken",    "502 Bad Gateway",
      "503 Busy",        "504 Gateway Timeout",   "599 Unheard Of"};
  static constexpr std::string_view kRedirects[] = {"301", "302", "303", "307", "308"};
  const std::string head(kOk);
  const std::string json = head + "Content-Type: application/json\r\n";
  const std::string no = "<b>" + std::string(kCharacters) + "</b>";
  switch (kind) {
    case Kind::status:
      return with_length("HTTP/1.1 " + std::string(dice_.pick(kStatuses)) + "\r\n",
                         dice_.one_in(2) ? "" : no);
    case Kind::unavailable:
      return with_length("HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n", {});
    case Kind::redirect:
      return redirection(dice_.pick(kRedirects), "/elsewhere");
    case Kind::html:
      return with_length(head + "Content-Type: text/html\r\n", "<html>Log in" + no + "</html>");
    case Kind::gzip:
      return with_length(json + "Content-Encoding: gzip\r\n", "\x1f\x8b\x08\x01\x02\x03");
    case Kind::empty:
      return with_length(json, {});
    case Kind::accepted:
      return with_length("HTTP/1.1 202 Accepted\r\n", {});
    case Kind::empty_events:
      return with_length(head + std::string(kEvents), dice_.one_in(2) ? "" : ": ñ語😀\n\n");
    case Kind::bad_chunk: {
      static constexpr std::string_view kBad[] = {"xyz\r\n", "-1\r\n{}", "ffffffffffffffffff\r\n{}",
                                                  "2\r\n{}{}\r\n"};
      return json + "Transfer-Encoding: chunked\r\n\r\n" + std::string(dice_.pick(kBad)) +
             std::string(64, ' ');
    }
    case Kind::huge_header:
      return with_length(json + "X: " + std::string(65 << 10, 'x') + "\r\n", "{}");
    case Kind::many_headers: {
      std::string many;
      for (int i = 0; i < 9000; ++i) many.append("X-Y: z\r\n");
      return with_length(json + many, "{}");
    }
    case Kind::interim_storm: {
      std::string storm;
      for (int i = 0; i < 100; ++i) storm.append("HTTP/1.1 103 Early Hints\r\n\r\n");
      return storm + with_length(json, texts.empty() ? std::string() : texts.back());
    }
    case Kind::garbage: {
      static constexpr std::string_view kGarbage[] = {
          "HTTP/2 200 OK\r\n\r\n", "SSH-2.0-OpenSSH_9\r\n", "220 mail ESMTP\r\n\r\n",
          "HTTP/1.1 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"};
      return std::string(dice_.pick(kGarbage)) + std::string(64, '\n');
    }
    default:
      return {};
  }
}

}  // namespace sluice::faults
