#pragma once

#include <memory>

#include "net/lines/line_protocol.hpp"
#include "server/dispatch/service.hpp"

namespace sluice {

/// JSON-RPC over lines, one message per line, with streams pushed as they grow. This is what stdio
/// and Unix domain sockets carry (2026-07-28, stdio), and TCP ports for the clients of an earlier
/// server. The caller's principal is the operating system's user, or the address. Belongs to its
/// loop.
class LineEndpoint final : public LineService {
 public:
  /// `service` outlives the endpoint. `max_line` is the limit of the line protocol, for the error
  /// that names it.
  LineEndpoint(Service& service, std::size_t max_line) : service_(&service), max_line_(max_line) {}

  std::unique_ptr<LineHandler> open(LineProtocolPtr session, const LinePeer& peer) override;

 private:
  Service* service_;
  std::size_t max_line_;
};

}  // namespace sluice
