#include "cli/targets/variables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

VariableSources fake_sources() {
  return {.environment = [](const std::string& name) -> std::optional<std::string> {
            const std::map<std::string, std::string> values = {{"HOST", "example.org"},
                                                               {"TOKEN", "s3cret"},
                                                               {"EMPTY", ""},
                                                               {"NESTED", "${TOKEN}$TOKEN"},
                                                               {"LINES", "a\r\nX: y"}};
            const auto found = values.find(name);
            if (found == values.end()) return std::nullopt;
            return found->second;
          },
          .read_file = [](const std::string& path) -> Result<std::string> {
            if (path == "/home/ada/.token" || path == "/home/ada/shop/.opencode/token") {
              return "from " + path + "\n";
            }
            if (path == "/home/ada/shop/.env") {
              return "# mine\nexport A=1\nB = \"two\"\r\nC='3'\nbad\n4 5=6\nA=7\n";
            }
            return fail(kExitUsage, path + ": there is no such file");
          },
          .home = "/home/ada",
          .directory = "/home/ada/shop/cart"};
}

ServerConfig config_of(Application application, ConfiguredPlace place) {
  return {.name = "one",
          .source = {.application = application,
                     .scope = ConfigScope::project,
                     .path = "/home/ada/shop/.opencode/opencode.json",
                     .workspace = "/home/ada/shop",
                     .directory = "/home/ada/shop/cart"},
          .place = std::move(place)};
}

/// What becomes of an argument of a command.
std::string expanded(Application application, const std::string& argument) {
  auto config =
      config_of(application, ConfiguredCommand{.program = "run", .arguments = {argument}});
  config.inputs = {{.id = "key", .description = "The key"}};
  const auto out = expand_variables(config, fake_sources());
  if (!out) return "error: " + out.error().message;
  return std::get<ConfiguredCommand>(out->server.place).arguments.front();
}

TEST(Variables, OfClaudeCodeAndOurs) {
  for (const Application application : {Application::claude_code, Application::sluice}) {
    EXPECT_EQ(expanded(application, "https://${HOST}/${NO:-mcp}"), "https://example.org/mcp");
    EXPECT_EQ(expanded(application, "${EMPTY:-x}|${NO:-}|$HOST|${env|$${HOST"),
              "||$HOST|${env|$${HOST");
    EXPECT_EQ(expanded(application, "${NESTED}"), "${TOKEN}$TOKEN");
    EXPECT_EQ(expanded(application, "${NO}"),
              "error: /home/ada/shop/.opencode/opencode.json: server one: args: the environment "
              "variable NO is not set; set it before the command");
  }
}

TEST(Variables, OfClaudeDesktopAndCodexAreNone) {
  EXPECT_EQ(expanded(Application::claude_desktop, "${HOST}$HOST"), "${HOST}$HOST");
  EXPECT_EQ(expanded(Application::codex, "${HOST}{env:HOST}"), "${HOST}{env:HOST}");
}

TEST(Variables, OfCursor) {
  EXPECT_EQ(expanded(Application::cursor, "${env:HOST} ${userHome}${/}x ${HOST}"),
            "example.org /home/ada/x ${HOST}");
  EXPECT_EQ(expanded(Application::cursor, "${workspaceFolder} ${workspaceFolderBasename}"),
            "/home/ada/shop shop");
  EXPECT_THAT(expanded(Application::cursor, "${env:NO}"), HasSubstr("variable NO is not set"));
  EXPECT_THAT(expanded(Application::cursor, "${input:key}"), HasSubstr("is not supported"));
}

TEST(Variables, OfVsCode) {
  EXPECT_EQ(expanded(Application::vscode, "${env:HOST}${env:NO}${pathSeparator}${cwd}"),
            "example.org//home/ada/shop/cart");
  EXPECT_EQ(expanded(Application::vscode, "${input:key}"),
            "error: /home/ada/shop/.opencode/opencode.json: server one: args: ${input:key} asks "
            "for \"The key\", and Sluice does not ask; use ${env:NAME} there, or add the server "
            "with sluice mcp add");
  EXPECT_THAT(expanded(Application::vscode, "${input:other}"), HasSubstr("asks a question"));
  EXPECT_THAT(expanded(Application::vscode, "${command:pick}"), HasSubstr("is not supported"));
}

TEST(Variables, OfGemini) {
  EXPECT_EQ(expanded(Application::gemini, "$HOST/${HOST}/${NO:-x}/$NO/${NO}/$/$5"),
            "example.org/example.org/x/$NO/${NO}/$/$5");
  EXPECT_EQ(expanded(Application::gemini, "$NESTED"), "${TOKEN}$TOKEN");
}

TEST(Variables, OfOpenCode) {
  EXPECT_EQ(expanded(Application::opencode, "a{env:HOST}{env:NO}{b}"), "aexample.org{b}");
  EXPECT_EQ(expanded(Application::opencode, "{file:~/.token}"), "from /home/ada/.token");
  EXPECT_EQ(expanded(Application::opencode, "{file:token}"), "from /home/ada/shop/.opencode/token");
  EXPECT_THAT(expanded(Application::opencode, "{file:/no}"), HasSubstr("/no: there is no such"));
}

TEST(Variables, WhatIsNotSetIsSaid) {
  const auto out = expand_variables(
      config_of(Application::opencode, ConfiguredCommand{.program = "{env:NO}run"}),
      fake_sources());
  ASSERT_TRUE(out);
  EXPECT_THAT(out->warnings, ElementsAre("/home/ada/shop/.opencode/opencode.json: server one: "
                                         "command: the environment variable NO is not set, and "
                                         "counts as empty"));
}

