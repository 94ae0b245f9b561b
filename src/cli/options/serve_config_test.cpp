#include "cli/options/serve_config.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <sys/stat.h>

#include "cli/options/command_line.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/serve_settings.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ConfigFile : public test::TemporaryFile {
 public:
  explicit ConfigFile(std::string_view content) : TemporaryFile("sluice.toml", content) {}
};

using Environment = std::map<std::string, std::string>;

ConfigSources sources(SettingValues flags, Environment environment, std::string file) {
  ConfigSources out;
  out.flags = std::move(flags);
  out.environment = [environment = std::move(environment)](
                        const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
  out.file = std::move(file);  // empty: no file is read, not even ./sluice.toml
  return out;
}

std::string error_of(const ConfigSources& from) {
  const auto loaded = load_serve_config(from);
  if (loaded) return "no error";
  EXPECT_EQ(loaded.error().code, kExitUsage);
  return loaded.error().message;
}

/// The settings that `serve` reads from these flags.
SettingValues flags_of(std::vector<const char*> arguments) {
  SettingValues flags;
  CommandLine program(
      {.name = "sluice", .description = "", .version = "", .footer = "", .print = {}});
  Subcommand command = program.add_subcommand("serve", "", "", [] { return kExitOk; });
  add_serve_options(command, flags);
  arguments.insert(arguments.begin(), {"sluice", "serve"});
  EXPECT_EQ(program.run(static_cast<int>(arguments.size()), arguments.data()), kExitOk);
  return flags;
}

TEST(ConfigValue, ReadsDurations) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_duration("500ms"), Duration(500ms));
  EXPECT_EQ(parse_duration("30s"), Duration(30s));
  EXPECT_EQ(parse_duration("1h30m"), Duration(90min));
  EXPECT_EQ(parse_duration("7us"), Duration(7us));
  EXPECT_EQ(parse_duration("0"), Duration(0));
  for (const auto* bad : {"", "5", "s", "5 s", "-5s", "1.5s", "5d", "5s3", "99999999999999999999h",
                          "9999999999999999h"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(ConfigValue, ReadsSizes) {
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("4KiB"), 4096U);
  EXPECT_EQ(parse_size("4MiB"), 4U << 20U);
  EXPECT_EQ(parse_size("1GiB"), 1U << 30U);
  EXPECT_EQ(parse_size("3MB"), 3'000'000U);
  for (const auto* bad : {"", "MiB", "-1", "1.5MiB", "4mib", "4 MiB", "99999999999999999999",
                          "99999999999999999GiB"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

TEST(ConfigValue, WritesWhatItReads) {
  for (const auto* text : {"0", "1ms", "1m30s", "168h", "1s1us"}) {
    EXPECT_EQ(format_duration(*parse_duration(text)), text);
  }
  for (const auto* text : {"0", "1", "1000", "1KiB", "1025", "3MiB", "2GiB"}) {
    EXPECT_EQ(format_size(*parse_size(text)), text);
  }
}

TEST(ServeConfig, FlagsWinOverEnvironmentOverFileOverDefaults) {
  const ConfigFile file(R"(
port = 1001
host = "::1"
[streams]
expiry = "1m"
max_chunks = 11
)");
  const Environment environment{{"SLUICE_PORT", "1002"}, {"SLUICE_HOST", "10.0.0.1"}};
  const auto loaded = load_serve_config(sources({{"port", {"1003"}}}, environment, file.path()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->config.port, 1003);
  EXPECT_EQ(loaded->config.host, "10.0.0.1");
  EXPECT_EQ(loaded->config.streams.expiry, Duration(std::chrono::minutes(1)));
  EXPECT_EQ(loaded->config.streams.max_chunks, 11U);
  EXPECT_EQ(loaded->config.streams.tombstone, ServeConfig{}.streams.tombstone);

  EXPECT_EQ(loaded->origins.at("port"), "--port");
  EXPECT_EQ(loaded->origins.at("host"), "SLUICE_HOST");
  EXPECT_EQ(loaded->origins.at("streams.expiry"), file.path() + ":5");
  EXPECT_FALSE(loaded->origins.contains("streams.tombstone"));
}

TEST(ServeConfig, TheEnvironmentCanNameTheFile) {
  const ConfigFile file("port = 1001\n");
  ConfigSources from = sources({}, {{"SLUICE_CONFIG", file.path()}}, "");
  from.file.reset();
  const auto loaded = load_serve_config(from);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.port, 1001);
}

TEST(ServeConfig, AnEmptyVariableIsAnUnsetOne) {
  const auto loaded = load_serve_config(sources({}, {{"SLUICE_PORT", ""}}, ""));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->config.port, 8080);
}

TEST(ServeConfig, AnUnknownKeyIsAnErrorThatNamesTheLineAndTheKnownOnes) {
  const ConfigFile file("port = 1\n[streams]\nmax_chunk = 5\n");
  EXPECT_THAT(error_of(sources({}, {}, file.path())),
              AllOf(HasSubstr("sluice.toml:3: unknown key \"streams.max_chunk\""),
                    HasSubstr("[streams] has the keys: max_chunks, max_bytes")));

  const ConfigFile section("[stream]\nmax_chunks = 5\n");
  EXPECT_THAT(
      error_of(sources({}, {}, section.path())),
      AllOf(HasSubstr("sluice.toml:2: unknown key \"stream.max_chunks\""), HasSubstr("[streams]")));

  const ConfigFile deep("[streams.more]\nmax_chunks = 5\n");
  EXPECT_THAT(error_of(sources({}, {}, deep.path())), HasSubstr("streams.more"));
}

TEST(ServeConfig, ABadValueIsAnErrorThatNamesItsPlaceAndWhatIsAllowed) {
  const ConfigFile file("[log]\n\nlevel = \"loud\"\n");
  EXPECT_THAT(error_of(sources({}, {}, file.path())),
              AllOf(HasSubstr("sluice.toml:3: log.level: \"loud\""),
                    HasSubstr("debug, info, warning, error or off")));
  EXPECT_THAT(error_of(sources({}, {{"SLUICE_PORT", "65536"}}, "")),
              AllOf(HasSubstr("SLUICE_PORT: \"65536\""), HasSubstr("from 0 to 65535")));
  EXPECT_THAT(error_of(sources({{"streams.expiry", {"soon"}}}, {}, "")),
              AllOf(HasSubstr("--stream-expiry: \"soon\""), HasSubstr("30s")));
}

TEST(ServeConfig, RefusesWrongTypesInTheFile) {
  for (const auto* text :
       {"port = [1]\n", "port = 1979-05-27\n", "host = {a = 1}\n", "port = 1.5\n",
        "[access]\nallowed_origins = \"*\"\n", "[access]\nallowed_origins = [[\"*\"]]\n"}) {
    const ConfigFile file(text);
    EXPECT_THAT(error_of(sources({}, {}, file.path())), HasSubstr("sluice.toml:")) << text;
  }
}

TEST(ServeConfig, ASyntaxErrorNamesTheLine) {
  const ConfigFile file("port = 1\nhost = \n");
  EXPECT_THAT(error_of(sources({}, {}, file.path())), HasSubstr("sluice.toml:2: "));
}

TEST(ServeConfig, AMissingFileIsAnError) {
  EXPECT_THAT(error_of(sources({}, {}, "/nonexistent/sluice.toml")),
              AllOf(HasSubstr("/nonexistent/sluice.toml"), HasSubstr("No such file")));
}

TEST(ServeConfig, TlsNeedsBothFiles) {
  EXPECT_THAT(error_of(sources({{"tls_certificate", {"a.pem"}}}, {}, "")), HasSubstr("both"));
}

TEST(ServeConfig, StreamsNeedSomeMemory) {
  const auto error = [](std::string size) {
    return error_of(sources(
        {{"streams.max_bytes", {"1KiB"}}, {"streams.max_total_bytes", {std::move(size)}}}, {}, ""));
  };
  EXPECT_EQ(error("64KiB"), "no error");
  EXPECT_THAT(error("65535"), HasSubstr("from 64KiB to"));
}

TEST(ServeConfig, OneStreamCannotBeAllowedMoreThanAllTogether) {
  EXPECT_THAT(error_of(sources({{"streams.max_total_bytes", {"512KiB"}}}, {}, "")),
              HasSubstr("--max-stream-bytes"));
}

TEST(ServeConfig, KeysComeFromListsAndFilesAndAreNeverShown) {
  const ConfigFile keys("# team\ncarol=0123456789abcdefCC  \r\n\n");
  const auto loaded = load_serve_config(
      sources({},
              {{"SLUICE_API_KEY", "alice=0123456789abcdefAA,bob=0123456789abcdefBB"},
               {"SLUICE_API_KEY_FILE", keys.path()}},
              ""));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto& all = loaded->config.access.api_keys;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].name, "bob");
  EXPECT_EQ(all[2].name, "carol");
  EXPECT_EQ(all[2].key, "0123456789abcdefCC");
  EXPECT_THAT(print_config(*loaded),
              AllOf(HasSubstr("\"bob=<redacted>\""), Not(HasSubstr("0123456789abcdef"))));
}

TEST(ServeConfig, ABadKeyIsRefusedWithoutShowingIt) {
  EXPECT_THAT(error_of(sources({{"access.api_keys", {"alice=tooshort"}}}, {}, "")),
              AllOf(HasSubstr("--api-key"), Not(HasSubstr("tooshort"))));
  EXPECT_THAT(error_of(sources(
                  {{"access.api_keys", {"a=0123456789abcdef1", "a=0123456789abcdef2"}}}, {}, "")),
              HasSubstr("used once"));
  const ConfigFile keys("a=0123456789abcdef1\nb tooshort\n");
  EXPECT_THAT(error_of(sources({{"access.api_key_file", {keys.path()}}}, {}, "")),
              AllOf(HasSubstr("sluice.toml:2: "), Not(HasSubstr("tooshort"))));
}

TEST(ServeConfig, TwoNamesWithTheSameKeyAreRefused) {
  const ConfigFile keys("b=0123456789abcdef\n");
  EXPECT_THAT(error_of(sources({{"access.api_keys", {"a=0123456789abcdef"}},
                                {"access.api_key_file", {keys.path()}}},
                               {}, "")),
              AllOf(HasSubstr("a and b have the same key"), Not(HasSubstr("0123456789abcdef"))));
}

TEST(ServeConfig, OperatorsAreNamesOfKeys) {
  const ConfigFile keys("b=0123456789abcdef\n");
  const SettingValues flags = {{"access.api_key_file", {keys.path()}}, {"access.operators", {"b"}}};
  const auto loaded = load_serve_config(sources(flags, {}, ""));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_THAT(loaded->config.access.operators, ElementsAre("b"));
  EXPECT_THAT(error_of(sources({{"access.operators", {"a"}}}, {}, "")),
              HasSubstr("--operator: there is no API key named a; give one with --api-key a=KEY"));
}

TEST(ServeConfig, WhatIsTooMuchIsRefusedWithItsBounds) {
  EXPECT_THAT(error_of(sources({{"http.max_body", {"2GiB"}}}, {}, "")),
              HasSubstr("a size from 1KiB to 1GiB"));
  EXPECT_THAT(error_of(sources({{"engine.context", {"1000000000"}}}, {}, "")),
              HasSubstr("--context: 1000000000 tokens for each of 4 --slots are too many"));
}

TEST(ServeConfig, ARunningServerReadsNoPipe) {
  const test::TemporaryDirectory directory;
  const std::string pipe = directory.path("pipe");
  const ConfigFile certificate("");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (ConfigSources from :
       {sources({}, {}, pipe), sources({{"access.api_key_file", {pipe}}}, {}, ""),
        sources({{"tls_certificate", {certificate.path()}}, {"tls_key", {pipe}}}, {}, "")}) {
    from.while_serving = true;
    EXPECT_THAT(error_of(from), HasSubstr(pipe + ": not a regular file"));
  }
}

TEST(ServeConfig, AFileWithoutAKeyIsRefused) {
  for (const std::string_view text : {"", "# alice=0123456789abcdefAA\n", " \r\n\n"}) {
    const ConfigFile keys(text);
    EXPECT_THAT(error_of(sources({{"access.api_key_file", {keys.path()}}}, {}, "")),
                HasSubstr("no key in this file"));
    EXPECT_THAT(error_of(sources({{"access.api_keys", {"a=0123456789abcdef1"}},
                                  {"access.api_key_file", {keys.path()}}},
                                 {}, "")),
                HasSubstr("no key in this file"));
  }
}

TEST(ServeConfig, AKeyOfManyTablesIsRefused) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text.append(".a");
  const auto values = parse_config_text(text + " = 1", "deep");
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, kExitUsage);
  EXPECT_THAT(values.error().message, HasSubstr("deep: contains more than"));
}

