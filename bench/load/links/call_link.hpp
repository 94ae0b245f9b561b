#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "links/child.hpp"
#include "links/routes.hpp"
#include "loop.hpp"
#include "options.hpp"

namespace sluice::bench {

/// Receives the events of a link. Views are valid during the call.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  /// The handshake of the client's revision is complete: call() or listen() may follow. Called
  /// again when the connection was reopened; calls that were in progress are lost.
  virtual void on_ready() = 0;
  /// The answer to call(slot).
  virtual void on_answer(std::size_t slot, std::string_view message, std::int64_t now) = 0;
  /// The event stream that listen() asked for is open.
  virtual void on_listening() = 0;
  virtual void on_error(std::string_view what) = 0;
};

/// The call that a link repeats.
struct ToolCall {
  std::string tool;
  std::string arguments;  // JSON text
  std::size_t slots = 1;  // how many may be in progress at once; 1 over HTTP
};

/// A client on one transport, in one revision. Reports as errors a wrong status, a malformed reply,
/// and a connection that is lost while something is in progress. Reopens lost connections.
class CallLink {
 public:
  virtual ~CallLink() = default;
  virtual void open() = 0;
  /// Calls the tool. The last call in the slot must have been answered.
  virtual void call(std::size_t slot) = 0;
  /// Requests the messages that the server sends on its own, if they must be requested, and keeps
  /// open only the connection on which they arrive.
  virtual void listen() = 0;
};

/// `events`, and for stdio `child`, must outlive the link.
std::unique_ptr<CallLink> make_call_link(Loop& loop, const Route& route, const ToolCall& call,
                                         LinkEvents& events, Child* child = nullptr);

// One function per family of transports; make_call_link() chooses.
std::unique_ptr<CallLink> make_http_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                         LinkEvents& events);
std::unique_ptr<CallLink> make_sse_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                        LinkEvents& events);
std::unique_ptr<CallLink> make_websocket_link(Loop& loop, const Revision& revision,
                                              const ToolCall& call, LinkEvents& events);
/// Uses the child's pipes, or the loop's socket if `child` is null.
std::unique_ptr<CallLink> make_line_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                         LinkEvents& events, Child* child);

}  // namespace sluice::bench
