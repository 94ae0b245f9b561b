#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/outline.hpp"

namespace sluice {

/// The help of the program, or of one of its commands, in lines of at most `width` characters. An
/// example without a good place to break may be longer.
std::string help_text(const CommandOutline& program, const CommandOutline& command,
                      std::size_t width);

/// "sluice serve [OPTIONS]".
std::string usage(const CommandOutline& program, const CommandOutline& command);

/// A part of a footer: a paragraph, or an example.
struct FooterPart {
  enum class Kind : unsigned char { paragraph, example };
  Kind kind;
  std::string text;     // the paragraph on one line, or the command
  std::string comment;  // of an example
};
std::vector<FooterPart> footer_parts(std::string_view footer);

/// The groups of listed options, in the order in which they appear.
std::vector<std::string> groups_of(const CommandOutline& command);

}  // namespace sluice
