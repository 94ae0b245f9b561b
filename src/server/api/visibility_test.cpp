// Tools that exist for some callers only.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "json/json.hpp"
#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string done() {
  return "done";
}
bool is_admin(const Principal& caller) {
  return caller.id == "admin";
}

Server guarded_server(std::size_t page_size = 1000) {
  Server server("test", "1",
                {.page_size = page_size,
                 .list_caching = {.fresh_for = std::chrono::seconds(1), .shared = true}});
  server.tool("a_all", "", done);
  server.tool("b_admin", "", done, {.visible_to = is_admin});
  server.tool("c_admin", "", done, {.visible_to = is_admin});
  server.tool("d_all", "", done);
  server.tool("e_broken", "", done, {.visible_to = [](const Principal&) -> bool {
                throw std::runtime_error("no idea");
              }});
  return server;
}

std::string names_in(const json::object& result) {
  std::string out;
  for (const json::value& tool : result.at("tools").as_array()) {
    out.append(tool.at("name").as_string()).append(" ");
  }
  return out;
}

/// The names on each page of tools/list.
std::vector<std::string> pages(testing::Client& client) {
  std::vector<std::string> out;
  json::object params;
  for (;;) {
    const json::object result = client.request("tools/list", params).result;
    out.push_back(names_in(result));
    const json::value* const next = result.if_contains("nextCursor");
    if (next == nullptr) return out;
    params["cursor"] = *next;
  }
}

class VisibilityTest : public ::testing::TestWithParam<const char*> {
 protected:
  static testing::ClientOptions as(const std::string& principal) {
    return {.revision = GetParam(), .principal = {.id = principal}};
  }
};

TEST_P(VisibilityTest, ToolsAreListedForThoseWhoHaveThem) {
  const Server server = guarded_server();
  testing::Client admin(server, as("admin"));
  testing::Client guest(server, as("guest"));
  EXPECT_THAT(pages(admin), ElementsAre("a_all b_admin c_admin d_all "));
  EXPECT_THAT(pages(guest), ElementsAre("a_all d_all "));
}

TEST_P(VisibilityTest, AHiddenToolIsUnknown) {
  const Server server = guarded_server();
  testing::Client admin(server, as("admin"));
  testing::Client guest(server, as("guest"));
  EXPECT_EQ(admin.call("b_admin").text(), "done");
  const testing::Reply hidden = guest.call("b_admin");
  const testing::Reply missing = guest.call("missing");
  ASSERT_TRUE(hidden.error && missing.error);
  EXPECT_EQ(hidden.error->message, "Unknown tool: b_admin");
  EXPECT_EQ(hidden.error->code, missing.error->code);
  EXPECT_EQ(admin.call("e_broken").text(), "Unknown tool: e_broken");
}

TEST_P(VisibilityTest, PagesAreFullAndNoneIsEmpty) {
  const Server server = guarded_server(2);
  testing::Client admin(server, as("admin"));
  testing::Client guest(server, as("guest"));
  EXPECT_THAT(pages(admin), ElementsAre("a_all b_admin ", "c_admin d_all "));
  EXPECT_THAT(pages(guest), ElementsAre("a_all d_all "));
  const testing::Reply foreign = guest.request("tools/list", {{"cursor", "AAAA"}});
  ASSERT_TRUE(foreign.error);
  EXPECT_THAT(foreign.error->message, HasSubstr("cursor does not fit this list"));
}

TEST_P(VisibilityTest, ACursorTellsNothingOfAHiddenTool) {
  const Server server = guarded_server(2);
  testing::Client admin(server, as("admin"));
  testing::Client guest(server, as("guest"));
  const json::value of_admin = admin.request("tools/list").result.at("nextCursor");
  const testing::Reply hidden = guest.request("tools/list", {{"cursor", of_admin}});
  const testing::Reply missing = guest.request("tools/list", {{"cursor", "AAAA"}});
  ASSERT_TRUE(hidden.error && missing.error);
  EXPECT_EQ(hidden.error->message, missing.error->message);
}

TEST_P(VisibilityTest, AListThatDiffersIsNeverShared) {
  testing::Client guest(guarded_server(), as("guest"));
  const json::object result = guest.request("tools/list").result;
  const json::value* const scope = result.if_contains("cacheScope");
  if (std::string(GetParam()) < "2026-07-28") {
    EXPECT_EQ(scope, nullptr);
  } else {
    ASSERT_NE(scope, nullptr);
    EXPECT_EQ(*scope, "private");
  }
}

INSTANTIATE_TEST_SUITE_P(Revisions, VisibilityTest,
                         ::testing::Values("2024-11-05", "2025-11-25", "2026-07-28"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace sluice
