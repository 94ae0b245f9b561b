#include <memory>
#include <string>
#include <vector>

#include "links/call_link.hpp"
#include "links/http_reply.hpp"
#include "links/requests.hpp"
#include "modes/memory_run.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {
namespace {

/// Begins MCP sessions on one connection, one after another, and leaves each idle.
class SessionStarter final : public Connection {
 public:
  SessionStarter(Loop& loop, Tally& tally, const Revision& revision, std::size_t total)
      : Connection(loop),
        tally_(tally),
        revision_(revision),
        initialize_(mcp_request(revision, {}, {}, initialize_message(revision))),
        total_(total) {
    loop.open(*this);
  }

  void on_open() override { send(initialize_); }

  void on_bytes(std::string_view bytes, std::int64_t) override {
    reply_.feed(bytes, [&](std::string_view piece) { body_.append(piece); });
    if (!reply_.done() && !reply_.failed()) return;
    if (confirming_ && reply_.status() == 202) {
      confirming_ = false;
      if (++tally_.units == total_) {
        loop().stop();
      } else {
        send(initialize_);
      }
    } else if (const auto session = reply_.field("mcp-session-id");
               !confirming_ && reply_.status() == 200 && !session.empty()) {
      confirming_ = true;
      send(mcp_request(revision_, session, {}, initialized_message()));
    } else {
      on_closed("initialize: " + body_.substr(0, 200));
    }
    body_.clear();
    reply_.restart();
  }

  void on_closed(std::string_view why) override {
    report_error(loop(), tally_, why);
    loop().stop();
  }

 private:
  Tally& tally_;
  const Revision& revision_;
  std::string initialize_;
  std::size_t total_;
  HttpReply reply_;
  std::string body_;
  bool confirming_ = false;
};

/// A client that completes its handshake and listens.
class Listener final : public LinkEvents {
 public:
  Listener(Loop& loop, Tally& tally, const Route& route, const ToolCall& no_call)
      : loop_(loop), tally_(tally), link_(make_call_link(loop, route, no_call, *this)) {
    link_->open();
  }
  void on_ready() override { link_->listen(); }
  void on_answer(std::size_t, std::string_view, std::int64_t) override {}
  void on_listening() override { ++tally_.units; }
  void on_error(std::string_view what) override { report_error(loop_, tally_, what); }

 private:
  Loop& loop_;
  Tally& tally_;
  std::unique_ptr<CallLink> link_;
};

}  // namespace

std::uint64_t run_idle_sessions(const Options& options) {
  const Route route = find_route(options.transport, options.revision);
  MemoryRun run(options);
  SessionStarter starter(run.loop(), run.tally(), *route.revision, options.connections);
  run.open();
  return run.finish();
}

std::uint64_t run_listeners(const Options& options) {
  const Route route = find_route(options.transport, options.revision);
  MemoryRun run(options);
  const ToolCall no_call{.tool = {}, .arguments = "{}"};
  std::vector<std::unique_ptr<Listener>> listeners;
  for (std::size_t i = 0; i < options.connections; ++i) {
    listeners.push_back(std::make_unique<Listener>(run.loop(), run.tally(), route, no_call));
  }
  run.open();
  return run.finish();
}

}  // namespace sluice::bench
