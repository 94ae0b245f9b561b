#pragma once

#include <string>

#include "cli/options/outline.hpp"

namespace sluice {

// Scripts that complete the commands and options of `program` in a shell. What a server has, they
// ask the program itself for: `sluice __complete WORD...` (word_offers.hpp).

std::string bash_completion(const CommandOutline& program);
std::string zsh_completion(const CommandOutline& program);
std::string fish_completion(const CommandOutline& program);

}  // namespace sluice
