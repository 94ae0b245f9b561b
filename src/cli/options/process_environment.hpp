#pragma once

#include <optional>
#include <string>

#include "cli/options/serve_config.hpp"

namespace sluice {

/// The value of an environment variable; an empty one counts as not set.
std::optional<std::string> environment(const std::string& name);

/// The user's home without a slash at its end: $HOME, or what the system says of the user; empty if
/// there is none.
std::string home_folder();

/// The file of this program, to find what is installed with it or to start it again; empty if it
/// cannot be told.
std::string program_path();

/// The configuration sources of this process. `file` is the value of --config, or empty.
ConfigSources process_sources(SettingValues flags, const std::string& file);

}  // namespace sluice
