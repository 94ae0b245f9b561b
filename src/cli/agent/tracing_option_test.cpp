#include "cli/agent/tracing_option.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

Result<std::shared_ptr<SpanExporter>> exporter_of(const Variables& variables,
                                                  const std::string& given = {}) {
  return span_exporter(given, [&variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(TracingOptionTest, SpansGoWhereSomebodyHasNamedAPlace) {
  EXPECT_EQ(exporter_of({}).value(), nullptr);
  EXPECT_NE(exporter_of({}, "http://localhost:4318").value(), nullptr);
  const std::string place = "OTEL_EXPORTER_OTLP_ENDPOINT";
  EXPECT_NE(exporter_of({{place, "http://localhost:4318/"}}).value(), nullptr);
  EXPECT_NE(exporter_of({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://h/x"}}).value(), nullptr);
  for (const auto& off :
       {std::pair("OTEL_SDK_DISABLED", "true"), std::pair("OTEL_TRACES_EXPORTER", "none")}) {
    EXPECT_EQ(exporter_of({{place, "http://localhost:4318"}, off}).value(), nullptr);
    EXPECT_NE(exporter_of({off}, "http://localhost:4318").value(), nullptr) << "it was asked for";
  }
}

TEST(TracingOptionTest, WhatCannotBeDoneIsSaid) {
  const std::string place = "OTEL_EXPORTER_OTLP_ENDPOINT";
  const auto why = [&](const Variables& variables, const std::string& given = {}) {
    const auto made = exporter_of(variables, given);
    EXPECT_FALSE(made);
    EXPECT_EQ(made.error().code, kExitUsage);
    return made.error().message;
  };
  EXPECT_THAT(why({{place, "localhost:4318"}}), HasSubstr(place + ": the URL of the collector"));
  EXPECT_THAT(why({}, "ftp://x"), HasSubstr("--otlp: the URL of the collector"));
  EXPECT_THAT(
      why({{place, "http://h"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}),
      HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL: spans are sent as http/json alone, not as grpc"));
  for (const std::string bad : {"s3cret", "key=%zz", "key=a%0Ab"}) {
    const std::string message =
        why({{place, "http://h"}, {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret," + bad}});
    EXPECT_THAT(message, Not(HasSubstr("s3cret")));
  }
  EXPECT_TRUE(exporter_of({{place, "http://h"},
                           {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
                           {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"},
                           {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, other = c ,"}}));
}

}  // namespace
}  // namespace sluice
