#include <string>

#include "links/call_link.hpp"
#include "links/http_reply.hpp"
#include "links/requests.hpp"
#include "links/sse_splitter.hpp"

namespace sluice::bench {
namespace {

/// Streamable HTTP: each call is a POST to /mcp. In revisions with sessions the link begins one
/// first, and keeps it when the connection is reopened.
class HttpLink final : public CallLink, private Connection {
 public:
  HttpLink(Loop& loop, const Revision& revision, const ToolCall& call, LinkEvents& events)
      : Connection(loop), revision_(revision), call_(call), events_(events) {}

  void open() override { loop().open(*this); }

  void call(std::size_t /*slot*/) override {
    body_.clear();
    send(request_);
  }

  void listen() override {
    stage_ = Stage::asking;
    send(listen_request(revision_, session_));
  }

 private:
  enum class Stage : std::uint8_t { greeting, confirming, calling, asking, listening };

  void on_open() override {
    opened_ = true;
    reply_.restart();
    body_.clear();
    if (revision_.era == Era::modern || !session_.empty()) {
      ready();
    } else {
      stage_ = Stage::greeting;
      send(mcp_request(revision_, {}, {}, initialize_message(revision_)));
    }
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    if (stage_ == Stage::listening) return;
    reply_.feed(bytes, [&](std::string_view piece) { body_.append(piece); });
    if (stage_ == Stage::asking && reply_.has_head() && reply_.status() == 200) {
      stage_ = Stage::listening;
      events_.on_listening();
      return;
    }
    if (!reply_.done() && !reply_.failed()) return;
    const int expected = stage_ == Stage::confirming ? 202 : 200;
    if (reply_.failed() || reply_.status() != expected || stage_ == Stage::asking) {
      give_up("status " + std::to_string(reply_.status()) + ": " + body_.substr(0, 200));
      return;
    }
    if (stage_ == Stage::greeting) session_ = reply_.field("mcp-session-id");
    reply_.restart();
    take_reply(now);
  }

  void take_reply(std::int64_t now) {
    if (stage_ == Stage::calling) {
      events_.on_answer(0, body_, now);
    } else if (stage_ == Stage::confirming) {
      ready();
    } else if (session_.empty()) {
      give_up("initialize: no session: " + body_.substr(0, 200));
    } else {
      stage_ = Stage::confirming;
      body_.clear();
      send(mcp_request(revision_, session_, {}, initialized_message()));
    }
  }

  void ready() {
    stage_ = Stage::calling;
    request_ = mcp_request(revision_, session_, call_.tool,
                           tool_call_message(revision_, 1, call_.tool, call_.arguments));
    events_.on_ready();
  }

  /// A kept-alive connection may be closed before a request arrives; the call is then repeated.
  void on_closed(std::string_view why) override {
    const bool is_between = opened_ && stage_ == Stage::calling && body_.empty();
    if (!is_between || reply_.has_head()) events_.on_error(why);
    opened_ = false;
    loop().open(*this);
  }

  void give_up(std::string_view why) {
    events_.on_error(why);
    close();
    loop().open(*this);
  }

  const Revision& revision_;
  const ToolCall& call_;
  LinkEvents& events_;
  HttpReply reply_;
  std::string body_;
  std::string session_;
  std::string request_;
  Stage stage_ = Stage::greeting;
  bool opened_ = false;
};

/// HTTP with SSE: messages are posted on one connection and received on another.
class SseLink final : public CallLink {
 public:
  SseLink(Loop& loop, const Revision& revision, const ToolCall& call, LinkEvents& events)
      : revision_(revision),
        call_(tool_call_message(revision, 1, call.tool, call.arguments)),
        events_(events),
        loop_(loop),
        stream_(loop, *this),
        poster_(loop, *this) {}

  void open() override {
    stage_ = Stage::greeting;
    loop_.open(stream_);
  }

  void call(std::size_t /*slot*/) override { post(request_); }

  void listen() override {
    poster_.close();
    events_.on_listening();
  }

 private:
  enum class Stage : std::uint8_t { greeting, confirming, calling };

