#include "cli/targets/own_servers.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <stdlib.h>  // setenv
#include <string>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

#include "cli/options/exit_code.hpp"
#include "cli/program.hpp"
#include "core/file_test_support.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string content_of(const std::string& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

mode_t mode_of(const std::string& path) {
  struct stat status{};
  ::stat(path.c_str(), &status);
  return status.st_mode & 07777U;
}

TEST(OwnServers, AreAddedAndRemoved) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path("config/sluice/servers.json");
  ASSERT_TRUE(add_own_server(
      path, "files",
      ConfiguredCommand{
          .program = "npx", .arguments = {"-y", "files"}, .environment = {{"A", "b"}}}));
  ASSERT_TRUE(add_own_server(path, "docs",
                             ConfiguredUrl{.url = "https://example.org/mcp",
                                           .transport = TransportHint::sse,
                                           .headers = {{"X-Key", "${KEY}"}}}));
  EXPECT_EQ(content_of(path), R"({
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": [
        "-y",
        "files"
      ],
      "env": {
        "A": "b"
      }
    },
    "docs": {
      "type": "sse",
      "url": "https://example.org/mcp",
      "headers": {
        "X-Key": "${KEY}"
      }
    }
  }
}
)");
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(mode_of(folder.path("config/sluice")), 0700U);
  ASSERT_TRUE(remove_own_server(path, "files"));
  ASSERT_TRUE(remove_own_server(path, "docs"));
  EXPECT_EQ(content_of(path), "{\n  \"mcpServers\": {}\n}\n");
}

TEST(OwnServers, KeepWhatIsNotOurs) {
  const test::TemporaryFile file(
      "servers.json", R"({"z": [1, 2.5, {"b": null}], "mcpServers": {"b": {"x": 12345678901234567},
      "a": {"command": "a", "more": "é\n"}, "c": {}}, "a": {}})");
  ::chmod(file.path().c_str(), 0644);
  ASSERT_TRUE(remove_own_server(file.path(), "c"));
  const auto value = parse_json(content_of(file.path()));
  ASSERT_TRUE(value);
  EXPECT_EQ(to_json(*value), R"({"z":[1,2.5,{"b":null}],"mcpServers":{"b":{"x":12345678901234567},)"
                             R"("a":{"command":"a","more":"é\n"}},"a":{}})");
  EXPECT_EQ(mode_of(file.path()), 0600U);
}

TEST(OwnServers, ABadFileIsNotReplaced) {
  const auto error_with = [](const std::string& text, mode_t mode) {
    const test::TemporaryFile file("servers.json", text);
    ::chmod(file.path().c_str(), mode);
    const auto added =
        add_own_server(file.path(), "a", ConfiguredUrl{.url = "https://example.org"});
    EXPECT_FALSE(added);
    EXPECT_EQ(content_of(file.path()), text);
    return added ? Error() : added.error();
  };
  EXPECT_THAT(error_with("{\n,}", 0600).message, HasSubstr("servers.json:2: "));
  EXPECT_THAT(error_with("[]", 0600).message, HasSubstr("must be an object"));
  EXPECT_THAT(error_with(R"({"mcpServers": []})", 0600).message,
              HasSubstr("mcpServers: must be an object"));
  EXPECT_THAT(error_with("{}", 0666).message, HasSubstr("is not changed: others can write"));
  const Error twice = error_with(R"({"mcpServers": {"a": {}}})", 0600);
  EXPECT_THAT(twice.message, HasSubstr("has a server a; remove it first: sluice mcp remove a"));
  EXPECT_EQ(twice.code, kExitUsage);
}

TEST(OwnServers, ALinkIsKept) {
  const test::TemporaryDirectory folder;
  std::ofstream(folder.path("real.json")) << "{}";
  std::filesystem::create_symlink("real.json", folder.path("servers.json"));
  ASSERT_TRUE(add_own_server(folder.path("servers.json"), "a", ConfiguredUrl{.url = "https://a"}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("servers.json")));
  EXPECT_THAT(content_of(folder.path("real.json")), HasSubstr("https://a"));
}

