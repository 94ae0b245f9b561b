#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

bool takes_file(const OptionOutline& option) {
  return option.operand == "FILE" || option.operand == "PATH";
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : between).append(word);
  return out;
}

std::vector<std::string> command_names(const CommandOutline& program) {
  std::vector<std::string> names;
  for (const CommandOutline& command : program.commands) names.push_back(command.name);
  return names;
}

/// The options of a command and the values of its argument.
std::vector<std::string> words_of(const CommandOutline& command) {
  std::vector<std::string> words;
  for (const OptionOutline& option : command.options) {
    const auto more = option.is_argument ? option.values() : option.names;
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

/// What an option does, without details.
std::string_view short_text(const OptionOutline& option) {
  const std::string_view text = option.text;
  return text.substr(0, std::min(text.find(". "), text.find("; ")));
}

/// `text` as a word of a shell. fish and zsh read it as sh does.
std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out.append("'\\''");
    } else {
      out.push_back(c);
    }
  }
  return out + "'";
}

std::string bash_cases(const CommandOutline& command) {
  std::string out;
  std::vector<std::string> files;
  std::vector<std::string> others;
  for (const OptionOutline& option : command.options) {
    if (option.is_argument || option.operand.empty()) continue;
    const std::string names = joined(option.names, " | ");
    if (takes_file(option)) {
      files.push_back(names);
    } else if (const auto values = option.values(); !values.empty()) {
      out.append("        ").append(names).append(") words=");
      out.append(single_quoted(joined(values, " "))).append(" ;;\n");
    } else {
      others.push_back(names);
    }
  }
  const auto add = [&](const std::vector<std::string>& patterns, std::string_view action) {
    if (patterns.empty()) return;
    out.append("        ").append(joined(patterns, " | ")).append(") ").append(action);
    out.append(" ;;\n");
  };
  add(files, "action=file");
  add(others, "return");
  return out;
}

std::string bash_completion(const CommandOutline& program) {
  std::string out =
      "# Completion of " + program.name + " for bash, written by `" + program.name +
      " completion bash`.\n"
      "_sluice() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local words= action=\n"
      "  # bash takes --name=value for three words.\n"
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == = ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    words=" +
      single_quoted(joined(command_names(program), " ") + " " + joined(words_of(program), " ")) +
      "\n"
      "  else\n"
      "    case ${COMP_WORDS[1]} in\n";
  for (const CommandOutline& command : program.commands) {
    out.append("    ").append(command.name).append(")\n      case $previous in\n");
    out.append(bash_cases(command));
    out.append("        *) words=")
        .append(single_quoted(joined(words_of(command), " ")))
        .append(" ;;\n");
    out.append("      esac\n      ;;\n");
  }
  return out +
         "    esac\n"
         "  fi\n"
         "  if [[ $action == file ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -F _sluice " +
         program.name + "\n";
}

/// `text` in a specification of zsh's _arguments.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string zsh_value(const OptionOutline& option) {
  std::string out = ":" + zsh_escaped(option.values().empty() ? option.operand : "value") + ":";
  if (takes_file(option)) return out + "_files";
  if (const auto values = option.values(); !values.empty()) {
    out.append("(").append(joined(values, " ")).append(")");
  }
  return out;
}

std::string zsh_arguments(const CommandOutline& command, std::string_view indent) {
  std::string out(indent);
  out.append("_arguments -S");
  const auto add = [&](std::string_view spec) {
    out.append(" \\\n").append(indent).append("  ").append(single_quoted(spec));
  };
  for (const OptionOutline& option : command.options) {
    if (option.is_argument) {
      add((option.takes_many ? "*" : "") + zsh_value(option));
      continue;
    }
    for (const std::string& name : option.names) {
      std::string spec = "*" + name;
      if (!option.operand.empty() && name.starts_with("--")) spec.push_back('=');
      spec.append("[").append(zsh_escaped(short_text(option))).append("]");
      if (!option.operand.empty()) spec.append(zsh_value(option));
      add(spec);
    }
  }
  return out + "\n";
}

