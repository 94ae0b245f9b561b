#include "cli/targets/server_forms.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "cli/options/exit_code.hpp"
#include "cli/targets/lenient_json.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

ServersFile file_of(Application application, ConfigScope scope = ConfigScope::user) {
  return {.application = application,
          .scope = scope,
          .path = "/home/ada/config",
          .workspace = "/home/ada/shop",
          .directory = "/home/ada/shop/cart"};
}

ParsedServers parsed(Application application, std::string_view text) {
  auto out = parse_servers(text, file_of(application));
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *std::move(out) : ParsedServers();
}

const ServerConfig& server_at(const ParsedServers& parsed, std::string_view name) {
  for (const ServerConfig& server : parsed.servers) {
    if (server.name == name) return server;
  }
  throw std::runtime_error("no server " + std::string(name));
}

const ConfiguredCommand& command_at(const ParsedServers& parsed, std::string_view name) {
  return std::get<ConfiguredCommand>(server_at(parsed, name).place);
}

const ConfiguredUrl& url_at(const ParsedServers& parsed, std::string_view name) {
  return std::get<ConfiguredUrl>(server_at(parsed, name).place);
}

std::vector<std::string> described(const ParsedServers& parsed) {
  std::vector<std::string> out;
  for (const ConfigWarning& warning : parsed.warnings) out.push_back(warning.describe());
  return out;
}

constexpr std::string_view kClaude = R"({
  "numStartups": 42,
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}
    },
    "postgres": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-postgres", "${DATABASE:-postgresql:///shop}"],
      "env": {"PGOPTIONS": "-c statement_timeout=5s", "DEBUG": true, "LEVEL": 3},
      "timeout": 30000
    },
    "events": {"type": "sse", "url": "https://events.example.org/sse"},
    "live": {"type": "ws", "url": "wss://live.example.org/mcp"},
    "internal": {"type": "http", "url": "https://internal.example.org/mcp",
                 "headersHelper": "/opt/bin/headers.sh"}
  },
  "projects": {
    "/home/ada/shop": {
      "allowedTools": [],
      "mcpServers": {"github": {"command": "gh-mcp", "args": [], "env": {}}},
      "disabledMcpjsonServers": ["scraper"]
    },
    "/home/ada": {"mcpServers": {"elsewhere": {"command": "x"}}}
  }
})";

TEST(ServerForms, ClaudeCode) {
  const ParsedServers claude = parsed(Application::claude_code, kClaude);
  EXPECT_THAT(claude.warnings, IsEmpty());
  ASSERT_EQ(claude.servers.size(), 6U);
  EXPECT_EQ(url_at(claude, "github").url, "https://api.githubcopilot.com/mcp/");
  EXPECT_EQ(url_at(claude, "github").transport, TransportHint::http);
  EXPECT_THAT(url_at(claude, "github").headers,
              ElementsAre(Pair("Authorization", "Bearer ${GITHUB_TOKEN}")));
  EXPECT_EQ(command_at(claude, "postgres").program, "npx");
  EXPECT_EQ(command_at(claude, "postgres").arguments.at(2), "${DATABASE:-postgresql:///shop}");
  EXPECT_THAT(command_at(claude, "postgres").environment,
              ElementsAre(Pair("PGOPTIONS", "-c statement_timeout=5s"), Pair("DEBUG", "true"),
                          Pair("LEVEL", "3")));
  EXPECT_EQ(server_at(claude, "postgres").request_timeout, std::chrono::seconds(30));
  EXPECT_EQ(url_at(claude, "events").transport, TransportHint::sse);
  EXPECT_EQ(url_at(claude, "live").transport, TransportHint::ws);
  EXPECT_THAT(server_at(claude, "internal").refusal, HasSubstr("headersHelper"));
  // The project's are the user's own in this project; those of a folder above it do not count.
  const ServerConfig& local = claude.servers.back();
  EXPECT_EQ(local.name, "github");
  EXPECT_EQ(local.source.scope, ConfigScope::local);
  EXPECT_EQ(local.source.workspace, "/home/ada/shop");
  EXPECT_THAT(claude.switches, ElementsAre(Pair("scraper", false)));
}

