#include "cli/options/command_line.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/options/exit_code.hpp"
#include "cli/options/help_text.hpp"
#include "cli/options/suggestion.hpp"
#include "core/text/secrets.hpp"

namespace sluice {
namespace {

void describe(CLI::Option& option, const OptionHelp& help) {
  if (!help.operand.empty()) option.type_name(help.operand);
  if (!help.group.empty()) option.group(help.group);
  if (!help.is_listed) option.group("");
  if (help.shows_default) option.capture_default_str();
}

OptionOutline outline_of(const CLI::Option& option) {
  OptionOutline out;
  out.is_argument = option.get_positional();
  out.takes_many = option.get_items_expected_max() > 1;
  if (out.is_argument) {
    out.operand = option.get_type_name();
    out.names.push_back(out.operand);
  } else {
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
    // A flag takes a value after "=" only.
    if (option.get_items_expected_min() > 0) out.operand = option.get_type_name();
  }
  out.text = option.get_description();
  if (const std::string value = option.get_default_str(); !value.empty()) {
    out.text.append(". Default ").append(value);
  }
  out.group = option.get_group();
  return out;
}

CommandOutline outline_of(const CLI::App& app) {
  CommandOutline out{.name = app.get_name(),
                     .description = app.get_description(),
                     .footer = app.get_footer(),
                     .options = {},
                     .commands = {}};
  for (const CLI::Option* option : app.get_options()) out.options.push_back(outline_of(*option));
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* command : app.get_subcommands(all)) {
    out.commands.push_back(outline_of(*command));
  }
  return out;
}

std::string question(std::string_view word, const std::vector<std::string>& candidates,
                     const std::string& otherwise) {
  const std::string_view meant = suggestion(word, candidates);
  return meant.empty() ? "; " + otherwise : "; did you mean " + std::string(meant) + "?";
}

/// Makes `option` refuse what is no number of type T, with what is allowed. The unnamed parameter
/// only selects T.
template <class T>
  requires std::is_arithmetic_v<T>
void check_number(CLI::Option& option, const T& /*target*/) {
  option.check([](const std::string& text) -> std::string {
    T value{};
    const bool is_number = CLI::detail::lexical_cast(text, value);
    if constexpr (std::is_floating_point_v<T>) {
      return is_number && std::isfinite(value) ? "" : '"' + text + "\": give a number";
    } else {
      return is_number ? ""
                       : '"' + text + "\": give a whole number from " +
                             std::to_string(std::numeric_limits<T>::min()) + " to " +
                             std::to_string(std::numeric_limits<T>::max());
    }
  });
}
template <class T>
void check_number(CLI::Option& option, const std::optional<T>& /*target*/) {
  check_number(option, T());
}
template <class Text>
void check_number(CLI::Option& /*option*/, const Text& /*target*/) {}

/// The first option that is given as `--name=`. CLI11 would take the next argument as its value.
std::optional<std::string_view> option_without_value(std::span<const char* const> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--") break;
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      return argument.substr(0, argument.size() - 1);
    }
  }
  return std::nullopt;
}

/// The first flag of `command` that is given with another value than true or false.
std::optional<std::string> flag_with_value(const CLI::App& command,
                                           std::span<const char* const> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--") break;
    const std::string name(argument.substr(0, argument.find('=')));
    if (!name.starts_with('-') || name.size() == argument.size()) continue;
    const CLI::Option* const option = command.get_option_no_throw(name);
    const std::string_view value = argument.substr(name.size() + 1);
    const bool is_flag = option != nullptr && option->get_items_expected_max() == 0;
    if (is_flag && value != "true" && value != "false") return name;
  }
  return std::nullopt;
}

}  // namespace

void Subcommand::add_flag(const std::string& names, bool& value, const OptionHelp& help) {
  describe(*app_->add_flag(names, value, help.text), help);
}

void Subcommand::add_flag(const std::string& names, std::function<void(bool)> receive,
                          const OptionHelp& help) {
  auto* flag = app_->add_flag_function(
      names, [receive = std::move(receive)](std::int64_t count) { receive(count > 0); }, help.text);
  describe(*flag, help);
}

void Subcommand::add_flag(const std::string& names, bool& value, std::string& text,
                          const OptionHelp& help) {
  auto* flag = app_->add_flag(names, help.text)->each([&value, &text](const std::string& given) {
    value = given != "false";
    if (given != "true" && given != "false") text = given;
  });
  describe(*flag, help);
}

void Subcommand::add_option(const std::string& names, OptionTarget target, const OptionHelp& help) {
  const auto add = [&](auto* value) {
    auto* option = app_->add_option(names, *value, help.text);
    check_number(*option, *value);
    return option;
  };
  describe(*std::visit(add, target), help);
}

