#include "cli/program.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/options/exit_code.hpp"
#include "core/version.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

int run_arguments(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice");
  return run_program(static_cast<int>(arguments.size()), arguments.data());
}

Outcome run(const std::vector<const char*>& arguments) {
  CaptureStdout();
  CaptureStderr();
  const int code = run_arguments(arguments);
  return {code, GetCapturedStdout(), GetCapturedStderr()};
}

TEST(Program, SaysWhyItCannotPrint) {
  for (const std::vector<const char*>& arguments :
       {std::vector<const char*>{"--help"},
        {"serve", "--help"},
        {"--version"},
        {"version"},
        {"servers"},
        {"servers", "--json"},
        {"man"},
        {"completion", "bash"},
        {"doctor", "--engine", "synthetic", "--port", "0"},
        {"doctor", "--json", "--engine", "synthetic", "--port", "0"},
        {"serve", "--print-config"},
        {"serve", "--example-config"}}) {
    const int kept = ::dup(STDOUT_FILENO);
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ::dup2(full, STDOUT_FILENO);
    CaptureStderr();
    const int code = run_arguments(arguments);
    EXPECT_EQ(GetCapturedStderr(), "sluice: cannot write: No space left on device\n")
        << ::testing::PrintToString(arguments);
    EXPECT_EQ(code, kExitFailure);
    ::dup2(kept, STDOUT_FILENO);
    ::close(full);
    ::close(kept);
  }
}

TEST(Program, HelpHasExamplesAndExitCodes) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, kExitOk);
  EXPECT_THAT(help.out,
              HasSubstr("Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3"));
  for (const char* command :
       {"serve", "chat",  "doctor",    "bench",      "servers", "mcp",          "info",     "ping",
        "tools", "call",  "resources", "read",       "prompts", "prompt",       "complete", "watch",
        "tasks", "proxy", "version",   "completion", "man",     "import-config"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Outcome own = run({command, "--help"});
    EXPECT_EQ(own.code, kExitOk) << command;
    EXPECT_THAT(own.out, HasSubstr("Examples:")) << command;
  }
}

TEST(Program, WrongUsageIsTwo) {
  for (const std::vector<const char*>& arguments :
       {std::vector<const char*>{},
        {"fly"},
        {"serve", "--wings"},
        {"version", "doctor"},
        {"chat", "--top-k"},
        {"chat", "--top-k", "many"},
        {"chat", "--via", "ws", "--via", "sse"},
        {"chat", "--via", "pigeon"},
        {"chat", "--url", "ftp://x", "hi"},
        {"chat", "--url", "http://127.0.0.1:1", "--model", "m.gguf", "hi"},
        {"chat", "--url", "http://127.0.0.1:1", "--config", "x.toml", "hi"},
        {"chat", "--param", "=5", "hi"},
        {"chat", "--param", "stream=false", "hi"},
        {"chat", "--backend", "abacus", "hi"},
        {"serve", "--stdio=perhaps"},
        {"version", "--json=perhaps"},
        {"call"},
        {"call", "http://127.0.0.1:1/mcp"},
        {"call", "http://127.0.0.1:1/mcp", "tool", "word"},
        {"call", "--", "tool", "a=1"},
        {"ping", "ftp://x"},
        {"ping", "http://127.0.0.1:1/mcp", "--timeout", "-1"},
        {"ping", "unix:/no/such/socket", "-H", "A: b"},
        {"read", "http://127.0.0.1:1/mcp"},
        {"bench", "--mode", "pigeon"},
        {"bench", "--url", "nonsense"},
        {"bench", "--duration", "soon"},
        {"bench", "--duration", "169h"},
        {"bench", "--rate", "1e-10"},
        {"bench", "--rate", "1e300"},
        {"bench", "--rate", "-1"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage) << ::testing::PrintToString(arguments);
    EXPECT_NE(outcome.err, "") << ::testing::PrintToString(arguments);
  }
}

TEST(Program, AMistakeIsExplainedOnOneLine) {
  for (const auto& [arguments, message] :
       std::vector<std::pair<std::vector<const char*>, const char*>>{
           {{}, "give a command: serve, import-config, chat, "},
           {{"srve"}, "there is no command srve; did you mean serve?"},
           {{"fly"}, "there is no command fly; see sluice --help"},
           {{"--hlep"}, "there is no option --hlep; did you mean --help?"},
           {{"serve", "--prot", "80"}, "serve has no option --prot; did you mean --port?"},
           {{"serve", "--max-conn=1"}, "no option --max-conn; did you mean --max-connections?"},
           {{"doctor", "--wings"}, "doctor has no option --wings; see sluice doctor --help"},
           {{"doctor", "--prot", "80"}, "doctor has no option --prot; did you mean --port?"},
           {{"version", "doctor"}, "version takes no argument doctor; see sluice version --help"},
           {{"chat", "--top-k"}, "--top-k needs a value; see sluice chat --help"},
           {{"serve", "--log-file=", "--print-config"},
            "--log-file= has no value; give one, or leave it out"},
           {{"chat", "--top-k", "many"},
            "--top-k: \"many\": give a whole number from -2147483648 to 2147483647; see"},
           {{"chat", "--max-tokens", "99999999999"}, "--max-tokens: \"99999999999\": give a whole"},
           {{"chat", "--temperature", "nan", "hi"}, "--temperature: \"nan\": give a number; see"},
           {{"chat", "--top-p", "-inf", "hi"}, "--top-p: \"-inf\": give a number; see"},
           {{"bench", "--streams", "-1"}, "--streams: \"-1\": give a whole number from 0 to"},
           {{"chat", "--url", "http://127.0.0.1:1", "--key", "a\r\nX: y", "hi"},
            "--key: a key has"},
           {{"chat", "--url", "https://127.0.0.1:1", "--ca", "/nonexistent", "hi"},
            "sluice: Cannot use the CA file /nonexistent: No such file or directory"},
           {{"serve", "--stdio=maybe"}, "--stdio takes no value other than true or false"},
           {{"chat", "--url", "http://a", "--url", "http://b", "hi"},
            "--url is given more than once; see sluice chat --help"},
           {{"-V"}, "there is no option -V; see sluice --help"},
           {{"serve", "--api-kye=alice=secret"}, "no option --api-kye; did you mean --api-key?"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, ::testing::StartsWith("sluice: "));
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("secret")));
  }
}

