#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/outline.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

// The command line of a program with subcommands. It is built on CLI11, which only command_line.cpp
// includes because its headers take seconds to compile. Programming errors, such as two options
// with the same name, throw.

namespace sluice {

/// Runs a subcommand. Returns the program's exit code.
using Command = std::function<int()>;

/// How the help shows an option or a flag.
struct OptionHelp {
  std::string text;            // what the option does
  std::string operand = {};    // the placeholder for the value, or "a|b|c"; a flag has none
  std::string group = {};      // the heading to list it under; empty: "Options"
  bool shows_default = false;  // show the value that the target has before parsing
  bool is_listed = true;       // if not, the option is accepted, but the help does not list it
};

/// Where the value of an option is stored. A vector takes all words up to the next option.
using OptionTarget =
    std::variant<std::string*, std::vector<std::string>*, std::uint32_t*, std::int64_t*, double*,
                 std::optional<int>*, std::optional<std::int64_t>*, std::optional<double>*>;

/// Which values of a repeated option are used.
enum class Keep : std::uint8_t { all, last };

class CommandLine;

/// One subcommand of a CommandLine, which owns it. `names` looks like "--url" or "-q,--quiet"; a
/// word without dashes is a positional argument. Targets, and what callbacks refer to, must outlive
/// the parsing.
class Subcommand {
 public:
  void add_flag(const std::string& names, bool& value, const OptionHelp& help);
  /// Calls `receive` if the flag is given: with false for "--name=false", otherwise with true.
  void add_flag(const std::string& names, std::function<void(bool)> receive,
                const OptionHelp& help);

  /// A flag that may have a text: `--name=TEXT` sets the flag and `text`. The text is never a word
  /// of its own, so what follows the flag keeps its meaning.
  void add_flag(const std::string& names, bool& value, std::string& text, const OptionHelp& help);

  /// It is an error if the value does not parse as the target's type, or if a second value is given
  /// and the target is not a vector.
  void add_option(const std::string& names, OptionTarget target, const OptionHelp& help);
  /// Adds an option that may be given many times, each time with one value. `receive` is called
  /// once, with the values that `keep` selects.
  void add_repeatable(const std::string& names, Keep keep,
                      const std::function<void(const std::vector<std::string>&)>& receive,
                      const OptionHelp& help);
  /// Gives `words` all that stands after "--": a command that is no part of this one. Without this,
  /// "--" only says that no options follow.
  void add_command_words(std::vector<std::string>& words, const OptionHelp& help);

 private:
  friend class CommandLine;
  Subcommand(CommandLine& line, CLI::App& app) : line_(&line), app_(&app) {}

  CommandLine* line_;
  CLI::App* app_;
};

/// The texts of the whole program's help.
struct ProgramHelp {
  std::string name;
  std::string description;
  std::string version;     // the line that --version prints
  std::string footer;      // as in CommandOutline
  std::size_t width = 80;  // the most characters of a line of help
  /// Prints a text on standard output. Returns the program's exit code.
  std::function<int(const std::string& text)> print;
};

/// The command line of the whole program: exactly one of its subcommands, or --help or --version.
class CommandLine {
 public:
  explicit CommandLine(const ProgramHelp& help);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// `command` is run after the parsing if this subcommand was given.
  Subcommand add_subcommand(const std::string& name, const std::string& description,
                            const std::string& footer, Command command);

  /// Parses the arguments and runs the subcommand. Returns its exit code, kExitUsage after printing
  /// what is wrong on one line, or what printing the help or the version returned.
  int run(int argc, const char* const* argv);

  /// What has been added so far.
  [[nodiscard]] CommandOutline outline() const;

 private:
  friend class Subcommand;
  /// Where the words after "--" go, and how the help shows them.
  struct CommandWords {
    std::vector<std::string>* words;
    OptionOutline outline;
  };

  [[nodiscard]] const CLI::App& chosen_app() const;
  [[nodiscard]] std::string explain(const CLI::ParseError& error) const;
  [[nodiscard]] std::span<const char* const> take_command_words(
      std::span<const char* const> arguments);

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, CommandWords, std::less<>> command_words_;  // by the name of the command
  std::function<int(const std::string& text)> print_;
  Command chosen_;
};

}  // namespace sluice