TEST(ServeConfig, ATableHeaderWithoutAKeyIsRefused) {
  const std::string with_nul("\n[\0]", 4);
  for (const std::string& text : {std::string("\n[=]"), std::string("\n[[ {"), with_nul}) {
    const auto values = parse_config_text(text, "header");
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().code, kExitUsage);
    EXPECT_THAT(values.error().message, HasSubstr("header:2: "));
  }
}

TEST(ServeConfig, ACharacterBeyondAsciiOutsideStringsIsRefused) {
  for (const std::string_view text :
       {"\n\xC2\xA0 = 1", "\na = \xC3\xA4", "\nfile\xD2\x95", "\na = 0.x\"'\xDB\x96\"'"}) {
    const auto values = parse_config_text(text, "file");
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().code, kExitUsage);
    EXPECT_THAT(values.error().message, HasSubstr("file:2: "));
  }
}

TEST(ServeConfig, WhatIsPrintedReadsBackTheSame) {
  const auto loaded =
      load_serve_config(sources({{"host", {"a\"b\\c"}},
                                 {"access.allowed_origins", {"https://a", "https://b"}},
                                 {"streams.expiry", {"1m30s"}},
                                 {"engine.gpu_layers", {"-1"}}},
                                {}, ""));
  ASSERT_TRUE(loaded);
  const ConfigFile file(print_config(*loaded));
  const auto again = load_serve_config(sources({}, {}, file.path()));
  ASSERT_TRUE(again) << again.error().message;
  for (const Setting& setting : serve_settings()) {
    EXPECT_EQ(setting.show(again->config), setting.show(loaded->config)) << setting.key;
  }
}

