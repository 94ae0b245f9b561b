#include "cli/import/legacy_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/options/exit_code.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// The file that NANO writes, with everything at its default.
constexpr std::string_view kGenerated = R"({
  "_comment": "MCP Server Configuration - Auto-generated with all available options",
  "server": {"_comment": "Server-wide settings", "name": "MCP-Server", "version": "1.0.0",
    "enable_logging": true, "log_file": null, "pid_file": "/tmp/mcp_server.pid",
    "force_kill_existing": false},
  "transports": {"_comment": "Transport layer configuration",
    "enable_stdio": true, "enable_tcp": true, "enable_udp": true, "enable_http": true,
    "enable_websocket": true,
    "stdio": {"_comment": "", "line_buffered": true, "log_to_stderr": false},
    "tcp": {"_comment": "", "host": "0.0.0.0", "port": 8080, "timeout_ms": 5000, "max_retries": 3},
    "udp": {"_comment": "", "host": "0.0.0.0", "port": 8081, "timeout_ms": 5000, "max_retries": 3},
    "http": {"_comment": "", "host": "0.0.0.0", "port": 8082, "path": "/", "timeout_ms": 30000,
      "keep_alive": true, "max_header_size": 8192, "max_body_size": 1048576},
    "websocket": {"_comment": "", "host": "0.0.0.0", "port": 8083, "path": "/",
      "max_frame_length": 16777216, "ping_interval_ms": 30000},
    "common": {"_comment": "", "buffer_size": 8192, "default_timeout_ms": 5000, "max_retries": 3}},
  "rkllm": {"_comment": "", "default_model_path": "models/qwen3/model.rkllm",
    "max_context_len": 512, "max_new_tokens": 256, "top_k": 40, "n_keep": 0, "top_p": 0.9,
    "temperature": 0.8, "repeat_penalty": 1.1, "frequency_penalty": 0.0, "presence_penalty": 0.0,
    "mirostat": 0, "mirostat_tau": 5.0, "mirostat_eta": 0.1, "skip_special_token": false,
    "is_async": false,
    "extend": {"_comment": "", "base_domain_id": 0, "embed_flash": 0, "enabled_cpus_num": 4,
      "enabled_cpus_mask": 240, "n_batch": 1, "use_cross_attn": 0}},
  "buffers": {"_comment": "", "request_buffer_size": 8192, "response_buffer_size": 16384,
    "max_json_size": 65536, "proxy_response_buffer_size": 8192, "proxy_arg_buffer_size": 1024,
    "transport_buffer_size": 8192, "http_request_buffer_size": 8192,
    "http_response_buffer_size": 8192, "websocket_message_buffer_size": 8192,
    "log_message_buffer_size": 128},
  "limits": {"_comment": "", "max_request_size": 4096, "max_response_size": 8192,
    "max_settings_file_size": 1048576, "max_concurrent_connections": 100,
    "max_pending_requests": 1000}
})";

ImportedSettings import(std::string_view text) {
  auto imported = import_legacy_settings(text, "settings.json");
  EXPECT_TRUE(imported) << imported.error().message;
  return imported ? *std::move(imported) : ImportedSettings{};
}
ServeConfig config_of(std::string_view text) {
  return import(text).loaded.config;
}
std::string error_of(std::string_view text) {
  const auto imported = import_legacy_settings(text, "settings.json");
  if (imported) return "no error";
  EXPECT_EQ(imported.error().code, kExitUsage);
  return imported.error().message;
}
std::vector<std::string> places_of(const ServeConfig& config) {
  std::vector<std::string> out;
  for (const HostPort& place : listening_places(config)) out.push_back(to_text(place));
  return out;
}
/// What `sluice serve` makes of the settings as they are printed.
ServeConfig served(const ImportedSettings& imported) {
  const test::TemporaryFile file("sluice.toml", print_settings(imported.loaded));
  const auto loaded = load_serve_config(
      {.flags = {}, .environment = [](const auto&) { return std::nullopt; }, .file = file.path()});
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? loaded->config : ServeConfig{};
}

TEST(LegacySettings, WhatNanoGeneratesIsServed) {
  const ImportedSettings imported = import(kGenerated);
  const ServeConfig config = served(imported);
  EXPECT_THAT(places_of(config), ElementsAre("0.0.0.0:8082", "0.0.0.0:8083"));
  EXPECT_TRUE(config.legacy_ports);
  EXPECT_EQ(to_text(config.legacy_listen), "0.0.0.0:8080");
  EXPECT_FALSE(config.stdio);
  EXPECT_EQ(config.engine.model, "models/qwen3/model.rkllm");
  EXPECT_EQ(config.engine.context, 512U);
  EXPECT_EQ(config.engine.queue, 1000U);
  EXPECT_EQ(config.http.max_connections, 100U);
  EXPECT_EQ(config.http.max_body, 1048576U);
  EXPECT_EQ(config.http.max_header, 8192U);
  EXPECT_EQ(config.http.request_timeout, std::chrono::seconds(30));
  EXPECT_EQ(config.http.event_keep_alive, std::chrono::seconds(15)) << "a ping is half as often";
  EXPECT_THAT(imported.notes,
              Contains("settings.json: rkllm.top_k is left out: clients say it, with rkllm_init "
                       "for their session or with each run"));
  EXPECT_THAT(imported.notes, Contains(StartsWith("settings.json: transports.enable_udp is left "
                                                  "out: UDP is not served: it loses")));
  EXPECT_THAT(imported.notes, Contains(StartsWith("settings.json: transports.http.path is left "
                                                  "out: the path is /mcp")));
  EXPECT_THAT(imported.notes, Contains(HasSubstr("transports.enable_stdio is left out")));
}

