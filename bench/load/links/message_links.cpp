#include <charconv>
#include <string>
#include <vector>

#include "links/call_link.hpp"
#include "links/frame_splitter.hpp"
#include "links/http_reply.hpp"
#include "links/line_splitter.hpp"
#include "links/requests.hpp"

namespace sluice::bench {
namespace {

/// The common part of transports whose connections carry messages in both directions.
class MessageLink : public CallLink, protected Connection {
 public:
  MessageLink(Loop& loop, const Revision& revision, const ToolCall& call, LinkEvents& events)
      : Connection(loop), revision_(revision), call_(call), events_(events) {}

  void open() override { loop().open(*this); }
  void call(std::size_t slot) override { send(calls_[slot]); }
  void listen() override { events_.on_listening(); }

 protected:
  /// `message` in the form in which this transport sends it.
  [[nodiscard]] virtual std::string framed(std::string_view message) const = 0;

  /// The connection accepts messages now, so the handshake begins.
  void greet() {
    is_ready_ = false;
    if (revision_.era == Era::modern) {
      ready();
    } else {
      send(framed(initialize_message(revision_)));
    }
  }

  void on_message(std::string_view message, std::int64_t now) {
    if (is_ready_) {
      take_answer(message, now);
    } else if (message.find(R"("result":)") == std::string_view::npos) {
      give_up("initialize: " + std::string(message.substr(0, 200)));
    } else {
      send(framed(initialized_message()));
      ready();
    }
  }

  void on_closed(std::string_view why) override { give_up(why); }

  void give_up(std::string_view why) {
    events_.on_error(why);
    close();
    open();
  }

 private:
  void ready() {
    is_ready_ = true;
    calls_.clear();
    for (std::size_t slot = 0; slot < call_.slots; ++slot) {
      // Ids start at 1, because the handshake used 0.
      calls_.push_back(framed(tool_call_message(revision_, slot + 1, call_.tool, call_.arguments)));
    }
    events_.on_ready();
  }

  void take_answer(std::string_view message, std::int64_t now) {
    static constexpr std::string_view kId = R"("id":)";
    std::size_t id = 0;
    const std::size_t at = message.find(kId);
    if (at != std::string_view::npos) {
      std::from_chars(message.data() + at + kId.size(), message.data() + message.size(), id);
    }
    if (id == 0 || id > call_.slots) {
      give_up("not an answer: " + std::string(message.substr(0, 200)));
    } else {
      events_.on_answer(id - 1, message, now);
    }
  }

  const Revision& revision_;
  const ToolCall& call_;
  LinkEvents& events_;
  std::vector<std::string> calls_;
  bool is_ready_ = false;
};

class WebSocketLink final : public MessageLink {
 public:
  using MessageLink::MessageLink;

 private:
  void on_open() override {
    upgrade_.restart();
    splitter_.restart();
    send(upgrade_request("/ws"));
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    if (!upgrade_.done()) {
      bytes.remove_prefix(upgrade_.feed(bytes, [](std::string_view) {}));
      if (!upgrade_.done() && !upgrade_.failed()) return;
      if (upgrade_.failed() || upgrade_.status() != 101) {
        give_up("upgrade refused, status " + std::to_string(upgrade_.status()));
        return;
      }
      greet();
    }
    splitter_.feed(bytes, [&](unsigned first, std::string_view payload) {
      if (first == FrameSplitter::kFinalText) {
        on_message(payload, now);
      } else if (first == FrameSplitter::kPing) {
        send(websocket_pong(payload));
      } else {
        give_up(first == FrameSplitter::kClose ? "closed by a close frame" : "unexpected frame");
      }
      return is_open();
    });
  }

  [[nodiscard]] std::string framed(std::string_view message) const override {
    return websocket_text(message);
  }

  HttpReply upgrade_;
  FrameSplitter splitter_;
};

class LineLink final : public MessageLink {
 public:
  LineLink(Loop& loop, const Revision& revision, const ToolCall& call, LinkEvents& events,
           Child* child)
      : MessageLink(loop, revision, call, events), child_(child) {}

  void open() override {
    if (child_ == nullptr) {
      MessageLink::open();
    } else if (!was_open_) {
      was_open_ = true;
      loop().adopt(*this, child_->output(), child_->input());
    } else {
      loop().stop();  // a child's pipes cannot be reopened
    }
  }

 private:
  void on_open() override {
    splitter_.restart();
    greet();
  }
  void on_bytes(std::string_view bytes, std::int64_t now) override {
    splitter_.feed(bytes, [&](std::string_view line) {
      if (is_open()) on_message(line, now);
    });
  }
  [[nodiscard]] std::string framed(std::string_view message) const override {
    return std::string(message) + '\n';
  }

  Child* child_;
  LineSplitter splitter_;
  bool was_open_ = false;
};

}  // namespace

std::unique_ptr<CallLink> make_websocket_link(Loop& loop, const Revision& revision,
                                              const ToolCall& call, LinkEvents& events) {
  return std::make_unique<WebSocketLink>(loop, revision, call, events);
}

std::unique_ptr<CallLink> make_line_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                         LinkEvents& events, Child* child) {
  return std::make_unique<LineLink>(loop, revision, call, events, child);
}

}  // namespace sluice::bench
