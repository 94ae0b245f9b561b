#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

// The command line of a program with subcommands. CLI11 does the work, in command_line.cpp alone:
// its headers take seconds to compile. Programming errors, such as a name given to two options,
// throw.

namespace sluice {

/// Does what a subcommand is for. Returns the program's exit code.
using Command = std::function<int()>;

/// How the help shows an option or a flag.
struct OptionHelp {
  std::string text;            // what it does
  std::string operand = {};    // stands for the value; a flag has none
  std::string group = {};      // the heading it is under; empty: "Options"
  bool shows_default = false;  // the target's value before parsing
};

/// Where the value of an option goes. A vector takes all words up to the next option.
using OptionTarget =
    std::variant<std::string*, std::vector<std::string>*, std::uint32_t*, std::int64_t*, double*,
                 std::optional<int>*, std::optional<std::int64_t>*, std::optional<double>*>;

/// Which values of an option that may be repeated count.
enum class Keep : std::uint8_t { all, last };

/// One subcommand of a CommandLine, which owns it. `names` are such as "--url" or "-q,--quiet"; a
/// bare word is a positional argument. Targets and what callbacks refer to outlive the parsing.
class Subcommand {
 public:
  void add_flag(const std::string& names, bool& value, const OptionHelp& help);
  /// `receive` is called if the flag is given; with false for "--name=false".
  void add_flag(const std::string& names, std::function<void(bool)> receive,
                const OptionHelp& help);

  /// A value that is no such number, or a second one unless the target is a vector, is an error.
  void add_option(const std::string& names, OptionTarget target, const OptionHelp& help);
  /// May be given many times, each with one value. `receive` is called once, with the
  /// values that `keep` selects.
  void add_repeatable(const std::string& names, Keep keep,
                      const std::function<void(const std::vector<std::string>&)>& receive,
                      const OptionHelp& help);

 private:
  friend class CommandLine;
  explicit Subcommand(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

/// What the help of the whole program says.
struct ProgramHelp {
  std::string name;
  std::string description;
  std::string version;  // the line that --version prints
  std::string footer;
};

/// What the whole program understands: exactly one of its subcommands, --help and --version.
class CommandLine {
 public:
  explicit CommandLine(const ProgramHelp& help);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// `command` is run, after the parsing, if this subcommand is the one given.
  Subcommand add_subcommand(const std::string& name, const std::string& description,
                            const std::string& footer, Command command);

  /// Parses the arguments and runs the subcommand. Returns its exit code, or kExitUsage after
  /// printing what is wrong, or kExitOk after printing help or version.
  int run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  Command chosen_;
};

}  // namespace sluice
