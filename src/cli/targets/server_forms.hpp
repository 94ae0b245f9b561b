#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/targets/server_config.hpp"
#include "core/error.hpp"

namespace sluice {

/// What a file says of servers.
struct ParsedServers {
  std::vector<ServerConfig> servers;  // at most kMaxServers, each name once in a scope
  /// Servers that are switched on or off by name, which may be those of another file of the same
  /// application. Later ones count.
  std::vector<std::pair<std::string, bool>> switches;
  /// If present, servers of the application whose names are not in it are off.
  std::optional<std::vector<std::string>> allowed;
  std::vector<ConfigWarning>
      warnings;  // at most kMaxConfigWarnings; the last says if there are more
};

inline constexpr std::size_t kMaxServers = 1000;  // of a file
inline constexpr std::size_t kMaxConfigWarnings = 100;
inline constexpr std::size_t kMaxListed = 1000;            // arguments, variables, headers
inline constexpr std::size_t kMaxConfigText = 64U << 10U;  // bytes of one string
inline constexpr std::size_t kMaxServerName = 256;         // bytes

/// Parses the text of `file` in the form of its application:
///
/// - Sluice, Claude Desktop, Cursor: JSON with `mcpServers`. Cursor allows comments.
/// - Claude Code: the same; in ~/.claude.json (scope user) also `projects.FOLDER`, whose servers
///   have the scope local, for `file.directory` or a folder above it up to `file.workspace`.
/// - VS Code: JSON with comments, `servers` and `inputs`.
/// - Gemini CLI: JSON with comments; `mcpServers` with `httpUrl`, and `mcp.allowed`,
/// `mcp.excluded`.
/// - Codex: TOML with `mcp_servers`.
/// - OpenCode: JSON with comments; `mcp`, or `mcp.servers` of its second version.
///
/// A file without servers is no error. A server that is not understood is left out, with a warning
/// that names it and the key. Does not expand variables and touches no other file. Errors carry
/// kExitUsage and name the file and the line.
Result<ParsedServers> parse_servers(std::string_view text, const ServersFile& file);

}  // namespace sluice