TEST(ServeConfig, APortIsOpenedBesideStdioAndASocketOnlyIfItIsAskedFor) {
  const ConfigFile port_in_file("port = 1001\n");
  const ConfigFile both_in_file("port = 1001\nunix = \"/run/s\"\n");
  const ConfigFile socket_in_file("unix = \"/run/s\"\n");
  const auto opens = [](const ConfigSources& from) {
    const auto loaded = load_serve_config(from);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded->config.tcp;
  };
  const SettingValues stdio{{"stdio", {"true"}}};
  EXPECT_TRUE(opens(sources({}, {}, "")));
  EXPECT_FALSE(opens(sources(stdio, {}, "")));
  EXPECT_FALSE(opens(sources({{"unix", {"/run/s"}}}, {}, "")));
  EXPECT_TRUE(opens(sources({{"stdio", {"true"}}, {"port", {"0"}}}, {}, "")));
  EXPECT_TRUE(opens(sources({{"unix", {"/run/s"}}, {"host", {"::1"}}}, {}, "")));
  EXPECT_FALSE(opens(sources({}, {{"SLUICE_STDIO", "true"}}, "")));
  // A port in the file does not count for a flag that asks for stdio; a file that asks for a socket
  // still allows a flag to name the port.
  EXPECT_FALSE(opens(sources(stdio, {}, port_in_file.path())));
  EXPECT_FALSE(opens(sources(stdio, {{"SLUICE_PORT", "1"}}, "")));
  EXPECT_TRUE(opens(sources({}, {}, both_in_file.path())));
  EXPECT_FALSE(opens(sources({}, {}, socket_in_file.path())));
  EXPECT_TRUE(opens(sources({{"port", {"0"}}}, {}, socket_in_file.path())));
  EXPECT_TRUE(opens(sources({{"stdio", {"false"}}}, {}, "")));
}

