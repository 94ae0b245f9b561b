#include "cli/targets/config_places.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

/// What the path of a place begins with.
enum class Base : std::uint8_t {
  root,         // nothing
  home,         // the user's home
  config_home,  // $XDG_CONFIG_HOME, or .config in the home
  support,      // Library/Application Support in the home
  variable,     // the value of an environment variable, or a folder in the home
  project,      // each folder of the project
};

enum class On : std::uint8_t { both, xdg, macos };

struct Place {
  Application application;
  ConfigScope scope;
  On platform;
  Base base;
  std::string_view path;            // after the base; empty: the variable names the file itself
  std::string_view variable = {};   // of Base::variable
  std::string_view otherwise = {};  // the folder in the home without it; "-": no place then
};

// Within an application and a scope, a later row is more important. docs/cli.md has this table.
constexpr auto kPlaces = std::to_array<Place>({
    {Application::sluice, ConfigScope::user, On::both, Base::config_home, "sluice/servers.json"},

    {Application::claude_code, ConfigScope::user, On::both, Base::variable, ".claude.json",
     "CLAUDE_CONFIG_DIR", ""},
    {Application::claude_code, ConfigScope::project, On::both, Base::project, ".mcp.json"},
    {Application::claude_code, ConfigScope::managed, On::xdg, Base::root,
     "/etc/claude-code/managed-mcp.json"},
    {Application::claude_code, ConfigScope::managed, On::macos, Base::root,
     "/Library/Application Support/ClaudeCode/managed-mcp.json"},

    {Application::claude_desktop, ConfigScope::user, On::xdg, Base::config_home,
     "Claude/claude_desktop_config.json"},
    {Application::claude_desktop, ConfigScope::user, On::macos, Base::support,
     "Claude/claude_desktop_config.json"},

    {Application::cursor, ConfigScope::user, On::both, Base::home, ".cursor/mcp.json"},
    {Application::cursor, ConfigScope::project, On::both, Base::project, ".cursor/mcp.json"},

    {Application::vscode, ConfigScope::user, On::xdg, Base::config_home, "VSCodium/User/mcp.json"},
    {Application::vscode, ConfigScope::user, On::xdg, Base::config_home,
     "Code - Insiders/User/mcp.json"},
    {Application::vscode, ConfigScope::user, On::xdg, Base::config_home, "Code/User/mcp.json"},
    {Application::vscode, ConfigScope::user, On::macos, Base::support, "VSCodium/User/mcp.json"},
    {Application::vscode, ConfigScope::user, On::macos, Base::support,
     "Code - Insiders/User/mcp.json"},
    {Application::vscode, ConfigScope::user, On::macos, Base::support, "Code/User/mcp.json"},
    {Application::vscode, ConfigScope::project, On::both, Base::project, ".vscode/mcp.json"},

    {Application::gemini, ConfigScope::system, On::xdg, Base::root,
     "/etc/gemini-cli/system-defaults.json"},
    {Application::gemini, ConfigScope::system, On::macos, Base::root,
     "/Library/Application Support/GeminiCli/system-defaults.json"},
    {Application::gemini, ConfigScope::user, On::both, Base::home, ".gemini/settings.json"},
    {Application::gemini, ConfigScope::project, On::both, Base::project, ".gemini/settings.json"},
    {Application::gemini, ConfigScope::managed, On::xdg, Base::root,
     "/etc/gemini-cli/settings.json"},
    {Application::gemini, ConfigScope::managed, On::macos, Base::root,
     "/Library/Application Support/GeminiCli/settings.json"},

    {Application::codex, ConfigScope::system, On::both, Base::root, "/etc/codex/config.toml"},
    {Application::codex, ConfigScope::user, On::both, Base::variable, "config.toml", "CODEX_HOME",
     ".codex"},
    {Application::codex, ConfigScope::project, On::both, Base::project, ".codex/config.toml"},

    {Application::opencode, ConfigScope::user, On::both, Base::config_home, "opencode/config.json"},
    {Application::opencode, ConfigScope::user, On::both, Base::config_home,
     "opencode/opencode.json"},
    {Application::opencode, ConfigScope::user, On::both, Base::config_home,
     "opencode/opencode.jsonc"},
    {Application::opencode, ConfigScope::user, On::both, Base::variable, "", "OPENCODE_CONFIG",
     "-"},
    {Application::opencode, ConfigScope::project, On::both, Base::project, "opencode.json"},
    {Application::opencode, ConfigScope::project, On::both, Base::project, "opencode.jsonc"},
    {Application::opencode, ConfigScope::project, On::both, Base::project,
     ".opencode/opencode.json"},
    {Application::opencode, ConfigScope::project, On::both, Base::project,
     ".opencode/opencode.jsonc"},
});

