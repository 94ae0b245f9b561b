#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/targets/server_config.hpp"
#include "core/error.hpp"

namespace sluice {

/// What variables stand for.
struct VariableSources {
  /// The value of an environment variable; an empty value is one. Nothing if it is not set.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  /// The content of a file of at most kMaxExpanded bytes. Errors name the file and the reason.
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::string home;       // of the user, without a slash at its end
  std::string directory;  // the working directory, absolute
};

struct ExpandedServer {
  ServerConfig server;                // without variables, environment_file and variable_headers
  std::vector<std::string> warnings;  // such as which variable is not set; without values
};

inline constexpr std::size_t kMaxExpanded = std::size_t{1} << 20U;  // bytes of a server's texts

/// Puts values in place of the variables, by the rules of the server's application:
///
/// - Sluice, Claude Code: `${VAR}`, `${VAR:-default}`; a variable that is not set and has no
/// default
///   is an error.
/// - Claude Desktop: none.
/// - Cursor: `${env:VAR}` (an error if it is not set), `${userHome}`, `${workspaceFolder}`,
///   `${workspaceFolderBasename}`, `${pathSeparator}`, `${/}`.
/// - VS Code: the same and `${cwd}`; `${env:VAR}` is empty if it is not set. `${input:ID}` is an
///   error that names the input, because nobody is asked.
/// - Gemini CLI: `$VAR`, `${VAR}`, `${VAR:-default}`; what is not set stays as it is written.
/// - Codex: none in texts; headers from variables, of which the bearer token must be set.
/// - OpenCode: `{env:VAR}`, empty if it is not set, and `{file:PATH}`, the trimmed content of a
/// file;
///   relative paths start at the folder of the configuration.
///
/// What a value contains is not expanded again. Names of variables and headers are not expanded.
/// Reads the environment file; what `environment` has goes before it. Makes `directory` absolute.
/// Errors carry kExitUsage and name file, server and key; no error and no warning has a value.
Result<ExpandedServer> expand_variables(const ServerConfig& server, const VariableSources& sources);

/// Whether expand_variables() would read the environment or a file, or put a folder in the place of
/// a variable, such as that of the user.
bool has_variables(const ServerConfig& server);

}  // namespace sluice
