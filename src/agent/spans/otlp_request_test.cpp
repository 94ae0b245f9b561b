#include "agent/spans/otlp_request.hpp"

#include <array>
#include <chrono>
#include <gtest/gtest.h>

#include "core/version.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

TEST(OtlpRequest, ASpanIsEncodedAsOtlpHasIt) {
  const std::chrono::system_clock::time_point began(std::chrono::seconds(1'700'000'000));
  const std::array<Span, 1> spans = {{{.trace_id = "5b8efff798038103d269b633813fc60c",
                                       .span_id = "eee19b7ec3c1b174",
                                       .parent_id = "eee19b7ec3c1b173",
                                       .trace_state = "a=1",
                                       .name = "chat m",
                                       .kind = Span::Kind::client,
                                       .began = began,
                                       .ended = began + std::chrono::milliseconds(1),
                                       .attributes = {{"text", "t"},
                                                      {"count", 3},
                                                      {"large", 18446744073709551615U},
                                                      {"half", 0.5},
                                                      {"is", true},
                                                      {"all", {"a", "b"}},
                                                      {"none", nullptr}},
                                       .links = {"eee19b7ec3c1b172"},
                                       .error = "gone"}}};
  const json::object request = parse_json(otlp_request(spans, "mine")).value().get_object();
  const json::value version(kVersion);
  const json::object& resource = request.at("resourceSpans").at(0).as_object();
  EXPECT_EQ(resource.at("resource").at("attributes").at(0),
            parse_json(R"({"key":"service.name","value":{"stringValue":"mine"}})").value());
  EXPECT_EQ(resource.at("scopeSpans").at(0).at("scope").at("version"), version);
  EXPECT_EQ(resource.at("scopeSpans").at(0).at("spans"), parse_json(R"([{
    "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "flags": 1,
    "name": "chat m", "kind": 3,
    "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000001000000",
    "attributes": [
      {"key": "text", "value": {"stringValue": "t"}},
      {"key": "count", "value": {"intValue": "3"}},
      {"key": "large", "value": {"intValue": "18446744073709551615"}},
      {"key": "half", "value": {"doubleValue": 0.5}},
      {"key": "is", "value": {"boolValue": true}},
      {"key": "all", "value": {"arrayValue": {"values": [
        {"stringValue": "a"}, {"stringValue": "b"}]}}}],
    "parentSpanId": "eee19b7ec3c1b173", "traceState": "a=1",
    "links": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b172"}],
    "status": {"code": 2, "message": "gone"}}])")
                                                             .value());
}

}  // namespace
}  // namespace sluice
