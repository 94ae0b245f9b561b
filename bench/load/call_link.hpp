#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "child.hpp"
#include "loop.hpp"
#include "options.hpp"
#include "routes.hpp"

namespace sluice::bench {

/// What a link's user learns. Views are valid during the call.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  /// The client has said hello, as its revision has it: call() or listen() may follow. Comes again
  /// if the connection was opened anew; what was under way is lost.
  virtual void on_ready() = 0;
  /// The answer to call(slot).
  virtual void on_answer(std::size_t slot, std::string_view message, std::int64_t now) = 0;
  /// What listen() asked for is there.
  virtual void on_listening() = 0;
  virtual void on_error(std::string_view what) = 0;
};

/// The call that a link makes, over and over.
struct ToolCall {
  std::string tool;
  std::string arguments;  // JSON text
  std::size_t slots = 1;  // how many may be under way at once; over HTTP 1
};

/// A client on one transport, in one revision. Reports a wrong status, a malformed reply and a
/// connection lost with something under way as errors, and opens itself again.
class CallLink {
 public:
  virtual ~CallLink() = default;
  virtual void open() = 0;
  /// Calls the tool; the slot's last call has been answered.
  virtual void call(std::size_t slot) = 0;
  /// Asks for what the server says of itself, where that must be asked for, and keeps open only
  /// what it comes on.
  virtual void listen() = 0;
};

/// `events`, and `child` for stdio, must outlive the link.
std::unique_ptr<CallLink> make_call_link(Loop& loop, const Route& route, const ToolCall& call,
                                         LinkEvents& events, Child* child = nullptr);

// One for each family of transports; make_call_link() chooses.
std::unique_ptr<CallLink> make_http_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                         LinkEvents& events);
std::unique_ptr<CallLink> make_sse_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                        LinkEvents& events);
std::unique_ptr<CallLink> make_websocket_link(Loop& loop, const Revision& revision,
                                              const ToolCall& call, LinkEvents& events);
/// To the child, or over the loop's socket if that is null.
std::unique_ptr<CallLink> make_line_link(Loop& loop, const Revision& revision, const ToolCall& call,
                                         LinkEvents& events, Child* child);

}  // namespace sluice::bench
