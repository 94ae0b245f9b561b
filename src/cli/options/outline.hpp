#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The command line as data, read from CLI11. Help, suggestions, completion and manual pages are
// made from it, so they cannot differ from what is parsed.

/// An option, a flag or a positional argument.
struct OptionOutline {
  std::vector<std::string> names;  // "-q", "--quiet"; of an argument: its operand
  std::string operand = {};        // the placeholder for its value, or "a|b|c"; a flag has none
  std::string text;                // what it does, without a full stop
  std::string group = {};          // the heading to list it under; empty: it is not listed
  bool is_argument = false;        // given by its position
  bool takes_many = false;         // an argument that takes all words

  /// The values it can have, if its operand names them.
  [[nodiscard]] std::vector<std::string> values() const;
};

struct CommandOutline {
  std::string name;         // "sluice", or "serve"
  std::string description;  // one line, without a full stop
  /// Lines that begin with two spaces are examples, perhaps with a "# comment"; the others are
  /// paragraphs, separated by empty lines.
  std::string footer;
  std::vector<OptionOutline> options;
  std::vector<CommandOutline> commands;  // of the program; a command has none

  /// The command of that name, or nullptr.
  [[nodiscard]] const CommandOutline* find(std::string_view command) const;
};

}  // namespace sluice
