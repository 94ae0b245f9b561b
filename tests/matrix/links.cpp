// The client's ends of the transports.

#include <arpa/inet.h>
#include <array>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "client/link/http_link.hpp"
#include "client/link/line_link.hpp"
#include "client/link/sse_link.hpp"
#include "client/link/websocket_link.hpp"
#include "link.hpp"
#include "net/http/http_reply_parser.hpp"
#include "net/http/sse.hpp"
#include "net/websocket/websocket.hpp"
#include "served.hpp"

namespace sluice::matrix {
namespace {

constexpr int kPatience = 20'000;  // milliseconds

[[noreturn]] void give_up(const std::string& why) {
  throw std::runtime_error(why);
}

void write_all(const Descriptor& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(to.get(), bytes.data(), bytes.size());
    if (written <= 0) give_up("the server takes nothing more");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Waits for data and returns it. Empty when the server has closed its end.
std::string read_some(const Descriptor& from) {
  pollfd watched{.fd = from.get(), .events = POLLIN, .revents = 0};
  if (::poll(&watched, 1, kPatience) != 1) give_up("the server says nothing");
  std::string bytes(65536, '\0');
  const ssize_t size = ::read(from.get(), bytes.data(), bytes.size());
  bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return bytes;
}

Descriptor connect_tcp(std::uint16_t port) {
  Descriptor out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    give_up("cannot connect");
  }
  const int yes = 1;
  ::setsockopt(out.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return out;
}

json::value parsed(std::string_view text) {
  Result<json::value> value = parse_json(text);
  if (!value) give_up("not JSON: " + std::string(text));
  return std::move(*value);
}

bool is_request(const json::value& message) {
  return message.is_array() ||
         (message.get_object().contains("method") && message.get_object().contains("id"));
}

/// An HTTP request on its own connection, and the reply to it.
class Exchange final : private HttpReplySink {
 public:
  Exchange(std::uint16_t port, std::string_view head, std::string_view body)
      : socket_(connect_tcp(port)) {
    std::string request(head);
    request.append("Host: 127.0.0.1\r\nAuthorization: Bearer ").append(Served::kApiKey);
    request.append("\r\nAccept: application/json, text/event-stream\r\n");
    if (!body.empty()) {
      request.append("Content-Type: application/json\r\nContent-Length: ");
      request.append(std::to_string(body.size())).append("\r\n");
    }
    write_all(socket_, request.append("\r\n").append(body));
  }

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] const std::string& session() const { return session_; }

  struct Event {
    std::string type;
    std::string data;
  };
  std::deque<Event> events;  // of the reply; a plain reply counts as one event

  /// Reads what arrives next.
  void read() {
    const std::string bytes = read_some(socket_);
    if (bytes.empty()) {
      over_ = true;
      return;
    }
    if (!parser_.feed(bytes)) give_up("no HTTP: " + bytes);
    if (parser_.done()) over_ = true;
    if (over_ && !is_events_ && !body_.empty()) events.push_back({"message", body_});
  }
  void read_head() {
    while (status_ == 0 && !over_) read();
  }
  void read_all() {
    while (!over_) read();
  }

 private:
  bool on_head(int status, std::span<const HeaderField> headers) override {
    status_ = status;
    for (const HeaderField& field : headers) {
      if (equals_ignoring_case(field.name, "Mcp-Session-Id")) session_ = field.value;
      if (equals_ignoring_case(field.name, "Content-Type")) {
        is_events_ = field.value.starts_with("text/event-stream");
      }
    }
    return true;
  }
  bool on_body(std::string_view bytes) override {
    if (!is_events_) {
      body_.append(bytes);
      return true;
    }
    return decoder_
        .feed(bytes,
              [this](const SseEvent& event) {
                // An event that has only an id says where to resume (SEP-1699).
                if (!event.data.empty()) {
                  events.push_back({std::string(event.type), std::string(event.data)});
                }
              })
        .has_value();
  }

  Descriptor socket_;
  HttpReplyParser parser_{*this, 16384, false};
  SseDecoder decoder_;
  std::string body_;
  std::string session_;
  int status_ = 0;
  bool is_events_ = false;
  bool over_ = false;
};

class StreamableHttp final : public Link {
 public:
  StreamableHttp(Served& served, const Revision& revision)
      : port_(served.port()), revision_(&revision) {}