TEST(ServerForms, ClaudeDesktop) {
  const ParsedServers desktop = parsed(Application::claude_desktop, R"({"mcpServers": {
      "files": {"command": "npx", "args": ["-y", "server-filesystem", "/home/ada/Desktop"]}},
      "globalShortcut": ""})");
  EXPECT_THAT(desktop.warnings, IsEmpty());
  EXPECT_THAT(command_at(desktop, "files").arguments,
              ElementsAre("-y", "server-filesystem", "/home/ada/Desktop"));
}

TEST(ServerForms, Cursor) {
  const ParsedServers cursor = parsed(Application::cursor, R"({
    // of the team
    "mcpServers": {
      "docs": {
        "url": "https://docs.example.org/mcp", /* streams */
        "headers": {"X-Key": "${env:DOCS_KEY}"},
      },
      "build": {"command": "python3", "args": ["${workspaceFolder}/tools/mcp.py"],
                "envFile": "${workspaceFolder}/.env"},
    },
  })");
  EXPECT_THAT(cursor.warnings, IsEmpty());
  EXPECT_EQ(url_at(cursor, "docs").transport, TransportHint::any);
  EXPECT_EQ(command_at(cursor, "build").environment_file, "${workspaceFolder}/.env");
}

TEST(ServerForms, VsCode) {
  const ParsedServers code = parsed(Application::vscode, R"({
    "inputs": [{"type": "promptString", "id": "key", "description": "Perplexity key",
                "password": true}],
    "servers": {
      "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
                     "env": {"PERPLEXITY_API_KEY": "${input:key}"}, "dev": {"watch": "src/**"}},
      "local": {"type": "http", "url": "unix:///tmp/server.sock#/mcp/sub"},
      "caged": {"type": "stdio", "command": "npx", "sandboxEnabled": true, "sandbox": {}}
    }
  })");
  EXPECT_THAT(code.warnings, IsEmpty());
  EXPECT_THAT(server_at(code, "perplexity").inputs,
              ElementsAre(ConfigInput{.id = "key", .description = "Perplexity key"}));
  EXPECT_EQ(url_at(code, "local").url, "unix:///tmp/server.sock#/mcp/sub");
  EXPECT_THAT(server_at(code, "caged").refusal, HasSubstr("sandboxEnabled"));
}

TEST(ServerForms, VsCodeReadsServersOnly) {
  const ParsedServers code =
      parsed(Application::vscode, R"({"mcpServers": {"x": {"command": "y"}}})");
  EXPECT_THAT(code.servers, IsEmpty());
  EXPECT_THAT(described(code), ElementsAre("/home/ada/config: mcpServers: VS Code reads "
                                           "\"servers\"; it is ignored"));
}

TEST(ServerForms, Gemini) {
  const ParsedServers gemini = parsed(Application::gemini, R"({
    "theme": "GitHub", // mine
    "mcp": {"allowed": ["python", "web", "events"], "excluded": ["events"]},
    "mcpServers": {
      "python": {"command": "python", "args": ["-m", "server", "--port", "8080"],
                 "cwd": "./tools", "env": {"DATABASE_URL": "$DB", "KEY": "${KEY}"},
                 "timeout": 15000, "trust": true, "includeTools": ["a"]},
      "web": {"httpUrl": "https://web.example.org/mcp", "url": "https://web.example.org/sse",
              "headers": {"Authorization": "Bearer $TOKEN"}},
      "events": {"url": "https://events.example.org/sse"},
      "typed": {"url": "https://typed.example.org/mcp", "type": "http"},
      "socket": {"tcp": "ws://127.0.0.1:9000/mcp"}
    }
  })");
  EXPECT_THAT(gemini.warnings, IsEmpty());
  EXPECT_EQ(command_at(gemini, "python").directory, "./tools");
  EXPECT_EQ(url_at(gemini, "web").url, "https://web.example.org/mcp");
  EXPECT_EQ(url_at(gemini, "web").transport, TransportHint::http);
  EXPECT_EQ(url_at(gemini, "events").transport, TransportHint::sse);
  EXPECT_EQ(url_at(gemini, "typed").transport, TransportHint::http);
  EXPECT_EQ(url_at(gemini, "socket").transport, TransportHint::ws);
  EXPECT_THAT(gemini.switches, ElementsAre(Pair("events", false)));
  ASSERT_TRUE(gemini.allowed);
  EXPECT_THAT(*gemini.allowed, ElementsAre("python", "web", "events"));
}