TEST(Program, TheHelpFitsInAPipe) {
  for (const char* command :
       {"serve", "chat",  "doctor",    "bench",      "servers", "mcp",          "info",     "ping",
        "tools", "call",  "resources", "read",       "prompts", "prompt",       "complete", "watch",
        "tasks", "proxy", "version",   "completion", "man",     "import-config"}) {
    std::istringstream help(run({command, "--help"}).out);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Program, TheHelpOfDoctorRefersToThatOfServe) {
  const std::string help = run({"doctor", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("`sluice serve --help` lists"));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("--max-body")));
}

TEST(Program, ABadSettingIsWrongUsageToo) {
  const Outcome outcome = run({"serve", "--port", "http"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--port: \"http\""));
}

TEST(Program, PrintsTheConfigurationWithoutSecrets) {
  const Outcome outcome =
      run({"serve", "--print-config", "--port", "9000", "--api-key", "alice=0123456789abcdef"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, HasSubstr("port = 9000  # --port\n"));
  EXPECT_THAT(outcome.out, HasSubstr("api_keys = [\"alice=<redacted>\"]"));
  EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("0123456789abcdef")));
}

TEST(Program, DoctorReportsAsJson) {
  const Outcome outcome = run({"doctor", "--json", "--engine", "synthetic", "--port", "0"});
  const auto report = parse_json(outcome.out);
  ASSERT_TRUE(report) << outcome.out;
  EXPECT_EQ(outcome.code, report->at("ok").as_bool() ? kExitOk : kExitFailure);
  EXPECT_GE(report->at("checks").as_array().size(), 8U);
}

TEST(Program, DoctorFailsOnABadConfigurationFile) {
  const Outcome outcome = run({"doctor", "--config", "/nonexistent.toml"});
  EXPECT_EQ(outcome.code, kExitFailure);
  EXPECT_THAT(outcome.out, HasSubstr("/nonexistent.toml"));
}

TEST(Program, TellsItsVersion) {
  const Outcome outcome = run({"version", "--json"});
  EXPECT_EQ(outcome.code, kExitOk);
  const auto version = parse_json(outcome.out);
  ASSERT_TRUE(version);
  EXPECT_EQ(version->at("version"), json::value(kVersion));
  EXPECT_THAT(run({"version"}).out, HasSubstr("2026-07-28"));
}

TEST(Program, TheExitCodesAreDocumented) {
  std::ifstream file(std::filesystem::path(SLUICE_SOURCE_DIR) / "docs/command-line.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string table = "| code | meaning |\n|---|---|\n";
  for (const ExitCode& one : kExitCodes) {
    table.append("| ").append(std::to_string(one.code)).append(" | ");
    table.append(one.meaning).append(" |\n");
  }
  EXPECT_THAT(text.str(), HasSubstr(table + "\n"));
}

TEST(Program, TheVersionIsTheBuilds) {
  std::ifstream file(std::filesystem::path(SLUICE_SOURCE_DIR) / "CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("project(sluice VERSION " + std::string(kVersion) + " "));
}

}  // namespace
}  // namespace sluice
