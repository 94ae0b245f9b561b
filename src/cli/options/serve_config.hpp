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
#include "core/log.hpp"

namespace sluice {

class Subcommand;

enum class EngineKind : std::uint8_t { llama, synthetic };

/// Who may call, and the secret that proves it. `key` is never logged or printed.
struct ApiKey {
  std::string name;
  std::string key;
};

/// Everything that `sluice serve` can be told. The members' defaults are the program's defaults;
/// what each one means to the user is said once, in the table in serve_config.cpp, from which the
/// flags, the environment variables, the file's keys and the help are made.
struct ServeConfig {
  bool tcp = true;  // not a setting: worked out from those below (load_serve_config)
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  bool stdio = false;         // serve standard input and output
  std::string unix_path;      // serve a Unix domain socket
  std::uint32_t unix_mode = 0600;
  std::uint32_t threads = 0;    // event loops; 0: one per core
  std::string tls_certificate;  // PEM files, both or neither
  std::string tls_key;
  Duration shutdown_deadline = std::chrono::seconds(10);
  std::size_t compression_threshold = std::size_t{4} << 10U;  // bytes of a reply; 0: never

  struct Engine {
    EngineKind kind = EngineKind::llama;
    std::string model;             // GGUF file
    std::uint32_t slots = 4;       // sequences decoded together
    std::uint32_t context = 0;     // tokens of one sequence; 0: what the model was trained for
    std::uint32_t threads = 0;     // of the model; 0: one per core
    std::string backend = "auto";  // "auto", "cpu", or a device's name as the engine reports it
    std::int32_t gpu_layers = -1;  // -1: all that fit
    std::uint32_t queue = 256;     // requests waiting for a slot
    bool share_prefixes = false;   // what one client's prompt left may serve another's
  } engine;

  /// Of streams.
  struct Streams {
    std::size_t max_chunks = 16384;                         // kept, of one stream
    std::size_t max_bytes = std::size_t{1} << 20U;          // kept, of one stream
    std::size_t max_total_bytes = std::size_t{256} << 20U;  // kept, of all streams
    std::size_t retained_bytes = std::size_t{64} << 10U;    // passed by all readers, of one stream
    std::uint32_t per_client = 64;
    Duration expiry = std::chrono::minutes(5);
    Duration tombstone = std::chrono::minutes(5);
    Duration stall_limit = std::chrono::seconds(30);
  } streams;

  /// Of requests that are answered later.
  struct Calls {
    std::uint32_t per_client = 256;
  } calls;

  /// Of clients of the session eras.
  struct Sessions {
    std::uint32_t max = 100'000;  // 0: none
    std::uint32_t per_client = 10'000;
    Duration expiry = std::chrono::minutes(30);
    Duration resume_window = std::chrono::minutes(1);
  } sessions;

  /// Of calls that go on as tasks.
  struct Tasks {
    std::uint32_t max = 10'000;
    std::uint32_t per_client = 100;
    Duration ttl = std::chrono::hours(1);
    Duration max_ttl = std::chrono::hours(24);
    Duration poll_interval = std::chrono::seconds(1);
    std::size_t max_result = std::size_t{4} << 20U;
    std::size_t max_total_results = std::size_t{256} << 20U;
  } tasks;

  /// Of connections.
  struct Http {
    std::uint32_t max_connections = 10000;
    std::uint32_t max_connections_per_client = 0;
    std::size_t max_body = std::size_t{4} << 20U;
    std::size_t max_header = std::size_t{16} << 10U;
    std::size_t max_total_buffers = std::size_t{256} << 20U;  // of all connections
    Duration request_timeout = std::chrono::seconds(30);
    Duration keep_alive = std::chrono::seconds(75);
    Duration write_stall = std::chrono::seconds(30);
    Duration event_keep_alive = std::chrono::seconds(15);
  } http;

  struct Access {
    std::vector<ApiKey> api_keys;              // none: everybody may call
    std::string api_key_file;                  // NAME=KEY lines, added to api_keys by the loader
    std::vector<std::string> allowed_origins;  // beyond loopback ones; "*": all
    std::vector<std::string> allowed_hosts;    // beyond loopback names and `host`; "*": all
    std::vector<std::string> trusted_proxies;  // addresses and prefixes
    TrustedProxies::Field forwarded_field = TrustedProxies::Field::x_forwarded_for;
  } access;

  struct Log {
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::text;
  } log;
};

/// The values of one source, by the file's key ("streams.expiry"); lists have several values.
using SettingValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Where load_serve_config looks. `environment` looks a variable up (normally std::getenv).
struct ConfigSources {
  SettingValues flags;
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::optional<std::string> file;  // --config; absent: ./sluice.toml if there is one
};

/// What came out, and from where: "flag", the variable's name, or "file:line"; keys that kept
/// their default are missing.
struct LoadedConfig {
  ServeConfig config;
  std::map<std::string, std::string, std::less<>> origins;
};

/// Puts the sources together: flags before SLUICE_* variables before the file before the defaults.
/// With stdio or a Unix socket a port is opened only if the source that asks for those, or one that
/// wins over it, names a host or a port: a file made for a server in the network does not open a
/// port for a program that is started over stdio. Reads the API key file. Errors (code kExitUsage)
/// name the flag, the variable or file:line, and what is allowed there.
Result<LoadedConfig> load_serve_config(const ConfigSources& sources);

/// Adds every setting as an option of `command`; what the user gives lands in `flags`, unchecked
/// (the loader checks it, so that an error reads the same from every source). Both outlive the
/// parsing.
void add_serve_options(Subcommand& command, SettingValues& flags);
/// The same for the settings of the model only.
void add_engine_options(Subcommand& command, SettingValues& flags);

/// The configuration as a sluice.toml, each value with where it came from, keys as "<redacted>".
std::string print_config(const LoadedConfig& loaded);

/// A commented sluice.toml with every setting at its default: docs/sluice.toml, kept the same by a
/// test.
std::string example_config();

}  // namespace sluice