void Subcommand::add_repeatable(const std::string& names, Keep keep,
                                const std::function<void(const std::vector<std::string>&)>& receive,
                                const OptionHelp& help) {
  auto* option = app_->add_option_function(names, receive, help.text);
  option->expected(1)->allow_extra_args(false)->multi_option_policy(
      keep == Keep::all ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
  describe(*option, help);
}

void Subcommand::add_command_words(std::vector<std::string>& words, const OptionHelp& help) {
  line_->command_words_[app_->get_name()] = {.words = &words,
                                             .outline = {.names = {"-- " + help.operand},
                                                         .operand = help.operand,
                                                         .text = help.text,
                                                         .is_argument = true,
                                                         .takes_many = true}};
}

CommandLine::CommandLine(const ProgramHelp& help)
    : app_(std::make_unique<CLI::App>(help.description, help.name)), print_(help.print) {
  app_->set_help_flag("-h,--help", "Print this help and exit");
  app_->set_version_flag("--version", help.version, "Print the version and exit");
  app_->footer(help.footer);
  app_->formatter_fn([this, width = help.width](const CLI::App* app, const std::string&,
                                                CLI::AppFormatMode) {
    const CommandOutline program = outline();
    const CommandOutline* command = app == app_.get() ? &program : program.find(app->get_name());
    return help_text(program, *command, width);
  });
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add_subcommand(const std::string& name, const std::string& description,
                                       const std::string& footer, Command command) {
  CLI::App* app = app_->add_subcommand(name, description);
  app->footer(footer);
  app->callback([this, command = std::move(command)] { chosen_ = command; });
  return {*this, *app};
}

/// The arguments without the words after "--", if the command takes those as a command.
std::span<const char* const> CommandLine::take_command_words(
    std::span<const char* const> arguments) {
  const auto dashes = std::ranges::find(arguments, std::string_view("--"));
  if (arguments.size() < 2 || dashes == arguments.end()) return arguments;
  const auto taken = command_words_.find(std::string_view(arguments[1]));
  if (taken == command_words_.end()) return arguments;
  taken->second.words->assign(dashes + 1, arguments.end());
  return arguments.first(static_cast<std::size_t>(dashes - arguments.begin()));
}

int CommandLine::run(int argc, const char* const* argv) {
  const std::span arguments = take_command_words({argv, static_cast<std::size_t>(argc)});
  if (const auto name = option_without_value(arguments)) {
    std::cerr << app_->get_name() << ": " << *name << "= has no value; give one, or leave it out\n";
    return kExitUsage;
  }
  app_->require_subcommand(1);  // not earlier, because the subcommands would inherit it
  try {
    app_->parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app_->exit(asked, text);
    return print_(text.str());
  } catch (const CLI::ParseError& error) {
    std::cerr << app_->get_name() << ": " << explain(error) << "\n";
    return kExitUsage;
  } catch (const std::invalid_argument&) {
    // CLI11 throws this for `--flag=value` and does not handle it itself.
    std::cerr << app_->get_name() << ": "
              << flag_with_value(chosen_app(), arguments).value_or("a flag")
              << " takes no value other than true or false\n";
    return kExitUsage;
  }
  return chosen_();
}

CommandOutline CommandLine::outline() const {
  CommandOutline out = outline_of(*app_);
  for (CommandOutline& command : out.commands) {
    const auto words = command_words_.find(command.name);
    if (words != command_words_.end()) command.options.push_back(words->second.outline);
  }
  return out;
}

/// The subcommand that the arguments name, or the program itself.
const CLI::App& CommandLine::chosen_app() const {
  const auto given = app_->get_subcommands();
  return given.empty() ? *app_ : *given.front();
}

/// What is wrong with the arguments, and what to do.
std::string CommandLine::explain(const CLI::ParseError& error) const {
  const CLI::App& chosen = chosen_app();
  const bool is_program = &chosen == app_.get();
  const std::string command =
      is_program ? app_->get_name() : app_->get_name() + " " + chosen.get_name();
  const std::string help = "see " + command + " --help";
  const CommandOutline known = outline_of(chosen);
  std::vector<std::string> commands;
  for (const CommandOutline& one : known.commands) commands.push_back(one.name);

  // A word before the name of the command is none of the command's.
  if (const auto before = app_->remaining(); !is_program && !before.empty()) {
    return "there is no command " + before.front() + "; see " + app_->get_name() + " --help";
  }
  if (const auto unknown = app_->remaining(true); !unknown.empty()) {
    const std::string& word = unknown.front();
    if (word.starts_with('-')) {
      std::vector<std::string> options;
      for (const OptionOutline& option : known.options) {
        if (!option.is_argument)
          options.insert(options.end(), option.names.begin(), option.names.end());
      }
      // The value may be a secret.
      const std::string name = word.substr(0, word.find('='));
      return (is_program ? "there is" : chosen.get_name() + " has") + " no option " + name +
             question(name, options, help);
    }
    if (is_program) return "there is no command " + word + question(word, commands, help);
    return chosen.get_name() + " takes no argument " + masked_word(word) + "; " + help;
  }
  if (is_program && error.get_name() == "RequiredError") {
    std::string names;
    for (const std::string& name : commands) names.append(names.empty() ? "" : ", ").append(name);
    return "give a command: " + names + "; " + help;
  }
  std::string message = error.what();
  // "--url: At Most 1 required but received 2"
  if (message.contains("At Most 1 required")) {
    message = message.substr(0, message.find(':')) + " is given more than once";
  }
  // "--top-k: 1 required N missing"
  if (message.ends_with(" missing"))
    message = message.substr(0, message.find(':')) + " needs a value";
  return message + "; " + help;
}

}  // namespace sluice
