#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/spans.hpp"

namespace sluice {

/// The body of a request that brings spans to a collector: ExportTraceServiceRequest in the JSON
/// encoding of OTLP (OTLP 1, JSON Protobuf Encoding). Attributes that OTLP has no value for are
/// left out.
std::string otlp_request(std::span<const Span> spans, std::string_view service_name);

}  // namespace sluice
