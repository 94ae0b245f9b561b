#include "proxy/translation.hpp"

#include <gtest/gtest.h>

#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

int code_for(std::string_view revision, std::string_view method, int code, std::string data) {
  return error_for(*find_revision(revision), method, {code, "why", std::move(data)}).code;
}

TEST(Translation, AnUnknownResourceHasTheCodeOfTheClientsRevision) {
  EXPECT_EQ(code_for("2026-07-28", "resources/read", kResourceNotFound, ""), kInvalidParams);
  EXPECT_EQ(code_for("2025-11-25", "resources/read", kInvalidParams, R"({"uri":"a:b"})"),
            kResourceNotFound);
  EXPECT_EQ(code_for("2025-11-25", "resources/read", kInvalidParams, ""), kInvalidParams);
  EXPECT_EQ(code_for("2025-11-25", "tools/call", kInvalidParams, R"({"uri":"a:b"})"),
            kInvalidParams);
}

TEST(Translation, ACapabilityThatTheClientLacksHasTheCodeOfItsRevision) {
  const std::string data = R"({"requiredCapabilities":{"sampling":{}}})";
  EXPECT_EQ(code_for("2026-07-28", "tools/call", kInvalidRequest, data), kMissingClientCapability);
  EXPECT_EQ(code_for("2025-11-25", "tools/call", kMissingClientCapability, data), kInvalidRequest);
  EXPECT_EQ(code_for("2026-07-28", "tools/call", kInvalidRequest, "not json"), kInvalidRequest);
}

}  // namespace
}  // namespace sluice