/// The folder that contains `path`; empty above the root.
std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || path == "/") return {};
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string joined_path(std::string folder, std::string_view path) {
  if (path.empty()) return folder;
  if (!folder.ends_with('/')) folder.push_back('/');
  return folder.append(path);
}

/// The folders from the project's root down to the working directory.
std::vector<std::string> project_folders(const PlaceSources& sources, const std::string& root) {
  std::vector<std::string> folders;
  for (std::string folder = sources.directory; !folder.empty(); folder = parent_of(folder)) {
    folders.push_back(folder);
    if (folder == root) break;
  }
  std::ranges::reverse(folders);
  return folders;
}

std::string config_home(const PlaceSources& sources) {
  // A relative path is to be ignored (XDG Base Directory Specification).
  if (auto given = sources.environment("XDG_CONFIG_HOME"); given && given->starts_with('/')) {
    return *std::move(given);
  }
  return sources.home.empty() ? std::string() : joined_path(sources.home, ".config");
}

/// The folder of the base; empty if there is none.
std::string folder_of_base(const Place& place, const PlaceSources& sources) {
  switch (place.base) {
    case Base::config_home:
      return config_home(sources);
    case Base::support:
      return sources.home.empty() ? "" : joined_path(sources.home, "Library/Application Support");
    case Base::variable:
      if (auto given = sources.environment(std::string(place.variable))) {
        return given->starts_with('/') ? *given : joined_path(sources.directory, *given);
      }
      if (place.otherwise == "-" || sources.home.empty()) return {};
      return joined_path(sources.home, place.otherwise);
    case Base::home:
      return sources.home;
    case Base::root:
    case Base::project:
      break;
  }
  return {};
}

}  // namespace

Platform this_platform() {
#ifdef __APPLE__
  return Platform::macos;
#else
  return Platform::xdg;
#endif
}

std::string project_root(const PlaceSources& sources) {
  std::string folder = sources.directory;
  for (int looked = 0; looked < kMaxFolders && !folder.empty(); ++looked) {
    if (sources.exists(joined_path(folder, ".git"))) return folder;
    folder = parent_of(folder);
  }
  return sources.directory;
}

std::vector<ServersFile> config_places(const PlaceSources& sources) {
  const On other = sources.platform == Platform::xdg ? On::macos : On::xdg;
  const std::string root = project_root(sources);
  const std::vector<std::string> folders = project_folders(sources, root);
  std::vector<ServersFile> out;
  std::set<std::string> seen;
  const auto add = [&](const Place& place, std::string path, const std::string& workspace) {
    if (!seen.insert(path).second) return;
    out.push_back({.application = place.application,
                   .scope = place.scope,
                   .path = std::move(path),
                   .workspace = workspace,
                   .directory = sources.directory});
  };
  const auto add_rows = [&](Application application, ConfigScope scope, std::string_view folder) {
    for (const Place& place : kPlaces) {
      if (place.application != application || place.scope != scope || place.platform == other) {
        continue;
      }
      if (scope == ConfigScope::project) {
        add(place, joined_path(std::string(folder), place.path), std::string(folder));
      } else if (place.base == Base::root) {
        add(place, std::string(place.path), root);
      } else if (auto base = folder_of_base(place, sources); !base.empty()) {
        add(place, joined_path(std::move(base), place.path), root);
      }
    }
  };
  for (const ApplicationName& one : kApplications) {
    add_rows(one.application, ConfigScope::system, {});
    add_rows(one.application, ConfigScope::user, {});
    for (const std::string& folder : folders) {
      add_rows(one.application, ConfigScope::project, folder);
    }
    add_rows(one.application, ConfigScope::managed, {});
  }
  return out;
}

std::string own_servers_path(const PlaceSources& sources) {
  const std::string folder = config_home(sources);
  return folder.empty() ? folder : joined_path(folder, "sluice/servers.json");
}

}  // namespace sluice