TEST(OwnServers, NoneIsLostWhenSeveralWrite) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path("servers.json");
  std::vector<std::thread> writers;
  for (int at = 0; at < 8; ++at) {
    writers.emplace_back([&path, at] {
      EXPECT_TRUE(
          add_own_server(path, "s" + std::to_string(at), ConfiguredUrl{.url = "https://a"}));
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(parse_json(content_of(path))->at("mcpServers").as_object().size(), 8U);
  // No temporary file is left.
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

/// The program in an empty home, which is also its working directory.
class TargetCommands : public ::testing::Test {
 protected:
  struct Outcome {
    int code;
    std::string out;
    std::string err;
  };

  TargetCommands() {
    for (const auto& [name, value] : variables_) ::setenv(name, value.c_str(), 1);
    ::unsetenv("CODEX_HOME");
    ::unsetenv("CLAUDE_CONFIG_DIR");
    ::unsetenv("OPENCODE_CONFIG");
    std::filesystem::current_path(home_.path());
  }
  ~TargetCommands() override {
    std::filesystem::current_path(before_);
    ::setenv("HOME", old_home_.c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
  }

  static Outcome run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "sluice");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = run_program(static_cast<int>(arguments.size()), arguments.data());
    return {code, ::testing::internal::GetCapturedStdout(),
            ::testing::internal::GetCapturedStderr()};
  }
  [[nodiscard]] std::string own_path() const { return home_.path(".config/sluice/servers.json"); }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = home_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const test::TemporaryDirectory home_;

 private:
  const std::vector<std::pair<const char*, std::string>> variables_ = {
      {"HOME", home_.path()}, {"XDG_CONFIG_HOME", home_.path(".config")}};
  const std::filesystem::path before_ = std::filesystem::current_path();
  const std::string old_home_ = ::getenv("HOME") == nullptr ? "/" : ::getenv("HOME");
};

TEST_F(TargetCommands, ListWhatIsFound) {
  const Outcome none = run({"servers"});
  EXPECT_EQ(none.code, kExitOk);
  EXPECT_THAT(none.out, HasSubstr("sluice mcp add NAME URL"));
  write(".cursor/mcp.json", R"({"mcpServers": {"docs": {"url": "https://example.org/mcp",
      "headers": {"X-Key": "s3cret"}, "colour": "red"}}})");
  write(".vscode/mcp.json", "{\n{");
  const Outcome text = run({"servers"});
  EXPECT_EQ(text.code, kExitOk);
  EXPECT_EQ(text.out,
            "docs  cursor  https://example.org/mcp  (headers: X-Key)\n"
            "      ~/.cursor/mcp.json\n");
  EXPECT_THAT(text.err, AllOf(HasSubstr("server docs: colour: is not known; it is ignored"),
                              HasSubstr("/.vscode/mcp.json: line 2: ")));
  const Outcome as_json = run({"servers", "--json"});
  EXPECT_EQ(as_json.err, "");
  const auto report = parse_json(as_json.out);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->at("warnings").as_array().size(), 2U);
  EXPECT_THAT(as_json.out, Not(HasSubstr("s3cret")));
}

TEST_F(TargetCommands, AddAndRemove) {
  const Outcome added = run({"mcp", "add", "docs", "https://example.org/mcp", "--header",
                             "Authorization: Bearer ${TOKEN}", "--transport", "http"});
  EXPECT_EQ(added.code, kExitOk) << added.err;
  EXPECT_EQ(added.out, "Added docs to ~/.config/sluice/servers.json\n");
  EXPECT_EQ(run({"mcp", "add", "files", "--env", "A=b=c", "--", "npx", "-y", "--", "--help"}).code,
            kExitOk);
  EXPECT_EQ(run({"mcp", "add", "local", "http+unix:/run/a.sock"}).code, kExitOk);
  EXPECT_EQ(to_json(*parse_json(content_of(own_path()))),
            R"({"mcpServers":{"docs":{"type":"http","url":"https://example.org/mcp","headers":)"
            R"({"Authorization":"Bearer ${TOKEN}"}},"files":{"command":"npx","args":["-y","--",)"
            R"("--help"],"env":{"A":"b=c"}},"local":{"url":"http+unix:/run/a.sock"}}})");
  EXPECT_THAT(run({"servers"}).out, HasSubstr("files  sluice  -- npx -y -- --help  (env: A)\n"));
  const Outcome removed = run({"mcp", "remove", "files"});
  EXPECT_EQ(removed.code, kExitOk);
  EXPECT_EQ(removed.out, "Removed files from ~/.config/sluice/servers.json\n");
  EXPECT_THAT(run({"servers"}).out, Not(HasSubstr("files")));
}

