#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/trusted_proxies.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log/log.hpp"
#include "net/loop/host_port.hpp"
#include "sluice/model.hpp"

namespace sluice {

class Subcommand;

enum class EngineKind : std::uint8_t { llama, synthetic };

/// A client that may call, and its secret. `key` is never logged or printed.
struct ApiKey {
  std::string name;
  std::string key;
};

/// All settings of `sluice serve`. The members' defaults are the program's defaults. The table in
/// serve_settings.cpp describes each setting for the user; the flags, environment variables, file
/// keys and help texts are generated from it.
struct ServeConfig {
  bool tcp = true;  // not a setting: load_serve_config() derives it from the settings
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;     // 0: any free port
  std::vector<HostPort> listen;  // if not empty, replaces host and port, which are then its first
  bool stdio = false;            // serve standard input and output
  std::string unix_path;         // serve a Unix domain socket
  std::uint32_t unix_mode = 0600;
  bool legacy_ports = false;  // take lines over TCP too, at legacy_listen
  HostPort legacy_listen{.host = "127.0.0.1", .port = 8081};
  std::uint32_t threads = 0;    // event loops; 0: one per core, or 1 for an NPU
  std::string tls_certificate;  // PEM files; set both or neither
  std::string tls_key;
  Duration shutdown_deadline = std::chrono::seconds(10);
  std::size_t compression_threshold = std::size_t{4} << 10U;  // least bytes of a reply; 0: never

  struct Engine {
    EngineKind kind = EngineKind::llama;
    std::string model;                           // GGUF or RKLLM file, or the URL of an API
    ModelApi model_api = ModelApi::chat;         // of a URL
    std::string model_key = "SLUICE_MODEL_KEY";  // the variable that has the key for a URL
    std::string model_option = "--model";        // not a setting: what errors call the model
    std::uint32_t slots = 0;                     // answers at a time; 0: 4, or 1 on an NPU
    std::uint32_t context = 0;       // tokens per sequence; 0: what the model was trained for
    std::uint32_t threads = 0;       // for the model; 0: one per core
    std::string backend = "auto";    // "auto", "cpu", or a device's name as the engine reports it
    std::int32_t gpu_layers = -1;    // -1: as many as fit
    std::uint32_t queue = 256;       // requests that may wait for a slot
    bool share_prefixes = false;     // reuse cached prompt prefixes between clients
    std::string chat_template;       // a file; empty: the model's
    std::string rkllm_library;       // the NPU's runtime; empty: it is looked for
    std::string rkllm_abi = "auto";  // its ABI, or that of its version
    bool cross_attention = false;    // of a model on an NPU
    std::string model_dir;           // of files that operators name; empty: they name none
    std::string prompt_cache_dir;    // of an NPU's prompt caches; empty: there are none
    std::size_t prompt_cache_size = std::size_t{1} << 30U;  // of all of them

    /// The answers at a time of a model that is no NPU's.
    [[nodiscard]] std::uint32_t sequences() const {
      constexpr std::uint32_t kUsual = 4;
      return slots == 0 ? kUsual : slots;
    }
  } engine;

  /// Limits of streams.
  struct Streams {
    std::size_t max_chunks = 16384;                         // kept, of one stream
    std::size_t max_bytes = std::size_t{1} << 20U;          // kept, of one stream
    std::size_t max_total_bytes = std::size_t{256} << 20U;  // kept, of all streams together
    std::size_t retained_bytes = std::size_t{64} << 10U;    // kept of text that all have read
    std::uint32_t per_client = 64;
    Duration expiry = std::chrono::minutes(5);
    Duration tombstone = std::chrono::minutes(5);
    Duration stall_limit = std::chrono::seconds(30);
  } streams;

  /// Limits of tool calls and other requests that are answered later.
  struct Calls {
    std::uint32_t per_client = 256;
  } calls;

  /// Limits of sessions, which MCP revisions before 2026-07-28 have.
  struct Sessions {
    std::uint32_t max = 100'000;  // 0: no sessions
    std::uint32_t per_client = 10'000;
    Duration expiry = std::chrono::minutes(30);
    Duration resume_window = std::chrono::minutes(1);
  } sessions;

