#include "proxy/translation/translation.hpp"

#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "json/members.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/server_info.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

int code_for(std::string_view revision, std::string_view method, int code, std::string data) {
  return error_for(*find_revision(revision), "", method, {code, "why", std::move(data)}).code;
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

TEST(Translation, ForwardedParamsAreWithoutWhatTheClientsOwnConnectionNeeded) {
  json::monotonic_resource memory;
  const auto forwarded = [&memory](std::string_view text) {
    const json::value message = parse_json(text, &memory).value();
    const json::object params = forwarded_params(message.get_object());
    EXPECT_NE(params.storage().get(), &memory);
    for (const auto& [name, value] : params) EXPECT_NE(value.storage().get(), &memory) << name;
    return to_json(params);
  };
  EXPECT_EQ(forwarded(R"({"_meta":{"progressToken":1,"partialResultToken":"p",)"
                      R"("io.modelcontextprotocol/clientInfo":{},)"
                      R"("a/b":[2]},"name":"n","arguments":{"x":{}},"inputResponses":{},)"
                      R"("requestState":"s"})"),
            R"({"name":"n","arguments":{"x":{}},"_meta":{"a/b":[2]}})");
  EXPECT_EQ(forwarded(R"({"uri":"a:b","_meta":{"progressToken":1}})"), R"({"uri":"a:b"})");
  EXPECT_EQ(forwarded(R"({"_meta":7})"), "{}");
}

TEST(Translation, AModernServerReadsTheLevelInEachRequest) {
  const auto params = [](std::string_view revision, json::object given) {
    return to_json(params_for(*find_revision(revision), std::move(given), LoggingLevel::error));
  };
  EXPECT_EQ(params("2026-07-28", {{"name", "n"}}),
            R"({"name":"n","_meta":{"io.modelcontextprotocol/logLevel":"error"}})");
  EXPECT_EQ(params("2026-07-28", {{"_meta", {{"a/b", 1}}}}),
            R"({"_meta":{"a/b":1,"io.modelcontextprotocol/logLevel":"error"}})");
  EXPECT_EQ(params("2025-11-25", {{"name", "n"}}), R"({"name":"n"})");
}

TEST(Translation, AnElicitationOfAPageHasAnIdWhereTheRevisionWantsOne) {
  const auto id_in = [](std::string_view revision, json::object params) {
    const json::object question =
        question_for(*find_revision(revision), "elicitation/create", std::move(params));
    return std::string(text_at(question, "elicitationId"));
  };
  const std::string made = id_in("2025-11-25", {{"mode", "url"}});
  EXPECT_EQ(made.size(), 32);
  EXPECT_NE(id_in("2025-11-25", {{"mode", "url"}}), made);
  EXPECT_EQ(id_in("2025-11-25", {{"mode", "url"}, {"elicitationId", "own"}}), "own");
  EXPECT_EQ(id_in("2026-07-28", {{"mode", "url"}, {"elicitationId", "own"}}), "");
  EXPECT_EQ(id_in("2025-11-25", {{"mode", "form"}}), "");
}

TEST(Translation, WhatNeedsNoChangeIsNotChanged) {
  const json::object about{{"_meta", {{kServerInfoKey, {{"name", "n"}, {"version", "1"}}}}}};
  // Every combination of what a result may have.
  const std::array<std::pair<const char*, json::value>, 8> members = {{
      {"resultType", "complete"},
      {"ttlMs", 1},
      {"cacheScope", "public"},
      {"structuredContent", 7},
      {"structuredContent", json::object()},
      {"_meta", {{kServerInfoKey, {{"name", "n"}}}}},
      {"_meta", {{kRelatedTaskKey, {{"taskId", "t"}}}, {kServerInfoKey, {{"name", "n"}}}}},
      {"_meta", 7},
  }};
  std::size_t unchanged = 0;
  for (const char* name : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}) {
    const Revision& revision = *find_revision(name);
    for (std::size_t which = 0; which < 1U << members.size(); ++which) {
      json::object given{{"content", json::array()}};
      for (std::size_t i = 0; i < members.size(); ++i) {
        if ((which >> i) % 2 == 1) given[members.at(i).first] = members.at(i).second;
      }
      json::object made = given;
      make_result_for(revision, "tools/call", about, made);
      if (!is_tool_result_for(revision, given)) continue;
      ++unchanged;
      EXPECT_EQ(to_json(made), to_json(given)) << name;
    }
    json::object made{{"content", json::array()}};
    make_result_for(revision, "tools/call", about, made);
    EXPECT_TRUE(is_tool_result_for(revision, made)) << name << ": " << to_json(made);
  }
  EXPECT_GT(unchanged, 20U);
}

TEST(Translation, WhatIsSaidOfSkillsSaysHowLongItStaysTrue) {
  for (const char* method : {"skills/list", "skills/get", "resources/directory/read"}) {
    json::object result;
    make_result_for(*find_revision("2026-07-28"), method, {}, result);
    EXPECT_EQ(result.at("ttlMs"), 0) << method;
    EXPECT_EQ(text_at(result, "cacheScope"), "private");
  }
}

}  // namespace
}  // namespace sluice
