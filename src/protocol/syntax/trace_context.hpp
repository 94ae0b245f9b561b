#pragma once

#include <memory>

#include "json/json.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

/// The trace context in the `_meta` of a request, or null if there is none. What is not valid is
/// left out, for a broken trace must not break what is traced.
std::unique_ptr<const TraceContext> decode_trace_context(const json::object& meta);

}  // namespace sluice
