#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/link/paused_requests.hpp"
#include "client/session/contract/server_link.hpp"
#include "core/error.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"
#include "net/process/child_process.hpp"

namespace sluice {

/// A connection whose messages are lines.
struct LineEnds {
  Descriptor input;                          // what the server says; non-blocking
  Descriptor output;                         // what the server hears; none: `input` goes both ways
  std::optional<ChildProcess> process = {};  // the server, if it was started for this connection
  std::string peer = "the server";           // what errors call it
};
/// Opens the connection, the first time and again after a server that has died of the probe.
using OpenLines = std::function<Result<LineEnds>()>;

/// Starts the server as a child with its standard streams (MCP, stdio).
OpenLines start_child(EventLoop& loop, ChildCommand command, ChildDeadlines deadlines = {});
/// Connects to a server that listens on a Unix domain socket.
OpenLines connect_unix(std::string path);

struct LineLinkLimits {
  std::size_t max_message = std::size_t{64} << 20U;  // of the server; a longer one is skipped
  std::size_t max_queued = std::size_t{64} << 20U;   // bytes that wait to be sent
};

/// Messages as lines, to a child process or over a Unix socket. If the link is lost because the
/// child has ended, the reason says how. The loop's thread must block SIGPIPE, as those of a
/// LoopPool do.
class LineLink final : public ServerLink {
 public:
  LineLink(EventLoop& loop, OpenLines open, LineLinkLimits limits = {});
  ~LineLink() override;
  LineLink(const LineLink&) = delete;
  LineLink& operator=(const LineLink&) = delete;

  void open(Owner& owner) override;
  Result<void> send(OutgoingMessage message) override;
  bool drop(const RequestId& /*id*/) override { return false; }
  void pause(const RequestId& id, bool is_paused) override;
  [[nodiscard]] bool shares_connection() const override { return true; }
  bool reopen() override;
  /// Sends what waits to be sent, for at most LastWords::kLimit, and waits for the end of the
  /// child.
  void close(std::function<void()> done) override;

 private:
  class Lines;

  Result<void> open_lines();

  EventLoop* loop_;
  OpenLines open_;
  const LineLinkLimits limits_;
  Owner* owner_ = nullptr;
  std::shared_ptr<Lines> lines_;  // null before open(), and if it could not be opened
  PausedRequests paused_;
  /// Whether this exists, for tasks that have been posted.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace sluice
