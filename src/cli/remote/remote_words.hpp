#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/targets/target.hpp"
#include "core/error.hpp"

namespace sluice {

/// What a command takes beside its target.
struct WordForm {
  std::string_view name = {};      // what the word is that must be there; empty: there is none
  bool takes_assignments = false;  // whether NAME=VALUE words may follow
  bool takes_object = false;       // whether a JSON object may follow, or - for standard input
};

/// The words of a command, by what they are.
struct RemoteWords {
  TargetArguments target = {};
  std::string name = {};                      // the tool, resource or prompt
  std::vector<std::string> assignments = {};  // NAME=VALUE or NAME:=JSON
  std::string object = {};                    // {...}, or -; empty: there is none
};

/// Whether `word` is NAME=VALUE or NAME:=JSON. NAME has letters, digits, `_`, `-`, `.` and `$`, and
/// does not begin with a hyphen: so neither a URL nor an option of a command is an assignment.
bool is_assignment(std::string_view word);

/// Sorts the `words` of a command line and those of the `command` behind "--". Without a command
/// the first word is the target. With one, what belongs to us stands either before "--", or at the
/// end of the command: the arguments there, and the word before them. Errors carry kExitUsage.
Result<RemoteWords> split_words(const std::vector<std::string>& words,
                                const std::vector<std::string>& command, const WordForm& form);

}  // namespace sluice
