#include "cli/options/outline.hpp"

#include <algorithm>

namespace sluice {

std::vector<std::string> OptionOutline::values() const {
  std::vector<std::string> all;
  if (!operand.contains('|')) return all;
  for (std::size_t begin = 0;;) {
    const auto end = operand.find('|', begin);
    all.push_back(operand.substr(begin, end - begin));
    if (end == std::string::npos) return all;
    begin = end + 1;
  }
}

const CommandOutline* CommandOutline::find(std::string_view command) const {
  const auto found = std::ranges::find(commands, command, &CommandOutline::name);
  return found == commands.end() ? nullptr : &*found;
}

}  // namespace sluice
