#pragma once

#include <optional>

namespace sluice {

class PendingRequest;

/// Told how a request that is answered later has ended; that it was cancelled, if it is dropped
/// before. Belongs to the loop of the request.
class RequestWatch {
 public:
  RequestWatch() = default;
  virtual ~RequestWatch() = default;
  RequestWatch(const RequestWatch&) = delete;
  RequestWatch& operator=(const RequestWatch&) = delete;
  /// `call` is what will answer it.
  virtual void watch(PendingRequest& call) = 0;
  /// `error`: the code of the JSON-RPC error that answers it; none: a result.
  virtual void end(std::optional<int> error) = 0;
};

}  // namespace sluice
