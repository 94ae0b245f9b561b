#include "cli/session/session_name.hpp"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "cli/targets/session_files.hpp"

namespace sluice {
namespace {

std::string name_of_place(TargetPlace place) {
  return session_name_of({.place = std::move(place)});
}
std::string name_of_command(std::vector<std::string> arguments) {
  return name_of_place(CommandTarget{.arguments = std::move(arguments)});
}

TEST(SessionNameTest, IsThatOfTheConfiguredServer) {
  EXPECT_EQ(session_name_of({.place = CommandTarget{.arguments = {"x"}}, .name = "notes"}),
            "notes");
  EXPECT_EQ(session_name_of({.place = CommandTarget{.arguments = {"x"}}, .name = "@org/my tools"}),
            "org-my-tools");
}

TEST(SessionNameTest, IsMadeOfTheAddress) {
  EXPECT_EQ(name_of_place(parse_address("https://mcp.example.com:8443/a?key=secret").value()),
            "mcp.example.com");
  EXPECT_EQ(name_of_place(parse_address("http://[::1]/mcp").value()), "1");
  EXPECT_EQ(name_of_place(parse_address("unix:/run/notes.sock").value()), "notes");
}

TEST(SessionNameTest, IsMadeOfTheCommand) {
  EXPECT_EQ(name_of_command({"/opt/notes-server", "--stdio"}), "notes-server");
  EXPECT_EQ(name_of_command({"npx", "-y", "@modelcontextprotocol/server-everything"}),
            "server-everything");
  EXPECT_EQ(name_of_command({"/usr/bin/node", "--no-warnings", "dist/server.mjs"}), "server");
  EXPECT_EQ(name_of_command({"env", "A=1", "notes"}), "notes");
  EXPECT_EQ(name_of_command({"node"}), "node");
}

TEST(SessionNameTest, IsAlwaysAName) {
  const std::string longest = name_of_command({std::string(500, 'x')});
  EXPECT_TRUE(is_session_name(longest)) << longest;
  EXPECT_EQ(name_of_command({"/"}), "");
  EXPECT_EQ(name_of_command({"ä"}), "");
  EXPECT_EQ(name_of_command({"..a  b.."}), "a-b.");
}

}  // namespace
}  // namespace sluice
