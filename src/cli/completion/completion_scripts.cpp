#include "cli/completion/completion_scripts.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/completion/server_offers.hpp"
#include "cli/completion/word_offers.hpp"

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

/// What a server has, of which bash sees only what follows the last =, : or @.
std::string bash_server_words() {
  return "_sluice_server_words() {\n"
         "  local rest=${COMP_LINE:0:COMP_POINT} word\n"
         "  local -a typed=()\n"
         "  for word in \"${COMP_WORDS[@]:0:COMP_CWORD+1}\"; do\n"
         "    if ((${#typed[@]} == 0)) || [[ $rest == [[:space:]]* ]]; then\n"
         "      typed+=(\"$word\")\n"
         "    else\n"
         "      typed[-1]+=$word\n"
         "    fi\n"
         "    rest=${rest#\"${rest%%[![:space:]]*}\"}\n"
         "    rest=${rest#\"$word\"}\n"
         "  done\n"
         "  local kept=${typed[-1]%\"$current\"}\n"
         "  typed=(\"${typed[@]//[\\\"\\'\\\\]/}\")\n"
         "  while IFS=$'\\t' read -r word _; do\n"
         "    if [[ $word == *= ]]; then compopt -o nospace 2>/dev/null; fi\n"
         "    printf -v word %q \"${word#\"$kept\"}\"\n"
         "    COMPREPLY+=(\"$word\")\n"
         "  done < <(\"$1\" " +
         std::string(kOfferCommand) +
         " \"${typed[@]:1}\" 2>/dev/null)\n"
         "}\n";
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
      const bool is_of_server = takes_target(command);
      add((option.takes_many ? "*" : "") +
          (is_of_server ? ":word:_sluice_server_words" : zsh_value(option)));
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

std::string zsh_server_words() {
  return "_sluice_server_words() {\n"
         "  local line word\n"
         "  local -a whole shown open opening\n"
         "  for line in ${(f)\"$($program " +
         std::string(kOfferCommand) +
         " \"${(@Q)words[1,CURRENT]}\" 2>/dev/null)\"}; do\n"
         "    word=${line%%$'\\t'*} line=${line/$'\\t'/  }\n"
         "    if [[ $word == *= ]]; then\n"
         "      open+=(\"$word\") opening+=(\"$line\")\n"
         "    else\n"
         "      whole+=(\"$word\") shown+=(\"$line\")\n"
         "    fi\n"
         "  done\n"
         "  compadd -l -d shown -a whole\n"
         "  compadd -l -S '' -d opening -a open\n"
         "}\n";
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

}  // namespace

std::string bash_completion(const CommandOutline& program) {
  std::string out =
      "# Completion of " + program.name + " for bash, written by `" + program.name +
      " completion bash`.\n" + bash_server_words() +
      "_sluice() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local words= action=\n"
      "  # bash takes --name=value for three words, and so a:b, and @a for two.\n"
      "  if [[ $current == [=:@] ]]; then\n"
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
        .append(takes_target(command) ? "; [[ $current == -* ]] || action=server ;;\n" : " ;;\n");
    out.append("      esac\n      ;;\n");
  }
  return out +
         "    esac\n"
         "  fi\n"
         "  if [[ $action == file ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "  elif [[ $action == server ]]; then\n"
         "    _sluice_server_words \"${1:-sluice}\"\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -F _sluice " +
         program.name + "\n";
}

std::string zsh_completion(const CommandOutline& program) {
  std::string out = "#compdef " + program.name + "\n# Completion of " + program.name +
                    " for zsh, written by `" + program.name + " completion zsh`.\n" +
                    zsh_server_words() +
                    "_sluice() {\n"
                    "  local program=$words[1]\n"
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

std::string fish_completion(const CommandOutline& program) {
  const std::string start = "complete -c " + program.name;
  std::string out = "# Completion of " + program.name + " for fish, written by `" + program.name +
                    " completion fish`.\n"
                    "function __sluice_server_words\n"
                    "  set -l words (commandline -opc)\n"
                    "  $words[1] " +
                    kOfferCommand +
                    " $words[2..-1] \"$(commandline -ct)\" 2>/dev/null\n"
                    "end\n" +
                    start + " -f\n";
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
    if (takes_target(command)) {
      add(fish_condition(program, command), " -a '(__sluice_server_words)'\n");
    }
  }
  return out;
}

}  // namespace sluice