TEST(Variables, CodexTakesHeadersFromVariables) {
  ConfiguredUrl url{.url = "https://example.org/mcp",
                    .headers = {{"X-A", "${TOKEN}"}},
                    .variable_headers = {{.header = "X-Empty", .variable = "EMPTY"},
                                         {.header = "X-Host", .variable = "HOST"},
                                         {.header = "Authorization",
                                          .variable = "TOKEN",
                                          .prefix = "Bearer ",
                                          .is_required = true}}};
  const auto out = expand_variables(config_of(Application::codex, url), fake_sources());
  ASSERT_TRUE(out);
  EXPECT_THAT(std::get<ConfiguredUrl>(out->server.place).headers,
              ElementsAre(Pair("X-A", "${TOKEN}"), Pair("X-Host", "example.org"),
                          Pair("Authorization", "Bearer s3cret")));
  url.variable_headers.back().variable = "NO";
  const auto missing = expand_variables(config_of(Application::codex, url), fake_sources());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("bearer_token_env_var: the environment variable"));
}

TEST(Variables, TheEnvironmentFileGivesWay) {
  const auto out =
      expand_variables(config_of(Application::vscode,
                                 ConfiguredCommand{.program = "run",
                                                   .environment = {{"C", "${env:HOST}"}},
                                                   .environment_file = "${workspaceFolder}/.env"}),
                       fake_sources());
  ASSERT_TRUE(out);
  const auto& command = std::get<ConfiguredCommand>(out->server.place);
  EXPECT_THAT(command.environment,
              ElementsAre(Pair("A", "7"), Pair("B", "two"), Pair("C", "example.org")));
  EXPECT_EQ(command.environment_file, "");
}

TEST(Variables, FoldersAreThoseOfTheProject) {
  const auto folder = [](Application application, ConfigScope scope, std::string directory) {
    auto config = config_of(application,
                            ConfiguredCommand{.program = "run", .directory = std::move(directory)});
    config.source.scope = scope;
    const auto out = expand_variables(config, fake_sources());
    return out ? std::get<ConfiguredCommand>(out->server.place).directory : out.error().message;
  };
  EXPECT_EQ(folder(Application::vscode, ConfigScope::project, "${userHome}/x"), "/home/ada/x");
  EXPECT_EQ(folder(Application::gemini, ConfigScope::project, "tools"), "/home/ada/shop/tools");
  EXPECT_EQ(folder(Application::gemini, ConfigScope::project, ""), "/home/ada/shop");
  EXPECT_EQ(folder(Application::gemini, ConfigScope::user, ""), "");
}

TEST(Variables, BadTextsAreErrorsWithoutTheirValues) {
  const auto error_of = [](ConfiguredPlace place) {
    const auto out =
        expand_variables(config_of(Application::sluice, std::move(place)), fake_sources());
    EXPECT_FALSE(out);
    return out ? "" : out.error().message;
  };
  EXPECT_THAT(error_of(ConfiguredUrl{.url = "https://x", .headers = {{"X-A", "${LINES}"}}}),
              HasSubstr("headers.X-A: a header has no line breaks"));
  EXPECT_THAT(error_of(ConfiguredUrl{.url = "https://x", .headers = {{"X A", "${TOKEN}"}}}),
              ::testing::AllOf(HasSubstr("no name of a header"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(error_of(ConfiguredCommand{.program = "x", .environment = {{"A=B", "c"}}}),
              HasSubstr("no name of a variable"));
  EXPECT_THAT(error_of(ConfiguredCommand{.program = std::string("x\0y", 3)}),
              HasSubstr("zero byte"));
  EXPECT_THAT(error_of(ConfiguredCommand{.program = "${EMPTY}"}), HasSubstr("command: is empty"));
  EXPECT_THAT(
      error_of(ConfiguredCommand{.program = "x", .arguments = {std::string(kMaxExpanded, 'x')}}),
      HasSubstr("too long"));
}

TEST(Variables, ItIsKnownWhetherThereAreAny) {
  const auto asks = [](Application application, ConfiguredPlace place) {
    return has_variables(config_of(application, std::move(place)));
  };
  EXPECT_TRUE(asks(Application::sluice, ConfiguredUrl{.url = "https://${HOST}"}));
  EXPECT_FALSE(asks(Application::codex, ConfiguredUrl{.url = "https://${HOST}"}));
  EXPECT_TRUE(asks(Application::codex,
                   ConfiguredUrl{.url = "https://x", .variable_headers = {{"A", "B", "", false}}}));
  EXPECT_TRUE(asks(Application::vscode, ConfiguredUrl{.url = "https://${input:x}"}));
  EXPECT_TRUE(asks(Application::opencode, ConfiguredUrl{.url = "https://{file:x}"}));
  EXPECT_TRUE(asks(Application::vscode, ConfiguredUrl{.url = "https://x/${userHome}"}));
  EXPECT_TRUE(asks(Application::cursor,
                   ConfiguredUrl{.url = "https://x", .headers = {{"A", "${workspaceFolder}"}}}));
  EXPECT_FALSE(asks(Application::vscode, ConfiguredUrl{.url = "https://x/${unknown}/$HOME"}));
}

}  // namespace
}  // namespace sluice
