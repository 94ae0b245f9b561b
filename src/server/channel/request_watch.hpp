#pragma once

#include <optional>

namespace sluice {

class PendingRequest;

/// Is told how a request that is answered later ends. If it is destroyed before end(), the request
/// was cancelled. Belongs to the loop of the request.
class RequestWatch {
 public:
  RequestWatch() = default;
  virtual ~RequestWatch() = default;
  RequestWatch(const RequestWatch&) = delete;
  RequestWatch& operator=(const RequestWatch&) = delete;
  /// Called first: `call` will answer the request.
  virtual void watch(PendingRequest& call) = 0;
  /// Called at the end. `error` is the code of the JSON-RPC error that answers the request; empty
  /// if a result answers it.
  virtual void end(std::optional<int> error) = 0;
};

}  // namespace sluice
