#include "cli/agent/tracing_option.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "core/text/percent_encoding.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view kPath = "/v1/traces";

/// Reads `name=value,name=value`, percent-encoded.
Result<std::map<std::string, std::string>> headers_in(const std::string& variable,
                                                      std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const std::string_view pair = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const auto sign = pair.find('=');
    const auto value =
        sign == std::string_view::npos ? std::nullopt : percent_decode(trim(pair.substr(sign + 1)));
    // The value may be a secret.
    if (!value)
      return fail(kExitUsage, variable + ": give name=value, with commas between several");
    out.insert_or_assign(std::string(trim(pair.substr(0, sign))), *value);
  }
  return out;
}

/// The place of traces below a base URL, which may have a query.
std::string with_path(std::string_view url) {
  url = url.substr(0, url.find('#'));
  const auto query = std::min(url.find('?'), url.size());
  std::string out(url.substr(0, query));
  while (out.ends_with('/')) out.pop_back();
  return out.append(kPath).append(url.substr(query));
}

}  // namespace

Result<std::shared_ptr<SpanExporter>> span_exporter(const std::string& given,
                                                    const VariableReader& variables) {
  const auto read = [&variables](const std::string& name) { return variables(name).value_or(""); };
  OtlpOptions options{.url = {}};
  std::string source = "--otlp";
  if (!given.empty()) {
    options.url = with_path(given);
  } else {
    const bool is_off =
        to_lower(read("OTEL_SDK_DISABLED")) == "true" || read("OTEL_TRACES_EXPORTER") == "none";
    if (is_off) return nullptr;
    source = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    options.url = read(source);
    if (options.url.empty()) {
      source = "OTEL_EXPORTER_OTLP_ENDPOINT";
      const std::string base = read(source);
      if (base.empty()) return nullptr;
      options.url = with_path(base);
    }
    for (const char* const name :
         {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}) {
      const std::string protocol = read(name);
      if (protocol.empty()) continue;
      if (protocol == "http/json") break;
      return fail(kExitUsage, std::string(name) + ": spans are sent as http/json alone, not as " +
                                  protocol + "; OTEL_TRACES_EXPORTER=none sends none");
    }
  }
  for (const char* const name :
       {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}) {
    auto headers = headers_in(name, read(name));
    if (!headers) return std::unexpected(std::move(headers.error()));
    for (auto& [key, value] : *headers) options.headers.insert_or_assign(key, value);
  }
  if (auto name = read("OTEL_SERVICE_NAME"); !name.empty()) options.service_name = std::move(name);
  try {
    return otlp_exporter(std::move(options));
  } catch (const Error& error) {
    return fail(kExitUsage, source + ": " + error.message);
  }
}

TraceContext trace_of_process(const VariableReader& variables) {
  return {.traceparent = variables("TRACEPARENT").value_or(""),
          .tracestate = variables("TRACESTATE").value_or(""),
          .baggage = variables("BAGGAGE").value_or("")};
}

}  // namespace sluice
