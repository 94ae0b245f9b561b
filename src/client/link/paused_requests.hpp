#pragma once

#include <set>

#include "rpc/message.hpp"

namespace sluice {

/// The paused requests of a link whose requests share a connection.
class PausedRequests {
 public:
  /// Returns whether any request is paused now, so that the connection must not be read.
  bool set(const RequestId& id, bool is_paused) {
    if (is_paused) {
      ids_.insert(id);
    } else {
      ids_.erase(id);
    }
    return !ids_.empty();
  }

 private:
  std::set<RequestId> ids_;
};

}  // namespace sluice
