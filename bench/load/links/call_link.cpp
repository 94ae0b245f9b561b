#include "links/call_link.hpp"

#include <stdexcept>

namespace sluice::bench {

std::unique_ptr<CallLink> make_call_link(Loop& loop, const Route& route, const ToolCall& call,
                                         LinkEvents& events, Child* child) {
  switch (route.transport) {
    case Transport::http:
      return make_http_link(loop, *route.revision, call, events);
    case Transport::sse:
      return make_sse_link(loop, *route.revision, call, events);
    case Transport::websocket:
      return make_websocket_link(loop, *route.revision, call, events);
    case Transport::stdio:
      if (child == nullptr) throw std::runtime_error("stdio: give the server's command after --");
      break;
    case Transport::unix_socket:
      break;
  }
  return make_line_link(loop, *route.revision, call, events, child);
}

}  // namespace sluice::bench
