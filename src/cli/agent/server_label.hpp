#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/targets/target.hpp"

namespace sluice {

/// What a server is called by events, and in front of a tool's name that another server has too.
/// `word` names it on the command line. The path and query of a URL may be secret. Those that are
/// `taken` get a number.
std::string server_label(std::string_view word, const std::vector<std::string>& taken);

/// What kept runs know a server by (AgentServer::identity): the hash of its URL without its query,
/// of its command line, or of its name in a configuration. All of them may be secret.
std::string server_identity(const TargetArguments& target);

}  // namespace sluice
