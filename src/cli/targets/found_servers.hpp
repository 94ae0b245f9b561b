#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/targets/config_places.hpp"
#include "cli/targets/config_reader.hpp"
#include "cli/targets/server_config.hpp"
#include "core/error.hpp"

namespace sluice {

/// The servers of all configuration files, application by application and then from the most to
/// the least important.
struct FoundServers {
  std::vector<ServerConfig> servers;
  std::vector<ConfigWarning> warnings;  // a file that cannot be read or parsed is one of them

  /// The servers of that name, in the order above.
  [[nodiscard]] std::vector<const ServerConfig*> named(std::string_view name) const;
  /// All names, each once, in alphabetical order.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// What a name stands for.
struct NamedServer {
  const ServerConfig* server = nullptr;  // null: the name is not known, or clashes
  /// If it clashes: one of each application, or those of a project and of another file of one.
  std::vector<const ServerConfig*> candidates;
};

/// Whether both start the same program or connect to the same place in the same way.
bool is_same_place(const ServerConfig& one, const ServerConfig& other);

/// The server that `name` stands for, switched off or not. `APPLICATION/NAME` is the most important
/// one of the application, whatever names with a slash others have. A name alone is that of our own
/// file if it is there, or of the only application that has it. Otherwise it clashes unless all
/// servers of that name are the same. In both forms it clashes if a project's file has another
/// server than the user's or the machine's that it would replace. So a file of somebody else's
/// repository does not change what a name means.
NamedServer find_server(const FoundServers& found, std::string_view name);

/// Whether the name alone does not tell which server is meant.
bool clashes(const FoundServers& found, std::string_view name);

using ReadConfigFile = std::function<Result<std::optional<ReadConfig>>(const std::string& path)>;

/// Reads and parses the files of `places` in that order (config_places()). A server of a file that
/// is not trusted is refused if it would start a program or tell what is in the environment or in
/// files.
FoundServers find_servers(const std::vector<ServersFile>& places, const ReadConfigFile& read);

}  // namespace sluice