std::string zsh_completion(const CommandOutline& program) {
  std::string out = "#compdef " + program.name + "\n# Completion of " + program.name +
                    " for zsh, written by `" + program.name +
                    " completion zsh`.\n"
                    "_sluice() {\n"
                    "  if ((CURRENT == 2)); then\n"
                    "    local -a commands=(\n";
  for (const CommandOutline& command : program.commands) {
    out.append("      ");
    out.append(single_quoted(command.name + ":" + zsh_escaped(command.description)))
        .push_back('\n');
  }
  out.append(
      "    )\n"
      "    _describe command commands\n");
  out.append(zsh_arguments(program, "    "));
  out.append(
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n");
  for (const CommandOutline& command : program.commands) {
    out.append("    ").append(command.name).append(")\n");
    out.append(zsh_arguments(command, "      ")).append("      ;;\n");
  }
  return out +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _sluice ]]; then\n"
         "  _sluice \"$@\"\n"
         "else\n"
         "  compdef _sluice " +
         program.name +
         "\n"
         "fi\n";
}

std::string fish_option(const OptionOutline& option) {
  std::string out;
  for (const std::string& name : option.names) {
    if (option.is_argument) break;
    const bool is_long = name.starts_with("--");
    out.append(is_long ? " -l " : " -s ").append(name.substr(is_long ? 2 : 1));
  }
  if (const auto values = option.values(); !values.empty()) {
    out.append(option.is_argument ? "" : " -x")
        .append(" -a ")
        .append(single_quoted(joined(values, " ")));
  } else if (takes_file(option)) {
    out.append(" -r -F");
  } else if (!option.operand.empty()) {
    out.append(" -x");
  }
  return out + " -d " + single_quoted(short_text(option)) + "\n";
}

/// When fish offers what belongs to `command`. Its name may also be the argument of another one.
std::string fish_condition(const CommandOutline& program, const CommandOutline& command) {
  std::string out = "__fish_seen_subcommand_from " + command.name;
  for (const CommandOutline& other : program.commands) {
    const bool names_it = std::ranges::any_of(other.options, [&](const OptionOutline& option) {
      return option.is_argument && std::ranges::count(option.values(), command.name) > 0;
    });
    if (names_it && other.name != command.name) {
      out.append("; and not __fish_seen_subcommand_from ").append(other.name);
    }
  }
  return out;
}

std::string fish_completion(const CommandOutline& program) {
  const std::string start = "complete -c " + program.name;
  std::string out = "# Completion of " + program.name + " for fish, written by `" + program.name +
                    " completion fish`.\n" + start + " -f\n";
  const auto add = [&](std::string_view condition, std::string_view rest) {
    out.append(start).append(" -n ").append(single_quoted(condition)).append(rest);
  };
  for (const CommandOutline& command : program.commands) {
    add("__fish_use_subcommand",
        " -a " + command.name + " -d " + single_quoted(command.description) + "\n");
  }
  for (const OptionOutline& option : program.options) {
    add("__fish_use_subcommand", fish_option(option));
  }
  for (const CommandOutline& command : program.commands) {
    for (const OptionOutline& option : command.options) {
      if (option.is_argument && option.values().empty()) continue;
      add(fish_condition(program, command), fish_option(option));
    }
  }
  return out;
}

int run_completion(const CommandLine& program, const std::string& shell) {
  std::string script;
  if (shell == "bash") {
    script = bash_completion(program.outline());
  } else if (shell == "zsh") {
    script = zsh_completion(program.outline());
  } else if (shell == "fish") {
    script = fish_completion(program.outline());
  } else {
    complain("completion: give the shell: bash, zsh or fish");
    return kExitUsage;
  }
  return print(script);
}

constexpr const char* kCompletionExamples =
    "Examples:\n"
    "  source <(sluice completion bash)\n"
    "  source <(sluice completion zsh)\n"
    "  sluice completion fish | source\n"
    "\n"
    "`cmake --install` puts the scripts where the shells look for them.\n";

}  // namespace

void add_completion_command(CommandLine& program) {
  const auto shell = std::make_shared<std::string>();
  Subcommand command = program.add_subcommand(
      "completion", "Print a script that completes commands and options in a shell",
      kCompletionExamples, [&program, shell] { return run_completion(program, *shell); });
  command.add_option("shell", shell.get(), {.text = "The shell", .operand = "bash|zsh|fish"});
}

}  // namespace sluice
