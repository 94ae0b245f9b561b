#include "links/stream_source.hpp"

#include <string>

#include "links/chunk_track.hpp"
#include "links/frame_splitter.hpp"
#include "links/http_reply.hpp"
#include "links/requests.hpp"
#include "links/sse_splitter.hpp"

namespace sluice::bench {
namespace {

/// The common part of the two HTTP deliveries: replies on a kept-alive connection.
class HttpSource : public StreamSource {
 public:
  HttpSource(Loop& loop, StreamEvents& events) : StreamSource(loop), events_(events) {}

  void on_open() override {
    opened_ = true;
    reply_.restart();
    splitter_.restart();
    running_ = false;
    events_.on_ready();
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    while (!bytes.empty() && is_open()) {
      const bool had_head = reply_.has_head();
      bytes.remove_prefix(reply_.feed(bytes, [&](std::string_view piece) { on_body(piece, now); }));
      if (!had_head && reply_.has_head() && reply_.status() == 200) on_head();
      if (reply_.failed() || (reply_.done() && reply_.status() != 200)) {
        give_up("unexpected HTTP reply, status " + std::to_string(reply_.status()));
        return;
      }
      if (reply_.done()) {
        reply_.restart();
        on_reply();
      }
    }
  }

  void on_closed(std::string_view why) override {
    if (reply_.ends_with_connection() && running_) {
      on_reply();
    } else if (running_ || !opened_) {
      events_.on_error(why);
    }
    opened_ = false;
    loop().open(*this);
  }

 protected:
  virtual void on_head() = 0;
  virtual void on_body(std::string_view piece, std::int64_t now) = 0;
  virtual void on_reply() = 0;

  void give_up(std::string_view why) {
    events_.on_error(why);
    running_ = false;
    close();
    loop().open(*this);
  }

  void end(bool complete) {
    running_ = false;
    splitter_.restart();
    if (!complete) {
      give_up("the reply ended before the stream did");
      return;
    }
    events_.on_end();
    if (is_open()) events_.on_ready();
  }

  StreamEvents& events_;
  HttpReply reply_;
  SseSplitter splitter_;
  bool opened_ = false;
  bool running_ = false;
};

/// tools/call stream_numbers: progress notifications, then the result, as an event stream.
class CallSource final : public HttpSource {
 public:
  CallSource(Loop& loop, const Options& options, StreamEvents& events)
      : HttpSource(loop, events),
        request_(
            tool_call_request("stream_numbers", R"({"count":)" + std::to_string(options.count) +
                                                    R"(,"interval_us":)" +
                                                    std::to_string(options.interval_us) + "}")) {}

  void start() override {
    running_ = true;
    finished_ = false;
    send(request_);
  }
  [[nodiscard]] std::string_view label() const override { return R"("progress":)"; }

 private:
  void on_head() override { events_.on_started(); }
  void on_body(std::string_view piece, std::int64_t now) override {
    splitter_.feed(piece, [&](std::string_view event) {
      if (event.find(R"("method":"notifications/progress")") != std::string_view::npos) {
        events_.on_chunk(event, now);
      } else if (event.find(R"("result":)") != std::string_view::npos) {
        finished_ = true;
      } else if (event.find("data:") != std::string_view::npos &&
                 event.find('{') != std::string_view::npos) {
        events_.on_error("unexpected event: " + std::string(event.substr(0, 200)));
      }
    });
  }
  void on_reply() override { end(finished_); }

  std::string request_;
  bool finished_ = false;
};

/// `run` with stream:true, then GET /streams/{id}.
class GetSource final : public HttpSource {
 public:
  GetSource(Loop& loop, const Options& options, StreamEvents& events)
      : HttpSource(loop, events),
        request_(post_request("/mcp", run_message(options.count, options.interval_us))) {}