TEST(ServerForms, Codex) {
  const ParsedServers codex = parsed(Application::codex, R"(
model = "gpt-5"
started = 2026-05-01

[projects."/home/ada/shop"]
trust_level = "trusted"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env_vars = ["HOME"]
cwd = "/home/ada"
startup_timeout_sec = 20.5
tool_timeout_sec = 45

[mcp_servers.context7.env]
MODE = "fast"

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1" }
env_http_headers = { "X-Team" = "FIGMA_TEAM" }
enabled = false

[mcp_servers.inline]
url = "https://mcp.example.org/mcp"
bearer_token = "literal"
)");
  EXPECT_THAT(codex.warnings, IsEmpty());
  EXPECT_EQ(command_at(codex, "context7").program, "npx");
  EXPECT_THAT(command_at(codex, "context7").environment, ElementsAre(Pair("MODE", "fast")));
  EXPECT_EQ(server_at(codex, "context7").startup_timeout, std::chrono::milliseconds(20'500));
  EXPECT_EQ(server_at(codex, "context7").request_timeout, std::chrono::seconds(45));
  EXPECT_FALSE(server_at(codex, "figma").enabled);
  EXPECT_THAT(url_at(codex, "figma").headers, ElementsAre(Pair("X-Figma-Region", "us-east-1")));
  EXPECT_THAT(url_at(codex, "figma").variable_headers,
              ElementsAre(HeaderFromVariable{"X-Team", "FIGMA_TEAM", "", false},
                          HeaderFromVariable{"Authorization", "FIGMA_TOKEN", "Bearer ", true}));
  EXPECT_THAT(server_at(codex, "inline").refusal, HasSubstr("bearer_token_env_var"));
}

TEST(ServerForms, OpenCode) {
  const ParsedServers opencode = parsed(Application::opencode, R"({
    "$schema": "https://opencode.ai/config.json",
    "mcp": {
      "everything": {"type": "local", "command": ["npx", "-y", "server-everything"],
                     "environment": {"TOKEN": "{env:TOKEN}"}, "timeout": 5000},
      "sentry": {"type": "remote", "url": "https://mcp.sentry.dev/mcp", "oauth": {},
                 "headers": {"X-Key": "{file:~/.sentry}"}, "enabled": false},
      "jira": {"enabled": true},
    },
  })");
  EXPECT_THAT(opencode.warnings, IsEmpty());
  EXPECT_EQ(command_at(opencode, "everything").program, "npx");
  EXPECT_THAT(command_at(opencode, "everything").arguments, ElementsAre("-y", "server-everything"));
  EXPECT_EQ(url_at(opencode, "sentry").transport, TransportHint::any);
  EXPECT_FALSE(server_at(opencode, "sentry").enabled);
  EXPECT_THAT(opencode.switches, ElementsAre(Pair("jira", true)));
}

TEST(ServerForms, OpenCodeOfTheSecondVersion) {
  const ParsedServers opencode = parsed(Application::opencode, R"({"mcp": {"servers": {
      "one": {"type": "local", "command": ["one"], "disabled": true,
              "timeout": {"startup": 1000, "request": 2000}}}}})");
  EXPECT_FALSE(server_at(opencode, "one").enabled);
  EXPECT_EQ(server_at(opencode, "one").startup_timeout, std::chrono::seconds(1));
  EXPECT_EQ(server_at(opencode, "one").request_timeout, std::chrono::seconds(2));
  // A server may have that name in the first version.
  const ParsedServers first = parsed(
      Application::opencode, R"({"mcp": {"servers": {"type": "local", "command": ["one"]}}})");
  EXPECT_EQ(command_at(first, "servers").program, "one");
}

TEST(ServerForms, WarningsNameFileServerAndKey) {
  const ParsedServers own = parsed(Application::sluice, R"({"mcpServers": {
      "typo": {"command": "a", "argz": []},
      "both": {"command": "a", "url": "https://b"},
      "none": {},
      "list": {"command": "a", "args": "b"},
      "kind": {"type": "pigeon", "url": "https://b"},
      "env": {"command": "a", "env": {"B": ["c"]}},
      "late": {"command": "a", "timeout": -1},
      "text": "a",
      "": {"command": "a"}}})");
  EXPECT_THAT(
      described(own),
      ElementsAre("/home/ada/config: server typo: argz: is not known; it is ignored",
                  "/home/ada/config: server both: has a command and a URL; give one, or say which "
                  "with \"type\"",
                  "/home/ada/config: server both: is ignored",
                  "/home/ada/config: server none: has neither a command nor a URL",
                  "/home/ada/config: server none: is ignored",
                  "/home/ada/config: server list: args: must be an array of at most 1000 strings",
                  "/home/ada/config: server list: is ignored",
                  "/home/ada/config: server kind: type: is not known; stdio, http, sse and ws are",
                  "/home/ada/config: server kind: is ignored",
                  "/home/ada/config: server env: env.B: must be a string",
                  "/home/ada/config: server env: is ignored",
                  "/home/ada/config: server late: timeout: must be a positive number, of at most a "
                  "week; it is ignored",
                  "/home/ada/config: server text: must be an object; it is ignored",
                  "/home/ada/config: a name has 1 to 256 bytes; it is ignored"));
  EXPECT_EQ(own.servers.size(), 2U);
}

