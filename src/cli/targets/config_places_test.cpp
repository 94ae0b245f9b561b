#include "cli/targets/config_places.hpp"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "cli/targets/config_reader.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PlaceSources fake_places(std::map<std::string, std::string> variables = {},
                         std::set<std::string> files = {"/home/ada/shop/.git"}) {
  return {.platform = Platform::xdg,
          .home = "/home/ada",
          .directory = "/home/ada/shop/cart",
          .environment = [variables = std::move(variables)](
                             const std::string& name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .exists =
              [files = std::move(files)](const std::string& path) { return files.contains(path); }};
}

/// "SCOPE PATH" of the places of an application.
std::vector<std::string> places_of(Application application, const PlaceSources& sources) {
  std::vector<std::string> out;
  for (const ServersFile& place : config_places(sources)) {
    if (place.application != application) continue;
    out.push_back(std::string(to_string(place.scope)) + " " + place.path);
  }
  return out;
}

TEST(ConfigPlaces, OnLinux) {
  const PlaceSources here = fake_places();
  EXPECT_THAT(places_of(Application::sluice, here),
              ElementsAre("user /home/ada/.config/sluice/servers.json"));
  EXPECT_THAT(places_of(Application::claude_code, here),
              ElementsAre("user /home/ada/.claude.json", "project /home/ada/shop/.mcp.json",
                          "project /home/ada/shop/cart/.mcp.json",
                          "managed /etc/claude-code/managed-mcp.json"));
  EXPECT_THAT(places_of(Application::claude_desktop, here),
              ElementsAre("user /home/ada/.config/Claude/claude_desktop_config.json"));
  EXPECT_THAT(
      places_of(Application::cursor, here),
      ElementsAre("user /home/ada/.cursor/mcp.json", "project /home/ada/shop/.cursor/mcp.json",
                  "project /home/ada/shop/cart/.cursor/mcp.json"));
  EXPECT_THAT(places_of(Application::vscode, here),
              Contains("user /home/ada/.config/Code/User/mcp.json"));
  EXPECT_THAT(places_of(Application::gemini, here),
              ElementsAre("system /etc/gemini-cli/system-defaults.json",
                          "user /home/ada/.gemini/settings.json",
                          "project /home/ada/shop/.gemini/settings.json",
                          "project /home/ada/shop/cart/.gemini/settings.json",
                          "managed /etc/gemini-cli/settings.json"));
  EXPECT_THAT(places_of(Application::codex, here),
              ElementsAre("system /etc/codex/config.toml", "user /home/ada/.codex/config.toml",
                          "project /home/ada/shop/.codex/config.toml",
                          "project /home/ada/shop/cart/.codex/config.toml"));
  EXPECT_THAT(places_of(Application::opencode, here),
              Contains("project /home/ada/shop/.opencode/opencode.jsonc"));
}

TEST(ConfigPlaces, OnMacos) {
  PlaceSources here = fake_places();
  here.platform = Platform::macos;
  EXPECT_THAT(
      places_of(Application::claude_desktop, here),
      ElementsAre("user /home/ada/Library/Application Support/Claude/claude_desktop_config.json"));
  EXPECT_THAT(places_of(Application::vscode, here),
              Contains("user /home/ada/Library/Application Support/Code/User/mcp.json"));
  EXPECT_THAT(places_of(Application::claude_code, here),
              Contains("managed /Library/Application Support/ClaudeCode/managed-mcp.json"));
  EXPECT_THAT(places_of(Application::gemini, here),
              Not(Contains("managed /etc/gemini-cli/settings.json")));
}

TEST(ConfigPlaces, VariablesMoveThem) {
  const PlaceSources here = fake_places({{"XDG_CONFIG_HOME", "/conf"},
                                         {"CODEX_HOME", "codex"},
                                         {"CLAUDE_CONFIG_DIR", "/claude"},
                                         {"OPENCODE_CONFIG", "/oc.json"}});
  EXPECT_EQ(own_servers_path(here), "/conf/sluice/servers.json");
  EXPECT_THAT(places_of(Application::codex, here),
              Contains("user /home/ada/shop/cart/codex/config.toml"));
  EXPECT_THAT(places_of(Application::claude_code, here), Contains("user /claude/.claude.json"));
  EXPECT_THAT(places_of(Application::opencode, here), Contains("user /oc.json"));
  EXPECT_EQ(own_servers_path(fake_places({{"XDG_CONFIG_HOME", "relative"}})),
            "/home/ada/.config/sluice/servers.json");
}

TEST(ConfigPlaces, ProjectsEndAtTheirRoot) {
  EXPECT_EQ(project_root(fake_places()), "/home/ada/shop");
  const PlaceSources nowhere = fake_places({}, {});
  EXPECT_EQ(project_root(nowhere), "/home/ada/shop/cart");
  EXPECT_THAT(places_of(Application::claude_code, nowhere),
              Contains("project /home/ada/shop/cart/.mcp.json"));
  EXPECT_THAT(places_of(Application::claude_code, nowhere),
              Not(Contains("project /home/ada/shop/.mcp.json")));
  // A home that is a repository: its files are the user's, and are there once.
  EXPECT_THAT(
      places_of(Application::cursor, fake_places({}, {"/home/ada/.git"})),
      ElementsAre("user /home/ada/.cursor/mcp.json", "project /home/ada/shop/.cursor/mcp.json",
                  "project /home/ada/shop/cart/.cursor/mcp.json"));
}

TEST(ConfigPlaces, AUserMayHaveNoHome) {
  PlaceSources here = fake_places();
  here.home.clear();
  EXPECT_EQ(own_servers_path(here), "");
  EXPECT_THAT(places_of(Application::sluice, here), IsEmpty());
  EXPECT_THAT(places_of(Application::codex, here), Contains("system /etc/codex/config.toml"));
}

TEST(ConfigReader, TrustsAFileThatOnlyTheUserCanChange) {
  const test::TemporaryFile file("mcp.json", "{}");
  ::chmod(file.path().c_str(), 0644);
  const auto read = read_config(file.path());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->text, "{}");
  EXPECT_EQ((*read)->distrust, "");
}

