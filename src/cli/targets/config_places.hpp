#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/targets/server_config.hpp"

namespace sluice {

enum class Platform : std::uint8_t {
  xdg,  // Linux, with the folders of the XDG Base Directory Specification
  macos,
};
/// The platform of this program.
Platform this_platform();

/// Where to look for files.
struct PlaceSources {
  Platform platform = this_platform();
  std::string home;       // absolute; empty: the user has none
  std::string directory;  // the working directory, absolute
  /// The value of an environment variable that is set and not empty.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  /// Whether there is a file or a folder.
  std::function<bool(const std::string& path)> exists;
};

/// The folder that the user's project begins at: the nearest one from `directory` upward that has
/// `.git`, else `directory` itself. Looks at most kMaxFolders folders far.
std::string project_root(const PlaceSources& sources);
inline constexpr int kMaxFolders = 64;

/// All places where a file may be, whether it is there or not: application by application, and
/// within one from the least to the most important. Projects' files are looked for in the folders
/// from the project's root down to `directory`. No path is there twice.
std::vector<ServersFile> config_places(const PlaceSources& sources);

/// Our own file: $XDG_CONFIG_HOME/sluice/servers.json; empty if there is no home.
std::string own_servers_path(const PlaceSources& sources);

}  // namespace sluice
