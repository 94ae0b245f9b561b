#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// What a server is called by events, and in front of a tool's name that another server has too.
/// `word` names it on the command line. The path and query of a URL may be secret. Those that are
/// `taken` get a number.
std::string server_label(std::string_view word, const std::vector<std::string>& taken);

}  // namespace sluice