TEST(ServeConfig, ListenIsHostAndPortInOne) {
  const auto loaded = load_serve_config(
      sources({{"listen", {"[::1]:9000"}}, {"stdio", {"true"}}}, {{"SLUICE_PORT", "1"}}, ""));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->config.host, "::1");
  EXPECT_EQ(loaded->config.port, 9000);
  EXPECT_TRUE(loaded->config.tcp);
  EXPECT_THAT(print_config(*loaded),
              HasSubstr("host = \"::1\"  # --listen\nport = 9000  # --listen\n"));
  // A source that wins can change one of the two.
  const auto mixed =
      load_serve_config(sources({{"port", {"2"}}}, {{"SLUICE_LISTEN", "localhost:1"}}, ""));
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_EQ(mixed->config.host, "localhost");
  EXPECT_EQ(mixed->config.port, 2);
}

TEST(ServeConfig, ListensInSeveralPlaces) {
  const ConfigFile file("listen = [\"127.0.0.1:1\", \"[::1]:2\"]\n");
  const auto places = [](const LoadedConfig& loaded) {
    std::string out;
    for (const HostPort& place : listening_places(loaded.config)) out += to_text(place) + " ";
    return out;
  };
  const auto from_file = load_serve_config(sources({}, {}, file.path()));
  ASSERT_TRUE(from_file) << from_file.error().message;
  EXPECT_EQ(places(*from_file), "127.0.0.1:1 [::1]:2 ");
  const std::string printed = print_config(*from_file);
  EXPECT_TRUE(printed.starts_with("listen = [\"127.0.0.1:1\", \"[::1]:2\"]  # " + file.path()))
      << printed;
  const ConfigFile again(printed.substr(0, printed.find('\n')));
  EXPECT_EQ(places(*load_serve_config(sources({}, {}, again.path()))), places(*from_file));

  const auto from_flags = load_serve_config(
      sources({{"listen", {"a:3", "b:4"}}}, {{"SLUICE_LISTEN", "c:5,d:6"}}, file.path()));
  EXPECT_EQ(places(*from_flags), "a:3 b:4 ");
  const auto one = load_serve_config(sources({{"port", {"7"}}}, {}, file.path()));
  EXPECT_EQ(places(*one), "127.0.0.1:7 ");
  EXPECT_TRUE(print_config(*one).starts_with("host = \"127.0.0.1\"  # " + file.path()));
  const ConfigFile empty("listen = []\nport = 8\n");
  EXPECT_EQ(places(*load_serve_config(sources({}, {}, empty.path()))), "127.0.0.1:8 ");
  const auto none = load_serve_config(sources({{"stdio", {"true"}}}, {}, file.path()));
  EXPECT_EQ(places(*none), "");
}

