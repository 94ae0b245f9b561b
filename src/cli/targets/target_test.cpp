#include "cli/targets/target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "cli/options/exit_code.hpp"
#include "cli/targets/server_report.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

struct FakeFile {
  Application application;
  ConfigScope scope;
  std::string path;
  std::string text;
  std::string distrust = {};
};

FoundServers found_in(const std::vector<FakeFile>& files) {
  std::vector<ServersFile> places;
  for (const FakeFile& file : files) {
    places.push_back({.application = file.application,
                      .scope = file.scope,
                      .path = file.path,
                      .workspace = "/shop",
                      .directory = "/shop"});
  }
  return find_servers(places, [&](const std::string& path) -> Result<std::optional<ReadConfig>> {
    for (const FakeFile& file : files) {
      if (file.path == path) return ReadConfig{.text = file.text, .distrust = file.distrust};
    }
    return std::nullopt;
  });
}

VariableSources fake_environment() {
  return {.environment = [](const std::string& name) -> std::optional<std::string> {
            if (name != "TOKEN") return std::nullopt;
            return "s3cret";
          },
          .read_file = [](const std::string& path) -> Result<std::string> {
            return fail(kExitUsage, path + ": there is no such file");
          },
          .home = "/home/ada",
          .directory = "/shop"};
}

Result<Target> target_for(const std::string& word, const FoundServers& found = {}) {
  return parse_target({.word = word, .command = {}}, found, fake_environment());
}

std::string error_for(const std::string& word, const FoundServers& found = {}) {
  const auto target = target_for(word, found);
  EXPECT_FALSE(target) << word;
  if (target) return {};
  EXPECT_EQ(target.error().code, kExitUsage);
  return target.error().message;
}

std::string own_file(const std::string& entries) {
  return R"({"mcpServers": {)" + entries + "}}";
}

TEST(Target, IsAUrl) {
  for (const std::string url : {"http://localhost:8080/mcp", "https://example.org/mcp?a=b",
                                "ws://localhost/mcp", "wss://example.org/mcp"}) {
    const auto target = target_for(url);
    ASSERT_TRUE(target) << url;
    const auto& place = std::get<UrlTarget>(target->place);
    EXPECT_EQ(place.url.to_string(), url);
    EXPECT_EQ(place.transport, url.starts_with("ws") ? TransportHint::ws : TransportHint::any);
  }
}

TEST(Target, IsASocket) {
  const auto socket_of = [](const std::string& word) {
    const auto target = target_for(word);
    EXPECT_TRUE(target) << word;
    return target ? std::get<UnixTarget>(target->place) : UnixTarget();
  };
  EXPECT_EQ(socket_of("unix:/run/a.sock").path, "/run/a.sock");
  EXPECT_EQ(socket_of("unix:/run/a.sock").http_target, "");
  EXPECT_EQ(socket_of("unix:///run/a.sock").path, "/run/a.sock");
  EXPECT_EQ(socket_of("http+unix:/run/a.sock").http_target, "/mcp");
  EXPECT_EQ(socket_of("http+unix:run/a.sock#/sub/mcp").http_target, "/sub/mcp");
  EXPECT_EQ(socket_of("http+unix:run/a.sock#/sub/mcp").path, "run/a.sock");
}

TEST(Target, IsACommand) {
  const auto target =
      parse_target({.word = {}, .command = {"npx", "--", "-y"}}, {}, fake_environment());
  ASSERT_TRUE(target);
  EXPECT_THAT(std::get<CommandTarget>(target->place).arguments, ElementsAre("npx", "--", "-y"));
}

