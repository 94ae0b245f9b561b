#include "agent/spans/otlp_request.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include "core/version.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

/// Bits 0-7 of `flags` are those of the W3C: sampled.
constexpr std::uint32_t kSampled = 1;
constexpr int kStatusError = 2;

/// An AnyValue; an empty object if there is none for it. Integers of 64 bits are texts in JSON.
json::object any_value(const json::value& value) {
  switch (value.kind()) {
    case json::kind::string:
      return {{"stringValue", value.get_string()}};
    case json::kind::bool_:
      return {{"boolValue", value.get_bool()}};
    case json::kind::int64:
      return {{"intValue", std::to_string(value.get_int64())}};
    case json::kind::uint64:
      return {{"intValue", std::to_string(value.get_uint64())}};
    case json::kind::double_:
      return {{"doubleValue", value.get_double()}};
    case json::kind::array: {
      json::array values;
      for (const json::value& each : value.get_array()) {
        if (each.is_string()) values.emplace_back(any_value(each));
      }
      return {{"arrayValue", {{"values", std::move(values)}}}};
    }
    default:
      return {};
  }
}

json::array key_values(const json::object& attributes) {
  json::array out;
  for (const auto& [name, value] : attributes) {
    json::object encoded = any_value(value);
    if (encoded.empty()) continue;
    out.emplace_back(json::object{{"key", name}, {"value", std::move(encoded)}});
  }
  return out;
}

std::string nanoseconds(std::chrono::system_clock::time_point time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

json::object encoded(const Span& span) {
  json::object out{{"traceId", span.trace_id},
                   {"spanId", span.span_id},
                   {"flags", kSampled},
                   {"name", span.name},
                   {"kind", static_cast<int>(span.kind)},
                   {"startTimeUnixNano", nanoseconds(span.began)},
                   {"endTimeUnixNano", nanoseconds(span.ended)},
                   {"attributes", key_values(span.attributes)}};
  if (!span.parent_id.empty()) out["parentSpanId"] = span.parent_id;
  if (!span.trace_state.empty()) out["traceState"] = span.trace_state;
  json::array links;
  for (const std::string& id : span.links) {
    links.emplace_back(json::object{{"traceId", span.trace_id}, {"spanId", id}});
  }
  if (!links.empty()) out["links"] = std::move(links);
  if (span.error) out["status"] = {{"code", kStatusError}, {"message", *span.error}};
  return out;
}

}  // namespace

std::string otlp_request(std::span<const Span> spans, std::string_view service_name) {
  json::array all;
  for (const Span& span : spans) all.emplace_back(encoded(span));
  const json::object scope{{"name", "sluice"}, {"version", kVersion}};
  json::object of_scope{{"scope", scope}, {"spans", std::move(all)}};
  const json::object resource{{"attributes", key_values({{"service.name", service_name},
                                                         {"telemetry.sdk.name", "sluice"},
                                                         {"telemetry.sdk.language", "cpp"},
                                                         {"telemetry.sdk.version", kVersion}})}};
  json::object of_resource{{"resource", resource}};
  of_resource["scopeSpans"] = json::array{json::value(std::move(of_scope))};
  json::object request;
  request["resourceSpans"] = json::array{json::value(std::move(of_resource))};
  return to_json(request);
}

}  // namespace sluice
