#include "cli/doctor/server/features.hpp"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/terminal.hpp"
#include "core/text/secrets.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

using Status = Check::Status;
using ::testing::HasSubstr;

TEST(DoctorFeatures, ListsAreReadToTheirEndOrToTheLimit) {
  int pages = 0;
  Features features{.revision = &newest_revision(Era::modern),
                    .about = {{"capabilities", {{"tools", json::object()}}}}};
  features.request = [&](std::string_view, const json::object&) -> Result<json::object> {
    ++pages;
    return json::object{{"tools", json::array()}, {"nextCursor", std::to_string(pages)}};
  };
  Checks out;
  examine_features(features, out);
  const auto tools = std::ranges::find(out, "tools", &Check::subject);
  ASSERT_NE(tools, out.end());
  EXPECT_EQ(tools->status, Status::warn);
  EXPECT_THAT(tools->finding, HasSubstr("20 pages"));
  EXPECT_EQ(tools->clause, "2026-07-28, Tools, Capabilities");
  EXPECT_TRUE(std::ranges::none_of(out, [](const Check& check) {
    return check.subject == "prompts";
  })) << "it is not declared";
}

TEST(DoctorFeatures, ASchemaThatIsNotSupportedIsNotSaidToBeInvalid) {
  const auto status = [](std::string_view pattern) {
    Features features{.revision = &newest_revision(Era::legacy),
                      .about = {{"capabilities", {{"tools", json::object()}}}}};
    features.request = [&](std::string_view, const json::object&) -> Result<json::object> {
      const json::object schema{{"type", "object"},
                                {"properties", {{"a", {{"pattern", pattern}}}}}};
      return json::object{{"tools", {{{"name", "a"}, {"inputSchema", schema}}}}};
    };
    Checks out;
    examine_features(features, out);
    return std::ranges::find(out, "input schemas", &Check::subject)->status;
  };
  EXPECT_EQ(status("^a"), Status::ok);
  EXPECT_EQ(status("^a(?!.*--)b"), Status::note);
  EXPECT_EQ(status("(a"), Status::fail);
}

TEST(DoctorFeatures, AServerWithResourcesNeedsNoTemplates) {
  Features features{.revision = &newest_revision(Era::legacy),
                    .about = {{"capabilities", {{"resources", json::object()}}}}};
  int code = -32601;
  features.request = [&](std::string_view method, const json::object&) -> Result<json::object> {
    if (method == "resources/templates/list") return fail(code, "no");
    return json::object{{"resources", json::array()}};
  };
  const auto status = [&] {
    Checks out;
    examine_features(features, out);
    return std::ranges::find(out, "templates", &Check::subject)->status;
  };
  EXPECT_EQ(status(), Status::note);
  code = -32603;
  EXPECT_EQ(status(), Status::fail);
}

TEST(DoctorFeatures, EntriesAreListedOnceAndToolsAreDescribed) {
  const auto statuses = [](std::string_view entries, int cursor_error) {
    Features features{
        .revision = &newest_revision(Era::legacy),
        .about = {{"capabilities",
                   {{"tools", json::object()}, {"prompts", json::object()}, {"resources", true}}}}};
    features.request = [&](std::string_view method,
                           const json::object& params) -> Result<json::object> {
      if (params.contains("cursor") && cursor_error != 0) return fail(cursor_error, "no");
      const json::value list = parse_json(entries).value();
      if (method == "resources/templates/list") return json::object{{"resourceTemplates", list}};
      return json::object{{method.substr(0, method.find('/')), list}};
    };
    Checks out;
    examine_features(features, out);
    std::map<std::string, Status, std::less<>> found;
    for (const Check& each : out) found.emplace(each.subject, each.status);
    return found;
  };
  const auto good = statuses(R"([{"name":"a","uri":"x:a","description":"A"},
                                 {"name":"b","uri":"x:b","description":"B"}])",
                             -32602);
  const auto bad = statuses(R"([{"name":"a","uri":"x:a"},{"name":"a","uri":"x:a"}])", -32603);
  for (const auto& [subject, status] :
       std::map<std::string, Status>{{"same tools", Status::warn},
                                     {"same prompts", Status::warn},
                                     {"same resources", Status::warn},
                                     {"descriptions", Status::note},
                                     {"cursor", Status::warn}}) {
    EXPECT_EQ(good.at(subject), Status::ok) << subject;
    EXPECT_EQ(bad.at(subject), status) << subject;
  }
  EXPECT_EQ(statuses("[]", 0).at("cursor"), Status::note) << "it answers what it has never given";
  EXPECT_EQ(good.at("templates"), Status::ok);
  EXPECT_EQ(statuses("7", 0).at("templates"), Status::fail) << "it is no list";
}

TEST(DoctorFeatures, RequestsWithoutAnAnswerAreFaults) {
  for (const int silence : {kTimedOut, kGatewayTimeout}) {
    int lists = 0;
    Features features{.revision = &newest_revision(Era::legacy),
                      .about = {{"capabilities", {{"tools", json::object()}}}}};
    features.request = [&](std::string_view, const json::object&) -> Result<json::object> {
      if (++lists > 1) return fail(silence, "late");
      return json::object{{"tools", {json::object{{"name", "a"}}}}};
    };
    Checks out;
    examine_features(features, out);
    for (const std::string_view subject : {"method", "order", "cursor"}) {
      const auto found = std::ranges::find(out, subject, &Check::subject);
      ASSERT_NE(found, out.end());
      EXPECT_EQ(found->status, Status::fail) << subject;
      EXPECT_EQ(found->finding.find("error"), std::string::npos) << found->finding;
    }
  }
}

TEST(DoctorFeatures, WhatAServerSaysCannotLookLikeAnotherLine) {
  Features features{.revision = &newest_revision(Era::legacy),
                    .about = {{"capabilities", {{"tools", json::object()}}}}};
  features.request = [](std::string_view, const json::object&) -> Result<json::object> {
    return json::object{{"tools", {json::object{{"name", "a\nok    all\x1b[2J"}}}}};
  };
  Checks out;
  examine_features(features, out);
  const auto names = std::ranges::find(out, "tool names", &Check::subject);
  ASSERT_NE(names, out.end());
  EXPECT_EQ(names->status, Status::warn);
  EXPECT_EQ(names->finding.find_first_of("\n\x1b"), std::string::npos) << names->finding;
}

TEST(DoctorFeatures, SecretsAreMaskedBeforeNamesAreCut) {
  mask_in_complaints(
      std::make_shared<KnownSecrets>(std::vector<std::string>{"s3cret-of-features"}));
  Features features{.revision = &newest_revision(Era::legacy),
                    .about = {{"capabilities", {{"tools", json::object()}}}}};
  features.request = [](std::string_view, const json::object&) -> Result<json::object> {
    const std::string name = std::string(120, 'x') + "s3cret-of-features";
    const std::string type = std::string(30, 'x') + "s3cret-of-features";
    return json::object{
        {"tools",
         {json::object{{"name", name}, {"inputSchema", {{"type", "object"}}}},
          json::object{
              {"name", "a"},
              {"inputSchema",
               {{"type", "object"}, {"properties", {{"b", json::object{{"type", type}}}}}}}}}}};
  };
  Checks out;
  examine_features(features, out);
  for (const std::string_view subject : {"tool names", "descriptions", "input schemas"}) {
    const auto found = std::ranges::find(out, subject, &Check::subject);
    ASSERT_NE(found, out.end());
    EXPECT_NE(found->status, Status::ok);
    EXPECT_EQ(found->finding.find("s3cret"), std::string::npos) << found->finding;
  }
}

}  // namespace
}  // namespace sluice