TEST(ServerForms, ErrorsNameTheLine) {
  const auto error_of = [](Application application, std::string_view text) {
    const auto out = parse_servers(text, file_of(application));
    EXPECT_FALSE(out);
    return out ? Error() : out.error();
  };
  EXPECT_THAT(error_of(Application::claude_code, "{\n// no\n}").message,
              ::testing::StartsWith("/home/ada/config:2: "));
  EXPECT_THAT(error_of(Application::gemini, "{\"a\": 1,\n}").message,
              ::testing::StartsWith("/home/ada/config:2: "));
  EXPECT_THAT(error_of(Application::codex, "a = 1\nb = = 2").message,
              ::testing::StartsWith("/home/ada/config:2: "));
  EXPECT_EQ(error_of(Application::cursor, "{").code, kExitUsage);
  EXPECT_THAT(error_of(Application::codex, std::string(10'001, '.')).message, HasSubstr("dots"));
  std::string deep;
  for (int level = 0; level < 200; ++level) deep.append(level == 0 ? "[a" : ".a");
  EXPECT_THAT(error_of(Application::codex, deep + "]").message, HasSubstr("nested in more than"));
}

TEST(ServerForms, NoServersAreNoError) {
  for (const ApplicationName& one : kApplications) {
    EXPECT_THAT(parsed(one.application, " \n").servers, IsEmpty());
    if (one.application == Application::codex) continue;
    EXPECT_THAT(parsed(one.application, "\xEF\xBB\xBF{}").servers, IsEmpty());
    EXPECT_EQ(parsed(one.application, "[]").warnings.size(), 1U);
  }
}

TEST(ServerForms, ServersAreLimited) {
  std::string text = R"({"mcpServers":{)";
  for (int at = 0; at < 1001; ++at) {
    text.append(at == 0 ? "" : ",").append("\"s").append(std::to_string(at));
    text.append(R"(":{"command":"x"})");
  }
  const ParsedServers many = parsed(Application::cursor, text + "}}");
  EXPECT_EQ(many.servers.size(), kMaxServers);
  EXPECT_EQ(many.warnings.size(), 1U);
  std::string unknown = R"({"mcpServers":{"a":{"command":"x")";
  for (int at = 0; at < 200; ++at) unknown.append(",\"k" + std::to_string(at) + "\":1");
  const ParsedServers chatty = parsed(Application::cursor, unknown + "}}}");
  EXPECT_EQ(chatty.servers.size(), 1U);
  ASSERT_EQ(chatty.warnings.size(), kMaxConfigWarnings);
  EXPECT_EQ(chatty.warnings.back().message, "more of it is not understood");
  const std::string long_text(kMaxConfigText + 1, 'x');
  EXPECT_THAT(
      parsed(Application::cursor, R"({"mcpServers":{"a":{"command":")" + long_text + R"("}}})")
          .servers,
      IsEmpty());
}

TEST(LenientJson, LeavesStringsAlone) {
  EXPECT_EQ(
      plain_json(R"({"a": "// no, /* no */ ,]", "b\"": 1,})", JsonDialect::comments_and_commas),
      R"({"a": "// no, /* no */ ,]", "b\"": 1 })");
  EXPECT_EQ(plain_json("[1, // one\n/* two\n */]", JsonDialect::comments_and_commas),
            "[1        \n      \n   ]");
  EXPECT_EQ(plain_json("[1, // one\n]", JsonDialect::comments), "[1,       \n]");
  EXPECT_EQ(plain_json("[1 /* open", JsonDialect::comments), "[1 /* open");
  EXPECT_EQ(plain_json("\"open \\", JsonDialect::comments), "\"open \\");
}

}  // namespace
}  // namespace sluice
