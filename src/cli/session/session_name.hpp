#pragma once

#include <string>

#include "cli/targets/target.hpp"

namespace sluice {

/// The name of a session with `target` for which the user gives none: that of the server in its
/// configuration file, or else
///
/// - of a URL its host,
/// - of a socket its file,
/// - of a command its program; of one that only runs another, such as npx or python3, its first
///   argument that is no option.
///
/// Of paths it is the last part, without an extension. Characters that a name cannot have become
/// hyphens. Empty if nothing is left.
std::string session_name_of(const Target& target);

}  // namespace sluice
