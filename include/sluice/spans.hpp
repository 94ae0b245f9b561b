#pragma once

// Spans: what an agent does when, for whoever traces it (OpenTelemetry).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/json.hpp"

namespace sluice {

/// A piece of work that has ended (OpenTelemetry, Trace API, Span).
struct Span {
  /// The numbers are those of OTLP.
  enum class Kind : std::uint8_t { internal = 1, client = 3 };

  std::string trace_id = {};     // 32 lower-case hexadecimal digits
  std::string span_id = {};      // 16
  std::string parent_id = {};    // 16; empty: it is the first of its trace
  std::string trace_state = {};  // W3C Trace Context, section 3.3
  std::string name = {};
  Kind kind = Kind::internal;
  std::chrono::system_clock::time_point began = {};
  std::chrono::system_clock::time_point ended = {};
  json::object attributes = {};           // texts, numbers, flags, and arrays of texts
  std::vector<std::string> links = {};    // ids of other spans of the trace
  std::optional<std::string> error = {};  // why the work has failed; may be empty
};

/// Takes spans.
class SpanExporter {
 public:
  SpanExporter() = default;
  virtual ~SpanExporter() = default;
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  /// Called on the thread of all clients. Must not wait; what it throws is logged.
  virtual void take(Span span) = 0;
};

struct OtlpOptions {
  std::string url = "http://localhost:4318/v1/traces";
  std::map<std::string, std::string> headers = {};  // as for authorization; never logged
  std::string service_name = "sluice";              // the attribute service.name
  /// Spans beyond these are dropped, which is logged.
  std::size_t max_waiting = 2048;
  std::size_t max_batch = 512;  // of one request
  /// How long a span waits for others to be sent with it.
  std::chrono::nanoseconds interval = std::chrono::seconds(1);
  /// How long destroying the exporter waits for what is still to be sent.
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
};

/// Sends spans to a collector as JSON over HTTP (OTLP 1, OTLP/HTTP). Requests that the collector
/// wants again are repeated, up to five times. What it refuses, and what cannot be sent, is dropped
/// and logged. Thread-safe. Throws Error -32602 if the URL or a header is no such thing.
std::shared_ptr<SpanExporter> otlp_exporter(OtlpOptions options = {});

}  // namespace sluice
