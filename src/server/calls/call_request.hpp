#pragma once

#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// The request that a call answers. Immutable. Shared by the call and its outlet, because either
/// may be destroyed first.
struct CallRequest {
  RequestId id;
  RequestContext context;
};

}  // namespace sluice
