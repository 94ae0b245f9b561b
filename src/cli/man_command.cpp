#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/help_text.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/version.hpp"

namespace sluice {
namespace {

/// `text` as roff shows it: nothing in it is a request, and a hyphen can be copied as a minus.
std::string escaped(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out.append("\\&");
  for (const char c : text) {
    if (c == '\\') {
      out.append("\\e");
    } else if (c == '-') {
      out.append("\\-");
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}

std::string page_name(const CommandOutline& program, const CommandOutline& command) {
  return &program == &command ? program.name : program.name + "-" + command.name;
}

void append_entry(std::string& out, const OptionOutline& option) {
  out.append(".TP\n");
  std::string names;
  for (const std::string& name : option.names) {
    names.append(names.empty() ? "" : ", ").append(bold(name));
  }
  if (!option.operand.empty() && !option.is_argument) {
    names.append(" \\fI").append(escaped(option.operand)).append("\\fR");
  }
  out.append(names).append("\n").append(escaped(option.text)).append(".\n");
}

void append_options(std::string& out, const CommandOutline& command) {
  if (std::ranges::any_of(command.options, &OptionOutline::is_argument)) {
    out.append(".SH ARGUMENTS\n");
    for (const OptionOutline& option : command.options) {
      if (option.is_argument) append_entry(out, option);
    }
  }
  out.append(".SH OPTIONS\n");
  const std::vector<std::string> groups = groups_of(command);
  for (const std::string& group : groups) {
    if (group != groups.front()) out.append(".SS ").append(escaped(group)).append("\n");
    for (const OptionOutline& option : command.options) {
      if (!option.is_argument && option.group == group) append_entry(out, option);
    }
  }
}

void append_footer(std::string& out, std::string_view footer) {
  const std::vector<FooterPart> parts = footer_parts(footer);
  const auto is_example = [](const FooterPart& part) {
    return part.kind == FooterPart::Kind::example;
  };
  if (std::ranges::any_of(parts, is_example)) {
    out.append(".SH EXAMPLES\n.nf\n");
    for (const FooterPart& part : parts) {
      if (!is_example(part)) continue;
      if (!part.comment.empty()) out.append("# ").append(escaped(part.comment)).append("\n");
      out.append(escaped(part.text)).append("\n");
    }
    out.append(".fi\n");
  }
  bool begun = false;
  for (const FooterPart& part : parts) {
    // The exit codes and the headings of examples have sections of their own.
    if (is_example(part) || part.text == "Examples:" || part.text.starts_with("Exit codes:")) {
      continue;
    }
    out.append(begun ? ".PP\n" : ".SH NOTES\n").append(escaped(part.text)).append("\n");
    begun = true;
  }
}

std::string manual_page(const CommandOutline& program, const CommandOutline& command) {
  const std::string name = page_name(program, command);
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out = ".TH " + escaped(title) + " 1 \"\" \"" + program.name + " " +
                    std::string(kVersion) + "\" \"User Commands\"\n.SH NAME\n" + escaped(name) +
                    " \\- " + escaped(command.description) + "\n.SH SYNOPSIS\n" +
                    escaped(usage(program, command)) + "\n";
  if (!command.commands.empty()) {
    out.append(".SH COMMANDS\n");
    for (const CommandOutline& one : command.commands) {
      out.append(".TP\n").append(bold(page_name(program, one))).append("(1)\n");
      out.append(escaped(one.description)).append(".\n");
    }
  }
  append_options(out, command);
  append_footer(out, command.footer);
  out.append(".SH EXIT STATUS\n");
  for (const ExitCode& one : kExitCodes) {
    out.append(".TP\n").append(std::to_string(one.code)).append("\n");
    out.append(escaped(one.meaning)).append(".\n");
  }
  std::string others;
  if (&program != &command) others = bold(program.name) + "(1)";
  for (const CommandOutline& one : program.commands) {
    if (&one == &command) continue;
    others.append(others.empty() ? "" : ", ").append(bold(page_name(program, one))).append("(1)");
  }
  return out + ".SH SEE ALSO\n" + others + "\n";
}

struct ManArguments {
  std::string command;
  bool lists = false;
};

int run_man(const CommandLine& line, const ManArguments& arguments) {
  const CommandOutline program = line.outline();
  std::string out;
  if (arguments.lists) {
    for (const CommandOutline& command : program.commands) out.append(command.name).append("\n");
  } else if (arguments.command.empty()) {
    out = manual_page(program, program);
  } else if (const CommandOutline* command = program.find(arguments.command)) {
    out = manual_page(program, *command);
  } else {
    complain("man: there is no command " + arguments.command + "; see sluice --help");
    return kExitUsage;
  }
  return print(out);
}

}  // namespace

void add_man_command(CommandLine& program) {
  const auto arguments = std::make_shared<ManArguments>();
  std::string pages;
  for (const CommandOutline& one : program.outline().commands) pages.append(one.name).append("|");
  Subcommand command = program.add_subcommand(
      "man", "Print a manual page, of the program or of a command",
      "Examples:\n  sluice man serve | man -l -\n\n"
      "`cmake --install` puts the pages where man looks for them: man sluice-serve.\n",
      [&program, arguments] { return run_man(program, *arguments); });
  command.add_option("command", &arguments->command,
                     {.text = "The command; without one, the page is about the program",
                      .operand = pages + "man"});
  command.add_flag("--list", arguments->lists, {.text = "Print the names of the commands"});
}

}  // namespace sluice
