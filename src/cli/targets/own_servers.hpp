#pragma once

#include <string>
#include <vector>

#include "cli/targets/server_config.hpp"
#include "core/error.hpp"

namespace sluice {

// Our own file of servers, with `mcpServers` as Claude Code has it. Members that are not ours, and
// the order of all, are kept. A file that cannot be parsed, or that others can change, is never
// replaced. Writing takes a lock, so that two programs that write at once lose nothing; the file is
// replaced as a whole and only its owner can read it (mode 0600). A symbolic link is kept: what it
// leads to is replaced.

/// Adds a server to the file at `path`, which is made with its folder if it is not there. Errors
/// carry kExitUsage if there is a server of that name or the file is not as it must be, and
/// kExitFailure if it cannot be written; they name the file.
Result<void> add_own_server(const std::string& path, const std::string& name,
                            const ConfiguredPlace& place);

/// Removes a server. Error besides those above: kExitUsage if there is no such server; the message
/// suggests a name that is like it.
Result<void> remove_own_server(const std::string& path, const std::string& name);

/// The most bytes that our own file may have.
inline constexpr std::size_t kMaxOwnFile = std::size_t{1} << 20U;

}  // namespace sluice
