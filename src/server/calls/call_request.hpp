#pragma once

#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// The request that a call answers. Does not change; shared by the call and its outlet, of which
/// either may go first.
struct CallRequest {
  RequestId id;
  RequestContext context;
};

}  // namespace sluice