TEST(ConfigReader, DistrustsWhatOthersCanChange) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path("mcp.json");
  std::ofstream(path) << "{}";
  const auto distrust = [&](const std::string& of) {
    const auto read = read_config(of);
    return read && *read ? (*read)->distrust : "not read";
  };
  ::chmod(path.c_str(), 0666);
  EXPECT_EQ(distrust(path), "others can write " + path + "; forbid it with chmod go-w");
  ::chmod(path.c_str(), 0600);
  ::chmod(folder.path().c_str(), 0777);
  EXPECT_THAT(distrust(path), HasSubstr("others can write " + folder.path() + ";"));
  // A link from a safe folder does not make it safer.
  const test::TemporaryDirectory safe;
  std::filesystem::create_symlink(path, safe.path("link"));
  EXPECT_THAT(distrust(safe.path("link")), HasSubstr("others can write " + folder.path() + ";"));
  ::chmod(folder.path().c_str(), 01777);
  EXPECT_EQ(distrust(path), "");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_EQ(distrust(path), path + " belongs to another user; make it yours with chown");
  }
}

TEST(ConfigReader, ReadsRegularFilesOfLimitedSize) {
  const test::TemporaryDirectory folder;
  const auto missing = read_config(folder.path("none"));
  ASSERT_TRUE(missing);
  EXPECT_FALSE(*missing);
  EXPECT_TRUE(read_config(folder.path("none/none")));
  const auto directory = read_config(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().message, folder.path() + ": is not a regular file");
  const std::string pipe = folder.path("pipe");
  ::mkfifo(pipe.c_str(), 0600);
  EXPECT_FALSE(read_config(pipe));
  std::ofstream(folder.path("long")) << "12345";
  EXPECT_TRUE(read_config(folder.path("long"), 5));
  EXPECT_THAT(read_config(folder.path("long"), 4).error().message,
              HasSubstr("is larger than 4 bytes"));
}

}  // namespace
}  // namespace sluice
