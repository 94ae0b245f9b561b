#pragma once

#include <memory>

#include "net/lines/line_protocol.hpp"
#include "server/dispatch/service.hpp"

namespace sluice {

/// The same JSON-RPC over lines, one message a line, and streams pushed as they grow: what stdio
/// and Unix domain sockets carry (2026-07-28, stdio). The caller's principal is the system's user.
/// Belongs to its loop.
class StdioEndpoint final : public LineService {
 public:
  /// `service` outlives the endpoint. `max_line`: as the sessions', for the error that names it.
  StdioEndpoint(Service& service, std::size_t max_line) : service_(&service), max_line_(max_line) {}

  std::unique_ptr<LineHandler> open(LineProtocolPtr session, uid_t user) override;

 private:
  Service* service_;
  std::size_t max_line_;
};

}  // namespace sluice
