#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

#include "protocol/negotiation.hpp"
#include "sluice/detail/call_backend.hpp"
#include "sluice/principal.hpp"
#include "sluice/trace_context.hpp"

namespace sluice::detail {

struct CallFacts {
  Principal principal;
  const Revision* revision = nullptr;
  ClientFeatures client = {};
  std::shared_ptr<const RequestSender> sender = {};  // null: nothing is known
  std::shared_ptr<const json::object> meta = {};     // null before it has been copied
  std::shared_ptr<const TraceContext> trace = {};    // or null
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  std::stop_source stop = {};
};

}  // namespace sluice::detail
