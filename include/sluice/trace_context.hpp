#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// The place of a request in a distributed trace, from its `_meta` (2026-07-28, Base Protocol,
/// OpenTelemetry trace context). Each text is as the client sent it, so that it can be passed on. A
/// text that is not valid is left empty.
struct TraceContext {
  std::string traceparent = {};  // W3C Trace Context, section 3.2
  std::string tracestate = {};   // section 3.3; empty without a traceparent
  std::string baggage = {};      // W3C Baggage, section 3.1; independent of the other two

  // These return views into traceparent.

  /// The trace: 32 lower-case hexadecimal digits, or empty without a traceparent.
  [[nodiscard]] std::string_view trace_id() const;
  /// The caller's span: 16 lower-case hexadecimal digits, or empty without a traceparent.
  [[nodiscard]] std::string_view parent_id() const;
  /// Whether the caller may have recorded its span.
  [[nodiscard]] bool sampled() const;

  // Larger values are dropped. The limits allow all that the two recommendations require to be
  // passed on.
  static constexpr std::size_t kMaxTracestate = 512;  // bytes
  static constexpr std::size_t kMaxTracestateMembers = 32;
  static constexpr std::size_t kMaxBaggage = 8192;
  static constexpr std::size_t kMaxBaggageMembers = 64;
};

}  // namespace sluice
