#include "cli/targets/variables.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

/// The value of a reference; nothing: it stays as it is written.
using Resolved = Result<std::optional<std::string>>;

/// `text` with each "OPEN...}" replaced by what `resolve` makes of the part between.
template <class Resolve>
Result<std::string> replace_references(std::string_view text, std::string_view open,
                                       Resolve resolve) {
  std::string out;
  for (;;) {
    const auto begin = text.find(open);
    const auto end = begin == std::string_view::npos ? begin : text.find('}', begin + open.size());
    if (end == std::string_view::npos) return out.append(text);
    const std::string_view inner = text.substr(begin + open.size(), end - begin - open.size());
    Resolved value = resolve(inner);
    if (!value) return std::unexpected(std::move(value.error()));
    out.append(text.substr(0, begin));
    out.append(*value ? **value : text.substr(begin, end + 1 - begin));
    text.remove_prefix(end + 1);
  }
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
}

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

void set_value(NamedValues& values, std::string_view name, std::string value) {
  const auto found = std::ranges::find(values, name, &NamedValues::value_type::first);
  if (found == values.end()) {
    values.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

/// The assignments of an environment file: NAME=VALUE lines, perhaps after "export", with or
/// without quotes around the value; # begins a comment line.
NamedValues parse_environment_file(std::string_view text) {
  NamedValues out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = trim(text.substr(0, end), " \t\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("export ")) line = trim(line.substr(7));
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string_view name = trim(line.substr(0, equals));
    std::string_view value = trim(line.substr(equals + 1));
    const bool quoted = value.size() >= 2 && value.front() == value.back() &&
                        (value.front() == '"' || value.front() == '\'');
    if (quoted) value = value.substr(1, value.size() - 2);
    if (!name.empty() && std::ranges::all_of(name, is_word)) {
      set_value(out, name, std::string(value));
    }
  }
  return out;
}

class VariableExpander {
 public:
  VariableExpander(const ServerConfig& server, const VariableSources& sources)
      : out_{.server = server, .warnings = {}}, sources_(&sources) {}

  /// Whether a value has been put in the place of a reference.
  [[nodiscard]] bool has_replaced() const { return has_replaced_; }
  Result<ExpandedServer> run() {
    Result<void> done;
    if (auto* command = std::get_if<ConfiguredCommand>(&out_.server.place)) {
      done = expand_command(*command);
    } else {
      done = expand_url(std::get<ConfiguredUrl>(out_.server.place));
    }
    if (!done) return std::unexpected(std::move(done.error()));
    return std::move(out_);
  }

 private:
  [[nodiscard]] const ServersFile& file() const { return out_.server.source; }

  /// What is wrong with the text at `key`. Has no values.
  [[nodiscard]] std::string about(std::string_view key, std::string_view message) const {
    return ConfigWarning{.file = file().path,
                         .server = out_.server.name,
                         .key = std::string(key),
                         .message = std::string(message)}
        .describe();
  }
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view key, std::string_view message) const {
    return fail(kExitUsage, about(key, message));
  }

  std::unexpected<Error> not_set(std::string_view key, std::string_view variable) const {
    return wrong(key, "the environment variable " + std::string(variable) +
                          " is not set; set it before the command");
  }

  std::string set_or_empty(std::string_view key, const std::string& variable) {
    auto value = sources_->environment(variable);
    if (!value) {
      out_.warnings.push_back(
          about(key, "the environment variable " + variable + " is not set, and counts as empty"));
    }
    return std::move(value).value_or("");
  }

  /// `${VAR}` and `${VAR:-default}`.
  Resolved shell_like(std::string_view inner, std::string_view key) const {
    const auto dash = inner.find(":-");
    const std::string name(inner.substr(0, dash));
    if (auto value = sources_->environment(name)) return value;
    if (dash != std::string_view::npos) return std::string(inner.substr(dash + 2));
    return not_set(key, name);
  }

  /// The variables that VS Code and Cursor share.
  Resolved editor_like(std::string_view inner, std::string_view key) {
    const bool is_vscode = file().application == Application::vscode;
    const std::string& workspace = file().workspace;
    if (inner == "userHome") return sources_->home;
    if (inner == "workspaceFolder") return workspace;
    if (inner == "workspaceFolderBasename") return std::string(base_name(workspace));
    if (inner == "pathSeparator" || inner == "/") return "/";
    if (inner == "cwd" && is_vscode) return sources_->directory;
    const auto colon = inner.find(':');
    if (colon == std::string_view::npos) {
      out_.warnings.push_back(
          about(key, "${" + std::string(inner) + "} is no known variable and stays as it is"));
      return std::nullopt;
    }
    const std::string argument(inner.substr(colon + 1));
    const std::string_view kind = inner.substr(0, colon);
    if (kind == "env") {
      if (is_vscode) return set_or_empty(key, argument);
      if (auto value = sources_->environment(argument)) return value;
      return not_set(key, argument);
    }
    if (kind == "input" && is_vscode) return wrong(key, unanswered(argument));
    return wrong(key, "${" + std::string(inner) + "} is not supported");
  }

  [[nodiscard]] std::string unanswered(const std::string& id) const {
    std::string out = "${input:" + id + "} asks";
    const auto& inputs = out_.server.inputs;
    const auto found = std::ranges::find(inputs, id, &ConfigInput::id);
    if (found != inputs.end() && !found->description.empty()) {
      out.append(" for \"").append(found->description).append("\"");
    } else {
      out.append(" a question");
    }
    return out.append(
        ", and Sluice does not ask; use ${env:NAME} there, or add the server with sluice mcp add");
  }

  /// `$VAR`, `${VAR}`, `${VAR:-default}`.
  Result<std::string> expand_dollars(std::string_view text, std::string_view key) {
    std::string out;
    const auto stays = [&](std::string_view name) {
      out_.warnings.push_back(about(key, "the environment variable " + std::string(name) +
                                             " is not set; its name stays as it is"));
    };
    while (!text.empty()) {
      const auto dollar = std::min(text.find('$'), text.size());
      out.append(text.substr(0, dollar));
      text.remove_prefix(dollar);
      if (text.empty()) break;
      std::size_t length = 1;
      std::string_view inner;
      if (const auto end = text.find('}'); text.starts_with("${") && end != text.npos) {
        inner = text.substr(2, end - 2);
        length = end + 1;
      } else {
        while (length < text.size() && is_word(text[length])) ++length;
        inner = text.substr(1, length - 1);
      }
      const auto dash = inner.find(":-");
      const std::string name(inner.substr(0, dash));
      std::optional<std::string> value;
      if (!name.empty()) value = sources_->environment(name);
      if (!value && dash != std::string_view::npos) value = std::string(inner.substr(dash + 2));
      if (!value && !name.empty()) stays(name);
      out.append(value ? *value : text.substr(0, length));
      text.remove_prefix(length);
    }
    return out;
  }

  Result<std::string> expand_braces(std::string_view text, std::string_view key) {
    return replace_references(text, "{", [&](std::string_view inner) -> Resolved {
      if (inner.starts_with("env:")) return set_or_empty(key, std::string(inner.substr(4)));
      if (!inner.starts_with("file:")) return std::nullopt;
      std::string path(inner.substr(5));
      if (path.starts_with("~/")) {
        path.replace(0, 1, sources_->home);
      } else if (!path.starts_with('/')) {
        path.insert(0, folder_of(file().path) + "/");
      }
      auto content = sources_->read_file(path);
      if (!content) return wrong(key, content.error().message);
      return std::string(trim(*content, " \t\r\n"));
    });
  }

  Result<std::string> expand_text(std::string_view text, std::string_view key) {
    switch (file().application) {
      case Application::sluice:
      case Application::claude_code:
        return replace_references(text, "${",
                                  [&](std::string_view inner) { return shell_like(inner, key); });
      case Application::cursor:
      case Application::vscode:
        return replace_references(text, "${",
                                  [&](std::string_view inner) { return editor_like(inner, key); });
      case Application::gemini:
        return expand_dollars(text, key);
      case Application::opencode:
        return expand_braces(text, key);
      case Application::claude_desktop:
      case Application::codex:
        break;
    }
    return std::string(text);
  }

  Result<void> expand(std::string& text, std::string_view key) {
    auto expanded = expand_text(text, key);
    if (!expanded) return std::unexpected(std::move(expanded.error()));
    has_replaced_ = has_replaced_ || *expanded != text;
    text = *std::move(expanded);
    total_ += text.size();
    if (total_ > kMaxExpanded) {
      return wrong(key, "is too long: the texts of a server have at most " +
                            std::to_string(kMaxExpanded) + " bytes with their variables");
    }
    if (text.contains('\0')) return wrong(key, "contains a zero byte");
    return {};
  }

  Result<void> expand_all(NamedValues& values, const std::string& key) {
    for (auto& [name, value] : values) {
      if (auto done = expand(value, key + "." + name); !done) return done;
    }
    return {};
  }

  Result<void> expand_command(ConfiguredCommand& command) {
    const bool is_opencode = file().application == Application::opencode;
    const std::string environment = is_opencode ? "environment" : "env";
    if (auto done = expand(command.program, "command"); !done) return done;
    for (std::string& argument : command.arguments) {
      if (auto done = expand(argument, is_opencode ? "command" : "args"); !done) return done;
    }
    if (auto done = expand_all(command.environment, environment); !done) return done;
    for (const auto& [name, value] : command.environment) {
      if (name.contains('=') || name.contains('\0')) {
        return wrong(environment, "\"" + name + "\" is no name of a variable");
      }
    }
    if (auto done = read_environment_file(command); !done) return done;
    if (auto done = expand(command.directory, "cwd"); !done) return done;
    const bool is_projects =
        file().scope == ConfigScope::project || file().scope == ConfigScope::local;
    if (command.directory.empty()) {
      if (is_projects) command.directory = file().workspace;
    } else if (!command.directory.starts_with('/')) {
      command.directory.insert(0, file().workspace + "/");
    }
    if (command.program.empty()) return wrong("command", "is empty");
    return {};
  }

  Result<void> read_environment_file(ConfiguredCommand& command) {
    if (command.environment_file.empty()) return {};
    if (auto done = expand(command.environment_file, "envFile"); !done) return done;
    std::string path = std::exchange(command.environment_file, {});
    if (!path.starts_with('/')) path.insert(0, file().workspace + "/");
    const auto content = sources_->read_file(path);
    if (!content) return wrong("envFile", content.error().message);
    NamedValues merged = parse_environment_file(*content);
    for (auto& [name, value] : command.environment) set_value(merged, name, std::move(value));
    command.environment = std::move(merged);
    return {};
  }

  Result<void> expand_url(ConfiguredUrl& url) {
    const bool is_codex = file().application == Application::codex;
    const std::string headers = is_codex ? "http_headers" : "headers";
    if (auto done = expand(url.url, "url"); !done) return done;
    if (auto done = expand_all(url.headers, headers); !done) return done;
    for (const HeaderFromVariable& from : std::exchange(url.variable_headers, {})) {
      const auto value = sources_->environment(from.variable);
      if (value && !value->empty()) {
        set_value(url.headers, from.header, from.prefix + *value);
      } else if (from.is_required) {
        return not_set("bearer_token_env_var", from.variable);
      }
    }
    for (const auto& [name, value] : url.headers) {
      if (name.empty() || !std::ranges::all_of(name, is_token_char)) {
        return wrong(headers, "\"" + name + "\" is no name of a header");
      }
      const auto is_bad = [](char c) {
        return (is_ascii(c) && c < ' ' && c != '\t') || c == '\x7f';
      };
      if (std::ranges::any_of(value, is_bad)) {
        return wrong(headers + "." + name, "a header has no line breaks or control characters");
      }
    }
    return {};
  }

  ExpandedServer out_;
  const VariableSources* sources_;
  std::size_t total_ = 0;
  bool has_replaced_ = false;
};

}  // namespace

Result<ExpandedServer> expand_variables(const ServerConfig& server,
                                        const VariableSources& sources) {
  return VariableExpander(server, sources).run();
}

bool has_variables(const ServerConfig& server) {
  bool asked = false;
  const VariableSources probe{.environment =
                                  [&](const std::string&) {
                                    asked = true;
                                    return std::string("x");
                                  },
                              .read_file =
                                  [&](const std::string&) {
                                    asked = true;
                                    return std::string("x");
                                  },
                              .home = "/",
                              .directory = "/"};
  VariableExpander expander(server, probe);
  // An input that is asked for counts as well.
  return !expander.run() || asked || expander.has_replaced();
}

}  // namespace sluice