TEST_F(TargetCommands, MistakesAreExplained) {
  ASSERT_EQ(run({"mcp", "add", "docs", "https://example.org/mcp"}).code, kExitOk);
  write(".cursor/mcp.json", R"({"mcpServers": {"theirs": {"url": "https://example.org/mcp"}}})");
  for (const auto& [arguments, message] :
       std::vector<std::pair<std::vector<const char*>, const char*>>{
           {{"mcp"}, "say what to do: add or remove"},
           {{"mcp", "ad", "x"}, "there is no mcp ad; did you mean add?"},
           {{"mcp", "add"}, "give the name of the server"},
           {{"mcp", "add", "a/b", "https://a"}, "\"a/b\": a name has 1 to 128 letters"},
           {{"mcp", "add", "x"}, "give the URL or the socket of the server, or a command after --"},
           {{"mcp", "add", "x", "https://a", "--", "b"}, "give the URL or the socket"},
           {{"mcp", "add", "x", "npx"}, "\"npx\" is no URL or socket; give one, or a command"},
           {{"mcp", "add", "x", "ftp://a"}, "a URL begins with http://"},
           {{"mcp", "add", "x", "unix:a.sock"}, "give the absolute path of the socket"},
           {{"mcp", "add", "x", "https://a", "--env", "A=b"}, "--env is for servers that are"},
           {{"mcp", "add", "x", "--header", "A: b", "--", "c"}, "--header and --transport are for"},
           {{"mcp", "add", "x", "https://a", "--header", "s3cret"},
            "give --header \"Name: value\""},
           {{"mcp", "add", "x", "https://a", "--transport", "pigeon"}, "--transport is http, sse"},
           {{"mcp", "add", "x", "--env", "s3cret", "--", "c"}, "give --env KEY=VALUE"},
           {{"mcp", "add", "docs", "https://a"}, "has a server docs; remove it first"},
           {{"mcp", "remove", "dosc"}, "has no server dosc; did you mean docs?"},
           {{"mcp", "remove", "theirs"}, "which is only read: remove it with Cursor"},
           {{"mcp", "remove", "docs", "https://a"}, "remove takes a name and nothing else"},
           {{"mcp", "add", "x", "--hedaer", "A: b"}, "mcp has no option --hedaer; did you mean"},
           {{"servers", "docs"}, "servers takes no argument docs"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage) << ::testing::PrintToString(arguments);
    EXPECT_THAT(outcome.err, AllOf(::testing::StartsWith("sluice: "), HasSubstr(message),
                                   Not(HasSubstr("s3cret"))));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
}

TEST_F(TargetCommands, SayWhatCannotBeWritten) {
  write(".config/sluice", "a file where the folder should be");
  const Outcome outcome = run({"mcp", "add", "x", "https://example.org"});
  EXPECT_EQ(outcome.code, kExitFailure);
  EXPECT_THAT(outcome.err, HasSubstr(".config/sluice"));
}

TEST_F(TargetCommands, TheHelpShowsTheCommandAfterDashes) {
  const Outcome help = run({"mcp", "--help"});
  EXPECT_EQ(help.code, kExitOk);
  EXPECT_THAT(help.out, HasSubstr("[-- COMMAND...]"));
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace sluice