TEST(ServeConfig, EachPlaceIsGivenOnceAndWithoutHostAndPort) {
  EXPECT_EQ(error_of(sources({{"listen", {"a:1", "a:1"}}}, {}, "")),
            "--listen: \"a:1\", \"a:1\" is not allowed here; give at most 64 HOST:PORT, each once, "
            "such as 127.0.0.1:8080 or [::1]:8080");
  std::vector<std::string> many;
  for (int port = 1; port <= 65; ++port) many.push_back("a:" + std::to_string(port));
  EXPECT_THAT(error_of(sources({{"listen", many}}, {}, "")), HasSubstr("at most 64"));
  EXPECT_THAT(error_of(sources({{"listen", {"::1:80"}}}, {}, "")), HasSubstr("[::1]:8080"));
  EXPECT_EQ(error_of(sources({{"listen", {"a:1"}}, {"port", {"2"}}}, {}, "")),
            "--listen: this is host and port in one; give either it or them");
}

TEST(ServeConfig, ReadsTheModeOfASocket) {
  const auto mode = [](std::string text) {
    return load_serve_config(sources({{"unix_mode", {std::move(text)}}}, {}, ""));
  };
  EXPECT_EQ(mode("0660")->config.unix_mode, 0660U);
  EXPECT_EQ(mode("600")->config.unix_mode, 0600U);
  for (const auto* bad : {"", "66", "1660", "0680", "rw", "06600"}) {
    EXPECT_FALSE(mode(bad)) << bad;
  }
}

TEST(ServeConfig, TheExampleInTheDocumentationIsCurrent) {
  const std::string path = SLUICE_SOURCE_DIR "/docs/sluice.toml";
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), example_config()) << "write it anew: sluice serve --example-config";
}