  void send(const json::value& message) override {
    auto exchange = std::make_unique<Exchange>(port_, "POST /mcp HTTP/1.1\r\n" + fields(message),
                                               to_json(message));
    if (is_request(message)) {
      exchanges_.push_back(std::move(exchange));
      return;
    }
    exchange->read_all();
    if (exchange->status() != 202) give_up("status " + std::to_string(exchange->status()));
  }
  json::value receive() override {
    while (true) {
      for (const auto& each : exchanges_) {
        if (each->events.empty()) continue;
        const std::string text = std::move(each->events.front().data);
        each->events.pop_front();
        if (!each->session().empty()) session_ = each->session();
        return parsed(text);
      }
      std::erase_if(exchanges_, [](const auto& each) { return each->over(); });
      read_what_comes();
    }
  }
  bool leave() override {
    if (revision_->era == Era::legacy && !session_.empty()) return false;
    std::erase_if(exchanges_, [](const auto& each) { return each->over(); });
    exchanges_.pop_back();
    return true;
  }
  void session_begun() override {
    agreed_ = true;
    if (session_.empty()) return;
    exchanges_.push_back(
        std::make_unique<Exchange>(port_, "GET /mcp HTTP/1.1\r\n" + fields({}), ""));
    exchanges_.back()->read_head();
    if (exchanges_.back()->status() != 200) give_up("no stream of the session");
  }

 private:
  [[nodiscard]] std::string fields(const json::value& message) const {
    std::string out;
    const bool modern = revision_->era == Era::modern;
    if (modern || agreed_) {
      out.append("MCP-Protocol-Version: ").append(revision_->name).append("\r\n");
    }
    if (!session_.empty()) out.append("Mcp-Session-Id: ").append(session_).append("\r\n");
    if (!revision_->routing_headers || !message.is_object()) return out;
    const json::object& members = message.get_object();
    const json::value* const method = members.if_contains("method");
    if (method == nullptr) return out;
    out.append("Mcp-Method: ").append(method->get_string()).append("\r\n");
    for (const std::string_view name : {"name", "uri", "taskId"}) {
      const json::value* const params = members.if_contains("params");
      const json::value* const value =
          params == nullptr ? nullptr : params->get_object().if_contains(name);
      if (value != nullptr) out.append("Mcp-Name: ").append(value->get_string()).append("\r\n");
    }
    return out;
  }
  void read_what_comes() {
    std::vector<pollfd> watched;
    for (const auto& each : exchanges_) {
      watched.push_back({.fd = each->descriptor(), .events = POLLIN, .revents = 0});
    }
    if (::poll(watched.data(), watched.size(), kPatience) <= 0) give_up("the server says nothing");
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].revents != 0) exchanges_[i]->read();
    }
  }

  std::uint16_t port_;
  const Revision* revision_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::string session_;
  bool agreed_ = false;
};

/// The transport of 2024-11-05.
class HttpWithSse final : public Link {
 public:
  HttpWithSse(Served& served, const Revision& /*revision*/)
      : port_(served.port()), events_(port_, "GET /sse HTTP/1.1\r\n", "") {
    const Exchange::Event first = next();
    if (first.type != "endpoint") give_up("no endpoint");
    // The endpoint is relative to /sse.
    target_ = "/" + first.data;
  }
  void send(const json::value& message) override {
    Exchange post(port_, "POST " + target_ + " HTTP/1.1\r\n", to_json(message));
    post.read_all();
    if (post.status() != 202) give_up("status " + std::to_string(post.status()));
  }
  json::value receive() override { return parsed(next().data); }

 private:
  Exchange::Event next() {
    while (events_.events.empty()) {
      if (events_.over()) give_up("the event stream is over");
      events_.read();
    }
    Exchange::Event event = std::move(events_.events.front());
    events_.events.pop_front();
    return event;
  }

  std::uint16_t port_;
  Exchange events_;
  std::string target_;
};

class WebSocket final : public Link, private WebSocketEvents {
 public:
  WebSocket(Served& served, const Revision& /*revision*/) : socket_(connect_tcp(served.port())) {
    write_all(socket_,
              "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
              "Authorization: Bearer " +
                  std::string(Served::kApiKey) + "\r\n\r\n");
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      const std::string more = read_some(socket_);
      if (more.empty()) give_up("no WebSocket: " + head);
      head += more;
    }
    if (!head.starts_with("HTTP/1.1 101")) give_up("no WebSocket: " + head);
  }
  void send(const json::value& message) override {
    std::string frame;
    append_websocket_frame(frame, WebSocketOpcode::text, to_json(message), false, 0x12345678U);
    write_all(socket_, frame);
  }
  json::value receive() override {
    while (messages_.empty()) {
      std::string bytes = read_some(socket_);
      if (bytes.empty()) give_up("the WebSocket is over");
      if (!decoder_.feed(bytes, *this)) give_up("no WebSocket frame");
    }
    json::value message = parsed(messages_.front());
    messages_.pop_front();
    return message;
  }

 private:
  void on_message(WebSocketOpcode /*opcode*/, std::string_view payload) override {
    messages_.emplace_back(payload);
  }
  void on_ping(std::string_view /*payload*/) override {}
  void on_pong(std::string_view /*payload*/) override {}
  void on_close(int code, std::string_view reason) override {
    give_up("closed: " + std::to_string(code) + " " + std::string(reason));
  }

  Descriptor socket_;
  WebSocketDecoder decoder_{WebSocketDecoder::Role::client, std::size_t{1} << 20U, false};
  std::deque<std::string> messages_;
};