TEST(LegacySettings, EverySettingIsTakenOrNoted) {
  const ImportedSettings imported = import(kGenerated);
  constexpr std::size_t kSettings = 72;
  constexpr std::size_t kAsHere = 2;    // logging is on, and there is no log file
  constexpr std::size_t kOfPlaces = 9;  // hosts, ports and switches of TCP, HTTP and WebSockets
  constexpr std::size_t kValues = 8;    // that a setting of ours has now
  EXPECT_EQ(imported.notes.size(), kSettings - kAsHere - kOfPlaces - kValues);
}

TEST(LegacySettings, NothingMeansOurDefaults) {
  for (const std::string_view text :
       {"{}", R"({"server":{},"rkllm":{"default_model_path":null}})",
        R"({"transports":{"tcp":null},"server":null})", "\xEF\xBB\xBF{} // none",
        R"({"server":{"enable_logging":true,"log_file":"",},})"}) {
    const ImportedSettings imported = import(text);
    EXPECT_THAT(imported.notes, IsEmpty());
    EXPECT_EQ(print_settings(imported.loaded), "") << text;
  }
}

TEST(LegacySettings, WithoutAHostOnlyThisMachineConnects) {
  const ServeConfig config =
      config_of(R"({"transports":{"tcp":{"port":9000},"enable_http":true}})");
  EXPECT_THAT(places_of(config), ElementsAre("127.0.0.1:8082")) << "NANO's port";
  EXPECT_EQ(to_text(config.legacy_listen), "127.0.0.1:9000");
  EXPECT_TRUE(config.legacy_ports);
}

TEST(LegacySettings, WhatIsSwitchedOffIsNotServed) {
  const ServeConfig config = config_of(
      R"({"transports":{"tcp":{"port":9000},"enable_tcp":false,"websocket":{"port":9001,"host":"::1"}}})");
  EXPECT_FALSE(config.legacy_ports);
  EXPECT_THAT(places_of(config), ElementsAre("[::1]:9001"));
}

TEST(LegacySettings, OnePlaceServesHttpAndWebSockets) {
  EXPECT_THAT(
      places_of(config_of(R"({"transports":{"http":{"port":9001},"websocket":{"port":9001}}})")),
      ElementsAre("127.0.0.1:9001"));
}

TEST(LegacySettings, TcpAloneLeavesItsPortToItself) {
  const ImportedSettings imported =
      import(R"({"transports":{"enable_tcp":true,"enable_http":false,"enable_websocket":false}})");
  EXPECT_EQ(to_text(served(imported).legacy_listen), "127.0.0.1:8080");
  EXPECT_THAT(places_of(served(imported)), ElementsAre("127.0.0.1:8082"));
  EXPECT_THAT(imported.notes, ElementsAre(HasSubstr("HTTP is always served")));
}

TEST(LegacySettings, TcpAloneMayHaveThePortOfHttp) {
  for (
      const std::string_view text :
      {R"({"transports":{"enable_tcp":true,"tcp":{"port":8082}}})",
       R"({"transports":{"enable_tcp":true,"tcp":{"port":8082},"http":{"port":8082},"enable_http":false}})"}) {
    EXPECT_THAT(places_of(config_of(text)), ElementsAre("127.0.0.1:8083"));
  }
}

TEST(LegacySettings, OnePlaceMayHaveSeveralNames) {
  const auto places = [](std::string_view http, std::string_view websocket) {
    return places_of(config_of(R"({"transports":{"http":{"port":9001,"host":")" +
                               std::string(http) + R"("},"websocket":{"port":9001,"host":")" +
                               std::string(websocket) + R"("}}})"));
  };
  EXPECT_THAT(places("127.0.0.1", "0.0.0.0"), ElementsAre("0.0.0.0:9001"));
  EXPECT_THAT(places("0.0.0.0", "localhost"), ElementsAre("0.0.0.0:9001"));
  EXPECT_THAT(places("127.0.0.1", "localhost"), ElementsAre("localhost:9001"));
  EXPECT_THAT(places("127.0.0.1", "::1"), ElementsAre("127.0.0.1:9001", "[::1]:9001"));
  EXPECT_THAT(
      error_of(R"({"transports":{"tcp":{"port":9000,"host":"0.0.0.0"},"http":{"port":9000}}})"),
      HasSubstr("0.0.0.0:9000 is where HTTP or WebSockets are served"));
}

