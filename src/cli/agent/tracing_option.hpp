#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "sluice/spans.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

/// The variables of a process; an empty one counts as not set.
using VariableReader = std::function<std::optional<std::string>(const std::string& name)>;

/// Where spans go, by the variables that OpenTelemetry has for it (Environment Variable
/// Specification; OTLP Exporter): OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or
/// OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces behind it; the headers of both; OTEL_SERVICE_NAME.
/// `given` stands for OTEL_EXPORTER_OTLP_ENDPOINT if it is not empty. Null if no place is named,
/// OTEL_SDK_DISABLED is true or OTEL_TRACES_EXPORTER is none. Errors carry kExitUsage: what is no
/// URL and no header, and another protocol than http/json that is asked for.
Result<std::shared_ptr<SpanExporter>> span_exporter(const std::string& given,
                                                    const VariableReader& variables);

/// The trace that this process belongs to, of TRACEPARENT, TRACESTATE and BAGGAGE (OpenTelemetry,
/// Environment Variables as Context Propagation Carriers).
TraceContext trace_of_process(const VariableReader& variables);

}  // namespace sluice