  /// GET /sse.
  class Stream final : public Connection {
   public:
    Stream(Loop& loop, SseLink& link) : Connection(loop), link_(link) {}
    void on_open() override {
      reply_.restart();
      splitter_.restart();
      send(event_stream_request("/sse"));
    }
    void on_bytes(std::string_view bytes, std::int64_t now) override {
      reply_.feed(bytes, [&](std::string_view piece) {
        splitter_.feed(piece, [&](std::string_view event) { link_.on_event(event, now); });
      });
      if (!is_open()) return;
      if (reply_.failed() || reply_.done() || (reply_.has_head() && reply_.status() != 200)) {
        link_.give_up("GET /sse: status " + std::to_string(reply_.status()));
      }
    }
    void on_closed(std::string_view why) override { link_.give_up(why); }

   private:
    SseLink& link_;
    HttpReply reply_;
    SseSplitter splitter_;
  };

  /// POST /messages.
  class Poster final : public Connection {
   public:
    Poster(Loop& loop, SseLink& link) : Connection(loop), link_(link) {}
    void on_open() override {
      reply_.restart();
      link_.greet();
    }
    void on_bytes(std::string_view bytes, std::int64_t now) override {
      reply_.feed(bytes, [](std::string_view) {});
      if (!reply_.done() && !reply_.failed()) return;
      if (reply_.failed() || reply_.status() != 202) {
        link_.give_up("POST: status " + std::to_string(reply_.status()));
        return;
      }
      reply_.restart();
      link_.accepted_ = true;
      link_.go_on(now);
    }
    void on_closed(std::string_view why) override { link_.give_up(why); }

   private:
    SseLink& link_;
    HttpReply reply_;
  };

  void on_event(std::string_view event, std::int64_t now) {
    static constexpr std::string_view kData = "data: ";
    const std::size_t at = event.find(kData);
    if (at == std::string_view::npos) return;  // a comment
    const std::string_view data =
        event.substr(at + kData.size(), event.find('\n', at) - at - kData.size());
    if (event.find("event: endpoint") != std::string_view::npos) {
      // The path is relative to /sse, or absolute.
      path_ = (data.starts_with('/') ? "" : "/") + std::string(data);
      loop_.open(poster_);
      return;
    }
    answer_ = data;
    answered_ = true;
    go_on(now);
  }

  void greet() { post(post_request(path_, initialize_message(revision_))); }

  void post(std::string_view request) {
    accepted_ = answered_ = false;
    poster_.send(request);
  }

  /// A post is finished when it has been accepted and, if it is a request, answered, in any order.
  void go_on(std::int64_t now) {
    if (!accepted_ || (!answered_ && stage_ != Stage::confirming)) return;
    switch (stage_) {
      case Stage::greeting:
        if (answer_.find(R"("result":)") == std::string::npos) {
          give_up("initialize: " + answer_.substr(0, 200));
          return;
        }
        stage_ = Stage::confirming;
        post(post_request(path_, initialized_message()));
        return;
      case Stage::confirming:
        stage_ = Stage::calling;
        request_ = post_request(path_, call_);
        events_.on_ready();
        return;
      case Stage::calling:
        events_.on_answer(0, answer_, now);
    }
  }

  /// The session ends when either connection does.
  void give_up(std::string_view why) {
    events_.on_error(why);
    stream_.close();
    poster_.close();
    open();
  }

  const Revision& revision_;
  std::string call_;
  LinkEvents& events_;
  Loop& loop_;
  Stream stream_;
  Poster poster_;
  std::string path_;
  std::string request_;
  std::string answer_;
  Stage stage_ = Stage::greeting;
  bool accepted_ = false;
  bool answered_ = false;
};

}  // namespace

std::unique_ptr<CallLink> make_http_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                         LinkEvents& events) {
  return std::make_unique<HttpLink>(loop, revision, call, events);
}

std::unique_ptr<CallLink> make_sse_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                        LinkEvents& events) {
  return std::make_unique<SseLink>(loop, revision, call, events);
}

}  // namespace sluice::bench