TEST(LegacySettings, EveryCharacterIsPrintedSoThatItIsReadBack) {
  const ServeConfig config = config_of(R"({"server":{"log_file":"/l\u007f\u0001\"\\"}})");
  EXPECT_EQ(config.log.file, "/l\x7F\x01\"\\");
}

TEST(LegacySettings, StdioAloneIsServed) {
  const ImportedSettings imported = import(
      R"({"transports":{"enable_stdio":true,"enable_http":false,"stdio":{"line_buffered":true}}})");
  EXPECT_TRUE(served(imported).stdio);
  EXPECT_FALSE(served(imported).tcp);
  EXPECT_THAT(imported.notes, ElementsAre(HasSubstr("transports.stdio.line_buffered")));
}

TEST(LegacySettings, LoggingMayBeOff) {
  const ServeConfig config =
      config_of(R"({"server":{"enable_logging":false,"log_file":"/var/log/a \"b\".log"}})");
  EXPECT_EQ(config.log.level, LogLevel::off);
  EXPECT_EQ(config.log.file, "/var/log/a \"b\".log");
}

TEST(LegacySettings, ErrorsNameThePlace) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  for (const Case& each : std::vector<Case>{
           {"", "settings.json:1: "},
           {"{\n\n\"a\": x}", "settings.json:3: "},
           {"{} {}", "settings.json:1: "},
           {"[]", "settings.json: give a JSON object"},
           {R"({"a":)" + deep + "}", "settings.json:1: "},
           {std::string(kMaxLegacySettings + 1, ' '), "settings.json: is larger than 1048576"},
           {R"({"servr":{}})",
            "settings.json: servr: there is no such setting; did you mean server?"},
           {R"({"transports":{"tcp":{"prot":1}}})",
            "settings.json: transports.tcp.prot: there is no such setting; did you mean port?"},
           {R"({"transports":{"odd key":null}})",
            "settings.json: transports[\"odd key\"]: there is no such setting"},
           {R"({"transports":{"tcp.port":1}})",
            "settings.json: transports[\"tcp.port\"]: there is no such setting"},
           {R"({"transports":[]})", "settings.json: transports: give an object"},
           {R"({"rkllm":{"extend":3}})", "settings.json: rkllm.extend: give an object"},
           {R"({"transports":{"tcp":{"port":"80"}}})",
            "settings.json: transports.tcp.port: give an integer"},
           {R"({"rkllm":{"top_k":1.5}})", "settings.json: rkllm.top_k: give an integer"},
           {R"({"rkllm":{"top_p":true}})", "settings.json: rkllm.top_p: give a number"},
           {R"({"server":{"name":{}}})", "settings.json: server.name: give a string"},
           {R"({"server":{"enable_logging":1}})",
            "settings.json: server.enable_logging: give true or false"},
           {R"({"transports":{"http":{"port":0}}})",
            "settings.json: transports.http.port: 0 is not allowed here; give a number from 1"},
           {R"({"transports":{"http":{"port":65536}}})",
            "settings.json: transports.http.port: 65536 is not allowed here"},
           {R"({"transports":{"http":{"host":"a b"}}})",
            "settings.json: transports.http.host: \"a b\" is not allowed here; give an address"},
           {R"({"transports":{"http":{"host":"http://127.0.0.1"}}})",
            "settings.json: transports.http.host: \"http://127.0.0.1\" is not allowed here"},
           {R"({"transports":{"http":{"host":"127.0.0.1:99"}}})",
            "settings.json: transports.http.host: \"127.0.0.1:99\" is not allowed here"},
           {R"({"rkllm":{"max_context_len":1000000000}})",
            "settings.json: rkllm.max_context_len: --context: 1000000000 tokens"},
           {R"({"transports":{"http":{"timeout_ms":-1}}})",
            "settings.json: transports.http.timeout_ms: \"-1ms\" is not allowed here; give a time"},
           {R"({"transports":{"websocket":{"ping_interval_ms":1}}})",
            "settings.json: transports.websocket.ping_interval_ms: \"500us\" is not allowed here"},
           {R"({"transports":{"http":{"max_body_size":12}}})",
            "settings.json: transports.http.max_body_size: \"12\" is not allowed here; give a "
            "size"},
           {R"({"transports":{"http":{"max_body_size":1073741824}}})",
            "settings.json: transports.http.max_body_size: --max-body: 1GiB is more than half of "
            "--max-total-buffers"},
           {R"({"limits":{"max_pending_requests":-3}})",
            "settings.json: limits.max_pending_requests: \"-3\" is not allowed here"},
           {R"({"transports":{"tcp":{"port":9000},"http":{"port":9000}}})",
            "settings.json: transports.tcp: 127.0.0.1:9000 is where HTTP or WebSockets are served"},
       }) {
    EXPECT_THAT(error_of(each.text), StartsWith(each.message)) << each.text.substr(0, 100);
  }
}

}  // namespace
}  // namespace sluice