TEST(ServeConfig, TheExampleIsValidOnceUncommented) {
  std::string text;
  std::istringstream lines(example_config());
  for (std::string line; std::getline(lines, line);) {
    const bool setting = line.starts_with("# ") && line.find(" = ") != std::string::npos;
    text += (setting ? line.substr(2) : line) + "\n";
  }
  const ConfigFile file(text);
  const auto loaded = load_serve_config(sources({}, {}, file.path()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_GT(loaded->origins.size(), 30U);
  for (const Setting& setting : serve_settings()) {
    EXPECT_EQ(setting.show(loaded->config), setting.show(ServeConfig{})) << setting.key;
  }
}

TEST(ServeConfig, AnEmptyTextInTheFileIsNotSet) {
  const ConfigFile file("unix = \"\"\n[access]\napi_key_file = \"\"\n");
  const auto loaded = load_serve_config(sources({}, {}, file.path()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->origins.empty());
  const ConfigFile host("host = \"\"\n");
  EXPECT_THAT(error_of(sources({}, {}, host.path())), HasSubstr("give an IP address"));
  // On the command line it is rather a variable of the shell that is not set.
  EXPECT_THAT(error_of(sources({{"access.api_key_file", {""}}}, {}, "")), HasSubstr("give a file"));
}

TEST(ServeConfig, RefusesWhatServeWouldRefuse) {
  EXPECT_THAT(error_of(sources({{"access.trusted_proxies", {"foo"}}}, {}, "")),
              HasSubstr("--trusted-proxy: \"foo\" is not allowed here; give addresses"));
  EXPECT_THAT(error_of(sources({{"host", {std::string("a\0b", 3)}}}, {}, "")), HasSubstr("--host"));
  EXPECT_THAT(error_of(sources({{"tasks.ttl", {"48h"}}}, {}, "")),
              HasSubstr("--task-ttl: 48h is more than --max-task-ttl, 24h"));
  EXPECT_EQ(error_of(sources({{"tasks.max_ttl", {"2s"}}}, {}, "")), "no error");
}

TEST(ServeConfig, EverySettingIsAFlag) {
  for (const Setting& setting : serve_settings()) {
    const std::string flag(setting.flag);
    const SettingValues flags = setting.kind == Setting::Kind::flag ? flags_of({flag.c_str()})
                                                                    : flags_of({flag.c_str(), "1"});
    EXPECT_EQ(flags.size(), 1U) << flag;
    EXPECT_TRUE(flags.contains(setting.key)) << flag;
  }
  const SettingValues flags = flags_of({"--port", "1", "--port", "2", "--api-key", "a=b",
                                        "--api-key", "c=d", "--gpu-layers", "-1", "--stdio"});
  EXPECT_THAT(flags.at("port"), ElementsAre("2"));
  EXPECT_THAT(flags.at("access.api_keys"), ElementsAre("a=b", "c=d"));
  EXPECT_THAT(flags.at("engine.gpu_layers"), ElementsAre("-1"));
  EXPECT_THAT(flags.at("stdio"), ElementsAre("true"));
  EXPECT_EQ(flags.size(), 4U);
  EXPECT_THAT(flags_of({"--stdio=false"}).at("stdio"), ElementsAre("false"));
}

TEST(ServeConfig, KeysAndFlagsAreUniqueAndDefaultsAllowed) {
  std::set<std::string_view> keys;
  std::set<std::string_view> flags;
  for (const Setting& setting : serve_settings()) {
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    EXPECT_TRUE(flags.insert(setting.flag).second) << setting.flag;
    // Storing one setting's default must not change another's.
    const auto shown = setting.show(ServeConfig{});
    if (shown.empty()) continue;
    ServeConfig config;
    EXPECT_TRUE(setting.store(config, shown)) << setting.key;
    for (const Setting& other : serve_settings()) {
      EXPECT_EQ(other.show(config), other.show(ServeConfig{})) << other.key;
    }
  }
}

TEST(ConfigFile, HasALimit) {
  const std::string comment = "#" + std::string(std::size_t{1} << 20U, 'x');
  const auto refused = parse_toml_as_json(comment, "big.toml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "big.toml: is larger than 1048576 bytes");
  EXPECT_TRUE(parse_toml_as_json(comment.substr(0, comment.size() - 1), "small.toml"));
}

TEST(ServeConfig, LegacyPortsAreForWhoNeedsNoKey) {
  const auto with = [](SettingValues more) {
    more.insert({"legacy_ports", {"true"}});
    return sources(std::move(more), {}, "");
  };
  const auto loaded = load_serve_config(with({{"legacy_listen", {"[::1]:9000"}}}));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->config.legacy_ports);
  EXPECT_EQ(to_text(loaded->config.legacy_listen), "[::1]:9000");
  EXPECT_TRUE(loaded->config.tcp) << "HTTP is served too";
  EXPECT_THAT(error_of(with({{"access.api_keys", {"a=0123456789abcdef"}}})),
              HasSubstr("--legacy-ports: its clients have no way to give a key"));
  EXPECT_THAT(error_of(with({{"legacy_listen", {"9000"}}})), HasSubstr("give HOST:PORT"));
  const SettingValues tls = {{"tls_certificate", {"/c"}}, {"tls_key", {"/k"}}};
  EXPECT_TRUE(load_serve_config(with(tls)));
  SettingValues reachable = tls;
  reachable.insert({"legacy_listen", {"0.0.0.0:9000"}});
  EXPECT_THAT(error_of(with(reachable)), HasSubstr("0.0.0.0:9000 would not be encrypted"));
}

}  // namespace
}  // namespace sluice
