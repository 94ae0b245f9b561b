#pragma once

#include <memory>

#include "json/json.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

/// The trace context in the `_meta` of a request, or null if there is none. Invalid parts are left
/// out, because a malformed trace must not break the request that it traces.
std::unique_ptr<const TraceContext> decode_trace_context(const json::object& meta);

}  // namespace sluice