  void start() override {
    running_ = true;
    finished_ = false;
    reading_ = false;
    run_reply_.clear();
    send(request_);
  }
  [[nodiscard]] std::string_view label() const override { return R"("seq":)"; }

 private:
  void on_head() override {
    if (reading_) events_.on_started();
  }
  void on_body(std::string_view piece, std::int64_t now) override {
    if (!reading_) {
      run_reply_.append(piece);
      return;
    }
    splitter_.feed(piece, [&](std::string_view event) {
      if (event.find("data:") == std::string_view::npos) return;  // a comment
      if (is_last_chunk(event)) {
        finished_ = true;
      } else {
        events_.on_chunk(event, now);
      }
    });
  }
  void on_reply() override {
    if (reading_) {
      end(finished_);
      return;
    }
    const std::string_view id = find_stream_id(run_reply_);
    if (id.empty()) {
      give_up("run: " + run_reply_.substr(0, 200));
      return;
    }
    reading_ = true;
    send(event_stream_request("/streams/" + std::string(id)));
  }

  std::string request_;
  std::string run_reply_;
  bool reading_ = false;
  bool finished_ = false;
};

/// `run` with stream:true on /ws; the chunks are pushed.
class WebSocketSource final : public StreamSource {
 public:
  WebSocketSource(Loop& loop, const Options& options, StreamEvents& events)
      : StreamSource(loop),
        events_(events),
        request_(websocket_text(run_message(options.count, options.interval_us))) {}

  void on_open() override {
    reply_.restart();
    splitter_.restart();
    running_ = false;
    send(upgrade_request("/ws"));
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    if (!reply_.done()) {
      bytes.remove_prefix(reply_.feed(bytes, [](std::string_view) {}));
      if (!reply_.done()) return;
      if (reply_.status() != 101) {
        give_up("upgrade refused, status " + std::to_string(reply_.status()));
        return;
      }
      events_.on_ready();
    }
    splitter_.feed(bytes, [&](unsigned first, std::string_view payload) {
      take_frame(first, payload, now);
      return is_open();
    });
  }

  void on_closed(std::string_view why) override {
    if (running_ || !reply_.done()) events_.on_error(why);
    loop().open(*this);
  }

  void start() override {
    running_ = true;
    started_ = false;
    send(request_);
  }
  [[nodiscard]] std::string_view label() const override { return R"("seq":)"; }

 private:
  void take_frame(unsigned first, std::string_view payload, std::int64_t now) {
    if (first == FrameSplitter::kPing) {
      send(websocket_pong(payload));
    } else if (first != FrameSplitter::kFinalText) {
      give_up(first == FrameSplitter::kClose ? "closed by a close frame" : "unexpected frame");
    } else if (started_) {
      take_chunk(payload, now);
    } else if (payload.find(R"("result":)") != std::string_view::npos &&
               !find_stream_id(payload).empty()) {
      started_ = true;
      events_.on_started();
    } else {
      give_up("run: " + std::string(payload.substr(0, 200)));
    }
  }

  void take_chunk(std::string_view text, std::int64_t now) {
    if (!is_last_chunk(text)) {
      events_.on_chunk(text, now);
      return;
    }
    running_ = false;
    events_.on_end();
    events_.on_ready();
  }

  void give_up(std::string_view why) {
    events_.on_error(why);
    running_ = false;
    close();
    loop().open(*this);
  }

  StreamEvents& events_;
  std::string request_;
  HttpReply reply_;  // the reply to the upgrade
  FrameSplitter splitter_;
  bool running_ = false;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<StreamSource> make_stream_source(Loop& loop, const Options& options,
                                                 StreamEvents& events) {
  switch (options.delivery) {
    case Delivery::get:
      return std::make_unique<GetSource>(loop, options, events);
    case Delivery::websocket:
      return std::make_unique<WebSocketSource>(loop, options, events);
    case Delivery::call:
      break;
  }
  return std::make_unique<CallSource>(loop, options, events);
}

}  // namespace sluice::bench