  /// Limits of calls that continue as tasks.
  struct Tasks {
    std::uint32_t max = 10'000;
    std::uint32_t per_client = 100;
    Duration ttl = std::chrono::hours(1);
    Duration max_ttl = std::chrono::hours(24);
    Duration poll_interval = std::chrono::seconds(1);
    std::size_t max_result = std::size_t{4} << 20U;
    std::size_t max_total_results = std::size_t{256} << 20U;
  } tasks;

  /// Limits of connections.
  struct Http {
    std::uint32_t max_connections = 10000;
    std::uint32_t max_connections_per_client = 0;
    std::size_t max_body = std::size_t{4} << 20U;
    std::size_t max_header = std::size_t{16} << 10U;
    std::size_t max_total_buffers = std::size_t{256} << 20U;  // of all connections together
    Duration request_timeout = std::chrono::seconds(30);
    Duration keep_alive = std::chrono::seconds(75);
    Duration write_stall = std::chrono::seconds(30);
    Duration event_keep_alive = std::chrono::seconds(15);
  } http;

  struct Access {
    std::vector<ApiKey> api_keys;              // if empty, everybody may call
    std::string api_key_file;                  // NAME=KEY lines, added to api_keys by the loader
    std::vector<std::string> operators;        // names of api_keys
    std::vector<std::string> allowed_origins;  // in addition to loopback origins; "*": all
    std::vector<std::string> allowed_hosts;    // in addition to loopback names and `host`; "*": all
    std::vector<std::string> trusted_proxies;  // addresses and address prefixes
    TrustedProxies::Field forwarded_field = TrustedProxies::Field::x_forwarded_for;
  } access;

  struct Log {
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::text;
    std::string file;  // empty: standard error
  } log;
};

/// The addresses and ports that the server listens on; empty without TCP.
std::vector<HostPort> listening_places(const ServeConfig& config);

/// The values of one source, by their key in the file, such as "streams.expiry". A list has several
/// values.
using SettingValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// The sources that load_serve_config() reads. `environment` returns the value of a variable,
/// normally with std::getenv.
struct ConfigSources {
  SettingValues flags;
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::optional<std::string> file;  // --config; absent: ./sluice.toml if it exists
  bool while_serving = false;       // a pipe would make the server wait, so it is refused
};

/// The resulting configuration, and for each key where its value came from: "flag", the variable's
/// name, or "file:line". Keys that kept their default are missing from `origins`.
struct LoadedConfig {
  ServeConfig config;
  std::map<std::string, std::string, std::less<>> origins;
};

/// Combines the sources. Flags win over SLUICE_* variables, these over the file, and the file over
/// the defaults. A host or a port replaces all places to listen of the sources that it wins over,
/// except for the other half of the first one. With stdio or a Unix socket, a port is opened only
/// if a host or a port is named by the source that asks for stdio or the socket, or by one that
/// wins over it. So a file written for a network server does not open a port for a program that is
/// started over stdio. Also reads the API key file. Errors carry kExitUsage and name the flag, the
/// variable or file:line, and what is allowed there.
Result<LoadedConfig> load_serve_config(const ConfigSources& sources);

/// Adds every setting as an option of `command`. The values that the user gives are stored in
/// `flags` unchecked: the loader checks them, so that an error reads the same from every source.
/// Both must outlive the parsing.
void add_serve_options(Subcommand& command, SettingValues& flags);
/// Like add_serve_options(), but the help does not list the options.
void add_unlisted_serve_options(Subcommand& command, SettingValues& flags);
/// Like add_serve_options(), but only the settings of the model.
void add_engine_options(Subcommand& command, SettingValues& flags);
/// Like add_serve_options(), but only the settings of a server of one loop without a model.
void add_listening_options(Subcommand& command, SettingValues& flags);

/// The configuration as a sluice.toml that says where each value came from. API keys are shown as
/// "<redacted>".
std::string print_config(const LoadedConfig& loaded);

/// As print_config(), but only the settings that came from somewhere.
std::string print_settings(const LoadedConfig& loaded);

/// Whether the settings fit together. The error carries kExitUsage and names the flags.
/// load_serve_config() checks it.
Result<void> check_together(const ServeConfig& config);

/// A commented sluice.toml with every setting at its default. A test checks that docs/sluice.toml
/// is the same.
std::string example_config();

}  // namespace sluice