TEST(Target, ErrorsSayWhatItMayBe) {
  const std::string forms =
      "a target is a URL (http, https, ws, wss), a socket (unix:PATH, "
      "http+unix:PATH), a command after --, a name that `sluice servers` lists, or @ and a name "
      "that "
      "`sluice session list` lists";
  EXPECT_THAT(parse_target({}, {}, fake_environment()).error().message,
              AllOf(HasSubstr("give a target: "), HasSubstr(forms)));
  EXPECT_THAT(parse_target({.word = "a", .command = {"b"}}, {}, fake_environment()).error().message,
              HasSubstr("not both"));
  EXPECT_THAT(
      error_for("me:s3cret@host/mcp?key=s3cret"),
      AllOf(HasSubstr("there is no server ***@host/mcp?key=***"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(error_for("nobody"), AllOf(HasSubstr("there is no server nobody"), HasSubstr(forms)));
  EXPECT_THAT(error_for("ftp://example.org"), AllOf(HasSubstr("begins with"), HasSubstr(forms)));
  EXPECT_THAT(error_for("https://ada:pw@example.org"), Not(HasSubstr("pw")));
  EXPECT_THAT(error_for("unix:"), HasSubstr("1 to 107 bytes"));
  EXPECT_THAT(error_for("unix:/a#/b"), HasSubstr("http+unix: has HTTP"));
  EXPECT_THAT(error_for("http+unix:/a#/b c"), HasSubstr("encode spaces"));
}

TEST(Target, IsANamedServer) {
  const FoundServers found = found_in({{Application::sluice, ConfigScope::user, "/own", own_file(R"(
      "docs": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
      "files": {"command": "npx", "args": ["-y", "${TOKEN}"], "env": {"A": "b"}, "cwd": "/x"},
      "lines": {"url": "unix:/run/a.sock"},
      "off": {"url": "https://off.example.org", "enabled": false},
      "bad": {"url": "ftp://${TOKEN}"}, "unset": {"url": "${NO}"})")},
                                       {Application::vscode, ConfigScope::user, "/code",
                                        R"({"servers": {"socket": {"type": "http",
                                            "url": "unix:///run/a.sock#/sub"}}})"}});
  const auto docs = target_for("docs", found);
  ASSERT_TRUE(docs);
  EXPECT_EQ(docs->name, "docs");
  EXPECT_THAT(std::get<UrlTarget>(docs->place).headers,
              ElementsAre(Pair("Authorization", "Bearer s3cret")));
  const auto files = target_for("sluice/files", found);
  ASSERT_TRUE(files);
  const auto& command = std::get<CommandTarget>(files->place);
  EXPECT_THAT(command.arguments, ElementsAre("npx", "-y", "s3cret"));
  EXPECT_THAT(command.environment, ElementsAre(Pair("A", "b")));
  EXPECT_EQ(command.directory, "/x");
  EXPECT_EQ(std::get<UnixTarget>(target_for("lines", found)->place).http_target, "");
  EXPECT_EQ(std::get<UnixTarget>(target_for("socket", found)->place).http_target, "/sub");
  EXPECT_THAT(target_for("off", found)->warnings, ElementsAre(HasSubstr("is switched off")));
  EXPECT_THAT(error_for("bad", found),
              AllOf(HasSubstr("/own: server bad: url: "), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(error_for("unset", found), HasSubstr("variable NO is not set"));
  EXPECT_THAT(error_for("dosc", found), HasSubstr("did you mean docs?"));
  EXPECT_THAT(error_for("cursor/docs", found), HasSubstr("there is no server cursor/docs"));
}

TEST(Target, ANameThatClashesIsAsked) {
  const std::string one = own_file(R"("a": {"url": "https://one.example.org"})");
  const std::string two = own_file(R"("a": {"url": "https://two.example.org"})");
  const auto found = found_in({{Application::claude_code, ConfigScope::user, "/claude", one},
                               {Application::cursor, ConfigScope::user, "/cursor", two}});
  EXPECT_EQ(error_for("a", found),
            "the files have different servers of the name a; say which: claude-code/a (/claude), "
            "cursor/a (/cursor)");
  EXPECT_TRUE(target_for("cursor/a", found));
  EXPECT_TRUE(clashes(found, "a"));
  // The same server is no clash, and our own file decides.
  EXPECT_TRUE(target_for("a", found_in({{Application::claude_code, ConfigScope::user, "/1", one},
                                        {Application::cursor, ConfigScope::user, "/2", one}})));
  const auto ours = found_in({{Application::sluice, ConfigScope::user, "/own", two},
                              {Application::cursor, ConfigScope::user, "/cursor", one}});
  EXPECT_EQ(std::get<UrlTarget>(target_for("a", ours)->place).url.host, "two.example.org");
}

TEST(Target, AProjectDoesNotChangeWhatANameMeans) {
  const auto found = found_in({{Application::claude_code, ConfigScope::user, "/user",
                                own_file(R"("a": {"url": "https://mine.example.org"})")},
                               {Application::claude_code, ConfigScope::project, "/project",
                                own_file(R"("a": {"command": "./evil"})")}});
  const std::string differ =
      "/project of this project has another server a than /user; add the one that you mean to your "
      "own file with `sluice mcp add`";
  EXPECT_EQ(error_for("a", found), differ);
  EXPECT_EQ(error_for("claude-code/a", found), differ);
  // Not even by switching off what the user has.
  const auto switched = found_in({{Application::opencode, ConfigScope::user, "/user",
                                   R"({"mcp": {"a": {"type": "remote", "url": "https://mine"}}})"},
                                  {Application::opencode, ConfigScope::project, "/project",
                                   R"({"mcp": {"a": {"enabled": false}}})"},
                                  {Application::cursor, ConfigScope::project, "/cursor",
                                   own_file(R"("a": {"command": "./evil"})")}});
  EXPECT_THAT(error_for("a", switched), HasSubstr("say which: cursor/a (/cursor), opencode/a"));
  // Nor by a name that looks like one with an application.
  const auto disguised = found_in({{Application::cursor, ConfigScope::user, "/user",
                                    own_file(R"("a": {"url": "https://mine.example.org"})")},
                                   {Application::claude_code, ConfigScope::project, "/project",
                                    own_file(R"("cursor/a": {"command": "./evil"},
                                                "sluice/a": {"command": "./evil"})")}});
  EXPECT_EQ(std::get<UrlTarget>(target_for("cursor/a", disguised)->place).url.host,
            "mine.example.org");
  EXPECT_THAT(error_for("sluice/a", disguised), HasSubstr("there is no server sluice/a"));
  EXPECT_TRUE(target_for("claude-code/sluice/a", disguised));
}

TEST(Target, TheMostImportantFileOfAnApplicationCounts) {
  const auto host_of = [](ConfigScope more, ConfigScope less) {
    const auto found = found_in(
        {{Application::gemini, less, "/less", own_file(R"("a": {"url": "https://less"})")},
         {Application::gemini, more, "/more", own_file(R"("a": {"url": "https://more"})")}});
    const auto target = target_for("a", found);
    return target ? std::get<UrlTarget>(target->place).url.host : target.error().message;
  };
  EXPECT_EQ(host_of(ConfigScope::user, ConfigScope::system), "more");
  EXPECT_EQ(host_of(ConfigScope::project, ConfigScope::project), "more");
  EXPECT_EQ(host_of(ConfigScope::managed, ConfigScope::project), "more");
  EXPECT_THAT(host_of(ConfigScope::project, ConfigScope::user), HasSubstr("than /less"));
}

TEST(Target, TheSameTextIsNotTheSameServerIfVariablesDiffer) {
  const std::string text = own_file(R"("a": {"url": "https://${TOKEN}"})");
  EXPECT_TRUE(clashes(found_in({{Application::claude_code, ConfigScope::user, "/1", text},
                                {Application::cursor, ConfigScope::user, "/2", text}}),
                      "a"));
}

TEST(Target, AFileOfOthersStartsNothing) {
  const auto found = found_in({{Application::cursor, ConfigScope::project, "/p", own_file(R"(
      "run": {"command": "x"}, "tell": {"url": "https://x.example.org/${env:TOKEN}"},
      "plain": {"url": "https://x.example.org"})"),
                                "others can write /p; forbid it with chmod go-w"}});
  EXPECT_EQ(error_for("run", found),
            "/p: server run is not used: others can write /p; forbid it "
            "with chmod go-w");
  EXPECT_THAT(error_for("tell", found), HasSubstr("others can write /p"));
  EXPECT_TRUE(target_for("plain", found));
  // The same server in a file that is trusted is used.
  const std::string same = own_file(R"("a": {"command": "x"})");
  EXPECT_TRUE(target_for("a", found_in({{Application::cursor, ConfigScope::user, "/mine", same},
                                        {Application::cursor, ConfigScope::project, "/p", same,
                                         "others can write /p"}})));
}

TEST(FoundServers, TheMoreImportantFileIsFirst) {
  const std::string text = own_file(R"("a": {"url": "https://a.example.org"})");
  const auto found = found_in({{Application::gemini, ConfigScope::system, "/system", text},
                               {Application::gemini, ConfigScope::user, "/user", text},
                               {Application::gemini, ConfigScope::project, "/far", text},
                               {Application::gemini, ConfigScope::project, "/near", text},
                               {Application::claude_code, ConfigScope::user, "/claude",
                                R"({"mcpServers": {"b": {"command": "user"}},
                     "projects": {"/shop": {"mcpServers": {"b": {"command": "local"}}}}})"},
                               {Application::claude_code, ConfigScope::project, "/project",
                                own_file(R"("b": {"command": "project"})")}});
  std::vector<std::string> order;
  for (const ServerConfig& server : found.servers) {
    order.push_back(server.source.path + " " + std::string(to_string(server.source.scope)));
  }
  EXPECT_THAT(order, ElementsAre("/claude local", "/project project", "/claude user",
                                 "/near project", "/far project", "/user user", "/system system"));
}

TEST(FoundServers, SwitchesCountInAllFilesOfTheApplication) {
  const auto found =
      found_in({{Application::opencode, ConfigScope::user, "/user",
                 R"({"mcp": {"a": {"type": "remote", "url": "https://a", "enabled": false},
                    "b": {"type": "remote", "url": "https://b"}}})"},
                {Application::opencode, ConfigScope::project, "/project",
                 R"({"mcp": {"a": {"enabled": true}, "b": {"enabled": false}}})"},
                {Application::gemini, ConfigScope::user, "/gemini",
                 R"({"mcp": {"allowed": ["c"]}, "mcpServers": {"c": {"httpUrl": "https://c"},
            "d": {"httpUrl": "https://d"}}})"}});
  std::map<std::string, bool> enabled;
  for (const ServerConfig& server : found.servers) enabled[server.name] = server.enabled;
  EXPECT_THAT(enabled,
              ElementsAre(Pair("a", true), Pair("b", false), Pair("c", true), Pair("d", false)));
}

TEST(FoundServers, ABadFileIsAWarning) {
  const auto found = found_in({{Application::cursor, ConfigScope::user, "/bad", "{"},
                               {Application::codex, ConfigScope::user, "/also", "= 1"}});
  ASSERT_EQ(found.warnings.size(), 2U);
  EXPECT_THAT(found.warnings[0].describe(), ::testing::StartsWith("/bad: line 1: "));
}

TEST(ServerReport, HasNoSecrets) {
  const auto found =
      found_in({{Application::sluice, ConfigScope::user, "/home/ada/own", own_file(R"(
      "docs": {"url": "https://ada:pw1@example.org/mcp?key=pw2&x&token=pw3#pw",
               "headers": {"Authorization": "Bearer pw4"}},
      "run": {"command": "npx", "args": ["-y", "--api-key", "pw5", "--token=pw6", "-e",
              "GITHUB_TOKEN=pw7", "postgres://ada:pw8@db/shop", "--header", "X-Key: pw9", "--port",
              "80", "--headers", "Authorization", "Bearer pw11", "-H", "X-Key: pw12", "-e",
              "DB_PASS=pw13", "sk-pw14", "{\"apiKey\":\"pw15\"}", "https://x/#pw16"], "env": {"KEY": "pw10"}, "disabled": true})")}});
  const std::string text = text_of_servers(found, "/home/ada", Style::plain());
  EXPECT_EQ(text,
            "docs  sluice  https://***@example.org/mcp?key=***&x&token=***  (headers: "
            "Authorization)\n"
            "      ~/own\n"
            "run   sluice  -- npx -y --api-key *** --token=*** -e GITHUB_TOKEN=*** "
            "postgres://***@db/shop --header *** --port 80 --headers *** *** -H X-Key:*** -e "
            "DB_PASS=*** *** {\"apiKey\":*** https://x/  (env: KEY)\n"
            "      ~/own; switched off\n");
  const std::string json = json_of_servers(found);
  EXPECT_THAT(json, Not(HasSubstr("pw")));
  const auto report = parse_json(json);
  ASSERT_TRUE(report) << json;
  const auto& run = report->at("servers").at(1);
  EXPECT_EQ(run.at("name").as_string(), "run");
  EXPECT_EQ(run.at("application").as_string(), "sluice");
  EXPECT_EQ(run.at("enabled").as_bool(), false);
  EXPECT_EQ(to_json(run.at("env")), R"(["KEY"])");
}

TEST(ServerReport, HasNoSecretsInWhatLooksLikeOptionsOrHasSeveralUrls) {
  const auto shown = [](std::vector<std::string> arguments) {
    return describe_place(ConfiguredCommand{.program = "x", .arguments = std::move(arguments)});
  };
  EXPECT_EQ(shown({"--password", "-hunter2", "-v"}), "-- x --password *** -v");
  EXPECT_EQ(shown({"--no-auth", "-token", "pw"}), "-- x --no-auth *** ***");
  EXPECT_EQ(shown({"--use-auth", "--port", "80"}), "-- x --use-auth --port 80");
  EXPECT_EQ(shown({"http://a,http://user:pw@b;c://me:p,w@d/?key=1"}),
            "-- x http://a,http://***@b;c://***@d/?key=***");
  EXPECT_EQ(shown({"http://a/?back=http://b/?code=pw"}), "-- x http://a/?back=***");
}

TEST(ServerReport, ShowsWhatIsToBeKnown) {
  const auto found =
      found_in({{Application::claude_code, ConfigScope::user, "/user",
                 own_file(R"("a": {"url": "https://mine.example.org"})")},
                {Application::claude_code, ConfigScope::project, "/project",
                 own_file(R"("a": {"command": "./run"})"), "others can write /project"}});
  EXPECT_EQ(
      text_of_servers(found, "", Style::plain()),
      "a  claude-code  -- ./run\n"
      "   /project; not used: others can write /project; a file of the project and another "
      "one differ; add the one that you mean with sluice mcp add\n"
      "a  claude-code  https://mine.example.org\n"
      "   /user; a file of the project and another one differ; add the one that you mean with "
      "sluice mcp add\n");
  EXPECT_THAT(json_of_servers(found), HasSubstr(R"("clash":true)"));
  const auto ours = found_in({{Application::sluice, ConfigScope::user, "/own",
                               own_file(R"("a": {"url": "https://mine.example.org"})")},
                              {Application::cursor, ConfigScope::user, "/cursor",
                               own_file(R"("a": {"url": "https://other.example.org"})")}});
  EXPECT_EQ(text_of_servers(ours, "", Style::plain()),
            "a  sluice  https://mine.example.org\n"
            "   /own\n"
            "a  cursor  https://other.example.org\n"
            "   /cursor; the name alone means that of sluice; say cursor/a\n");
  EXPECT_THAT(json_of_servers(found), HasSubstr(R"("refusal":"others can write /project")"));
}

}  // namespace
}  // namespace sluice
