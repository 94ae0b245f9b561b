#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/targets/found_servers.hpp"
#include "cli/targets/target.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

/// The place of a server on one line, as its file has it, without secrets: names of headers and
/// variables, but not their values; "***" for user and password and the values in the query of a
/// URL, and for arguments that look secret by the option that they belong to.
std::string describe_place(const ConfiguredPlace& place);

/// What a target is, as describe_place(); of a named server its name alone, because variables in
/// its place are expanded.
std::string describe_target(const Target& target);

/// `path` with "~" in place of the user's home.
std::string shown_path(std::string_view path, std::string_view home);

/// Two lines for each server: name, application and place; below them the file and what is to be
/// known, such as that the name clashes. `home` is shown as "~".
std::string text_of_servers(const FoundServers& found, std::string_view home, const Style& style);

/// {"servers":[{"name","application","scope","file","enabled","clash","command","args","env",
/// "cwd"|"url","transport","headers","refusal"?}],"warnings":[]} and a newline; `env` and `headers`
/// have names only, and secrets are as in describe_place().
std::string json_of_servers(const FoundServers& found);

}  // namespace sluice