/// Lines over a pair of pipes, or over one socket for both directions.
class Lines final : public Link {
 public:
  Lines(Descriptor to_server, Descriptor from_server)
      : to_server_(std::move(to_server)), from_server_(std::move(from_server)) {}
  static std::unique_ptr<Link> over_pipes(Served& served, const Revision& /*revision*/) {
    Served::Pipes pipes = served.connect_pipes();
    return std::make_unique<Lines>(std::move(pipes.to_server), std::move(pipes.from_server));
  }
  static std::unique_ptr<Link> over_unix_socket(Served& served, const Revision& /*revision*/) {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    served.unix_path().copy(&to.sun_path[0], sizeof to.sun_path - 1);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      give_up("cannot connect");
    }
    Descriptor other(::dup(socket.get()));
    return std::make_unique<Lines>(std::move(socket), std::move(other));
  }
  void send(const json::value& message) override { write_all(to_server_, to_json(message) + "\n"); }
  json::value receive() override {
    while (received_.find('\n') == std::string::npos) {
      const std::string bytes = read_some(from_server_);
      if (bytes.empty()) give_up("the server has ended the lines");
      received_ += bytes;
    }
    const std::size_t end = received_.find('\n');
    json::value message = parsed(std::string_view(received_).substr(0, end));
    received_.erase(0, end + 1);
    return message;
  }

 private:
  Descriptor to_server_;
  Descriptor from_server_;
  std::string received_;
};

template <class T>
std::unique_ptr<Link> connect(Served& served, const Revision& revision) {
  return std::make_unique<T>(served, revision);
}

std::unique_ptr<ServerLink> http_link(Served& served, EventLoop& loop) {
  return std::make_unique<HttpLink>(
      loop,
      HttpLinkOptions{
          .url = {.scheme = "http", .host = "127.0.0.1", .port = served.port(), .target = "/mcp"},
          .headers = {{"Authorization", "Bearer " + std::string(Served::kApiKey)}}});
}
std::unique_ptr<ServerLink> pipe_link(Served& served, EventLoop& loop) {
  return std::make_unique<LineLink>(loop, [&served]() -> Result<LineEnds> {
    Served::Pipes ends = served.connect_pipes();
    for (const Descriptor* const each : {&ends.from_server, &ends.to_server}) {
      ::fcntl(each->get(), F_SETFL, O_NONBLOCK);
    }
    return LineEnds{.input = std::move(ends.from_server), .output = std::move(ends.to_server)};
  });
}
std::unique_ptr<ServerLink> unix_link(Served& served, EventLoop& loop) {
  return std::make_unique<LineLink>(loop, connect_unix(served.unix_path()));
}

std::unique_ptr<ServerLink> websocket_link(Served& served, EventLoop& loop) {
  return std::make_unique<WebSocketLink>(
      loop,
      WebSocketLinkOptions{
          .url = {.scheme = "ws", .host = "127.0.0.1", .port = served.port(), .target = "/ws"},
          .headers = {{"Authorization", "Bearer " + std::string(Served::kApiKey)}}});
}

std::unique_ptr<ServerLink> sse_link(Served& served, EventLoop& loop) {
  return std::make_unique<SseLink>(
      loop,
      SseLinkOptions{
          .url = {.scheme = "http", .host = "127.0.0.1", .port = served.port(), .target = "/sse"},
          .headers = {{"Authorization", "Bearer " + std::string(Served::kApiKey)}}});
}

constexpr std::array<Transport, 12> kTransports = {{
    {"StreamableHttp", connect<StreamableHttp>},
    {"StreamableHttpWithoutSessions", connect<StreamableHttp>, false},
    {"HttpWithSse", connect<HttpWithSse>},
    {"WebSocket", connect<WebSocket>},
    {"Stdio", Lines::over_pipes},
    {"UnixSocket", Lines::over_unix_socket},
    {"InMemory", nullptr},
    {"HttpLink", nullptr, true, http_link},
    {"SseLink", nullptr, true, sse_link},
    {"WebSocketLink", nullptr, true, websocket_link},
    {"PipeLink", nullptr, true, pipe_link},
    {"UnixLink", nullptr, true, unix_link},
}};

}  // namespace

std::span<const Transport> transports() {
  return kTransports;
}

}  // namespace sluice::matrix
