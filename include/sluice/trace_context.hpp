#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Where a request stands in a distributed trace, as its `_meta` says (2026-07-28, Base Protocol,
/// OpenTelemetry trace context). Text as it came, for whoever passes it on; each is valid or empty.
struct TraceContext {
  std::string traceparent;  // W3C Trace Context, section 3.2
  std::string tracestate;   // section 3.3; empty without a traceparent
  std::string baggage;      // W3C Baggage, section 3.1; stands by itself

  /// 32 lower-case hexadecimal digits, or empty without a traceparent.
  [[nodiscard]] std::string_view trace_id() const;
  /// 16 of them: the caller's span.
  [[nodiscard]] std::string_view parent_id() const;
  /// Whether the caller may have recorded its span.
  [[nodiscard]] bool sampled() const;

  // Longer ones are not taken; what the two recommendations ask to be passed on is.
  static constexpr std::size_t kMaxTracestate = 512;  // bytes
  static constexpr std::size_t kMaxTracestateMembers = 32;
  static constexpr std::size_t kMaxBaggage = 8192;
  static constexpr std::size_t kMaxBaggageMembers = 64;
};

}  // namespace sluice
