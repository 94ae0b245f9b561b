#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.hpp"

namespace sluice {

/// Whose configuration names a server. `sluice` is our own file.
enum class Application : std::uint8_t {
  sluice,
  claude_code,
  claude_desktop,
  cursor,
  vscode,
  gemini,
  codex,
  opencode,
};

struct ApplicationName {
  Application application;
  std::string_view id;     // as in "cursor/NAME"
  std::string_view title;  // for people
};
inline constexpr std::array<ApplicationName, 8> kApplications = {
    {{Application::sluice, "sluice", "Sluice"},
     {Application::claude_code, "claude-code", "Claude Code"},
     {Application::claude_desktop, "claude-desktop", "Claude Desktop"},
     {Application::cursor, "cursor", "Cursor"},
     {Application::vscode, "vscode", "VS Code"},
     {Application::gemini, "gemini", "Gemini CLI"},
     {Application::codex, "codex", "Codex"},
     {Application::opencode, "opencode", "OpenCode"}}};

const ApplicationName& name_of(Application application);

/// For whom a file is. Within an application, a later one wins.
enum class ConfigScope : std::uint8_t {
  system,   // defaults for all users of the machine
  user,     // all projects of a user
  project,  // whoever works on the project: a repository may bring the file
  local,    // a user, in this project
  managed,  // the administrator's last word
};
std::string_view to_string(ConfigScope scope);

/// What a configuration says of the transport; `any`: it does not say.
enum class TransportHint : std::uint8_t { any, http, sse, ws };
std::string_view to_string(TransportHint hint);

using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// A server that is started as a child process.
struct ConfiguredCommand {
  std::string program = {};
  std::vector<std::string> arguments = {};
  NamedValues environment = {};  // besides that of this process
  std::string environment_file = {};
  std::string directory = {};  // where it runs; empty: the project of a project's file, else here

  bool operator==(const ConfiguredCommand&) const = default;
};

/// A header whose value is in an environment variable.
struct HeaderFromVariable {
  std::string header = {};
  std::string variable = {};
  std::string prefix = {};   // before the value, such as "Bearer "
  bool is_required = false;  // else there is no header if the variable is not set

  bool operator==(const HeaderFromVariable&) const = default;
};

/// A server that is reached at a URL.
struct ConfiguredUrl {
  std::string url = {};
  TransportHint transport = TransportHint::any;
  NamedValues headers = {};
  std::vector<HeaderFromVariable> variable_headers = {};

  bool operator==(const ConfiguredUrl&) const = default;
};

using ConfiguredPlace = std::variant<ConfiguredCommand, ConfiguredUrl>;

/// A file that may name servers.
struct ServersFile {
  Application application = Application::sluice;
  ConfigScope scope = ConfigScope::user;
  std::string path;
  /// The folder of a project's file, else the root of the project that the user is in.
  std::string workspace;
  std::string directory;  // the user's working directory
};

/// `${input:ID}` of VS Code: what the user would be asked.
struct ConfigInput {
  std::string id = {};
  std::string description = {};

  bool operator==(const ConfigInput&) const = default;
};

/// A server that a configuration file names, as the file has it: variables are not expanded
/// (variables.hpp).
struct ServerConfig {
  std::string name;
  ServersFile source;
  bool enabled = true;
  ConfiguredPlace place;
  std::optional<Duration> startup_timeout = {};
  std::optional<Duration> request_timeout = {};
  std::vector<ConfigInput> inputs = {};  // those of its file
  std::string refusal = {};              // why it must not be used; empty if it may be
};

/// What was not understood of a file.
struct ConfigWarning {
  std::string file;
  std::string server;  // empty: it is not about one server
  std::string key;     // empty: it is not about one key
  std::string message;

  /// "FILE: server NAME: KEY: MESSAGE", without what is empty.
  [[nodiscard]] std::string describe() const;
};

}  // namespace sluice
