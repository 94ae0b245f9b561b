#include "cli/options/command_line.hpp"

#include <iostream>
#include <stdexcept>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

void describe(CLI::Option& option, const OptionHelp& help) {
  if (!help.operand.empty()) option.type_name(help.operand);
  if (!help.group.empty()) option.group(help.group);
  if (help.shows_default) option.capture_default_str();
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

void Subcommand::add_option(const std::string& names, OptionTarget target, const OptionHelp& help) {
  auto* option =
      std::visit([&](auto* value) { return app_->add_option(names, *value, help.text); }, target);
  describe(*option, help);
}

void Subcommand::add_repeatable(const std::string& names, Keep keep,
                                const std::function<void(const std::vector<std::string>&)>& receive,
                                const OptionHelp& help) {
  auto* option = app_->add_option_function(names, receive, help.text);
  option->expected(1)->allow_extra_args(false)->multi_option_policy(
      keep == Keep::all ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
  describe(*option, help);
}

CommandLine::CommandLine(const ProgramHelp& help)
    : app_(std::make_unique<CLI::App>(help.description, help.name)) {
  app_->set_version_flag("--version", help.version);
  app_->footer(help.footer);
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add_subcommand(const std::string& name, const std::string& description,
                                       const std::string& footer, Command command) {
  CLI::App* app = app_->add_subcommand(name, description);
  app->footer(footer);
  app->callback([this, command = std::move(command)] { chosen_ = command; });
  return Subcommand(*app);
}

int CommandLine::run(int argc, const char* const* argv) {
  app_->require_subcommand(1);  // not earlier, because the subcommands would inherit it
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app_->exit(error) != 0) return kExitUsage;
    return std::cout.flush() ? kExitOk : kExitFailure;
  } catch (const std::invalid_argument&) {
    // CLI11 throws this for `--flag=value` and does not handle it itself.
    std::cerr << "A flag takes no value other than true or false\n"
                 "Run with --help for more information.\n";
    return kExitUsage;
  }
  return chosen_();
}

}  // namespace sluice
