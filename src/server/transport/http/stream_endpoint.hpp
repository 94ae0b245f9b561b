#pragma once

#include <string>
#include <string_view>

#include "net/http/http_exchange.hpp"
#include "server/dispatch/service.hpp"

namespace sluice {

/// GET /streams/{stream_id}: a stream's chunks as events whose ids are their sequence numbers, for
/// EventSource and curl. `Last-Event-ID` or `?from_seq=` says where to start. Belongs to its loop.
class StreamEndpoint {
 public:
  explicit StreamEndpoint(Service& service) : service_(&service) {}

  void open(const HttpRequest& request, HttpExchangePtr exchange, std::string_view stream_id,
            const std::string& principal);

 private:
  Service* service_;
};

}  // namespace sluice
