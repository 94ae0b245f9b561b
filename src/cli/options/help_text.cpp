#include "cli/options/help_text.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace sluice {
namespace {

/// Where the texts of options begin, and the least width that leaves enough room for them there.
constexpr std::size_t kColumn = 28;
constexpr std::size_t kWidthForColumns = 60;
constexpr std::size_t kNarrowIndent = 6;

/// Appends words in lines of at most `width` characters. The current line has `at` characters, and
/// the following ones begin with `indent` spaces and end with `broken`.
void append_words(std::string& out, std::string_view text, std::size_t at, std::size_t indent,
                  std::size_t width, std::string_view broken = "") {
  bool first = true;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!first && at + 1 + word.size() + (text.empty() ? 0 : broken.size()) > width) {
      out.append(broken).append("\n").append(indent, ' ');
      at = indent;
    } else if (!first) {
      out.push_back(' ');
      ++at;
    }
    out.append(word);
    at += word.size();
    first = false;
  }
  out.push_back('\n');
}

/// Appends a name and its explanation, side by side if there is room.
void append_row(std::string& out, std::string_view name, std::string_view text, std::size_t width) {
  const bool columns = width >= kWidthForColumns;
  const std::size_t indent = columns ? kColumn : kNarrowIndent;
  out.append("  ").append(name);
  std::size_t at = 2 + name.size();
  if (!columns || at + 2 > indent) {
    out.push_back('\n');
    at = 0;
  }
  out.append(indent - at, ' ');
  append_words(out, text, indent, indent, width);
}

/// The first of the alternatives "a|b|c", if all of them are too many for a line.
std::string some_of(const std::string& alternatives) {
  constexpr std::size_t kLongest = 50;
  if (alternatives.size() <= kLongest || !alternatives.contains('|')) return alternatives;
  return alternatives.substr(0, alternatives.rfind('|', kLongest)) + "|...";
}

std::string shown_name(const OptionOutline& option) {
  std::string name;
  for (const std::string& one : option.names) name.append(name.empty() ? "" : ", ").append(one);
  if (option.is_argument) return some_of(name) + (option.takes_many ? "..." : "");
  if (!option.operand.empty()) name.append(" ").append(option.operand);
  return name;
}

void append_example(std::string& out, const FooterPart& example, std::size_t width) {
  constexpr std::size_t kIndent = 2;
  constexpr std::size_t kContinuation = 6;
  if (!example.comment.empty()) {
    out.append(kIndent, ' ');
    append_words(out, "# " + example.comment, kIndent, kIndent, width);
  }
  out.append(kIndent, ' ');
  append_words(out, example.text, kIndent, kContinuation, width, " \\");
}

void append_footer(std::string& out, std::string_view footer, std::size_t width) {
  const FooterPart* before = nullptr;
  const std::vector<FooterPart> parts = footer_parts(footer);
  for (const FooterPart& part : parts) {
    const bool is_example = part.kind == FooterPart::Kind::example;
    // "Examples:" stands directly above the examples.
    const bool apart = !is_example || before == nullptr;
    if (apart) out.push_back('\n');
    if (is_example) {
      append_example(out, part, width);
    } else {
      append_words(out, part.text, 0, 0, width);
    }
    before = &part;
  }
}

}  // namespace

std::vector<FooterPart> footer_parts(std::string_view footer) {
  std::vector<FooterPart> parts;
  bool open = false;  // whether a line without indentation continues the last paragraph
  while (!footer.empty()) {
    const auto end = std::min(footer.find('\n'), footer.size());
    std::string_view line = footer.substr(0, end);
    footer.remove_prefix(std::min(end + 1, footer.size()));
    if (line.starts_with("  ")) {
      const auto hash = line.find("  # ");
      const std::string_view comment =
          hash == std::string_view::npos ? std::string_view() : line.substr(hash + 4);
      parts.push_back({.kind = FooterPart::Kind::example,
                       .text = std::string(trim(line.substr(0, hash))),
                       .comment = std::string(trim(comment))});
      open = false;
    } else if (line.empty()) {
      open = false;
    } else if (open) {
      parts.back().text.append(" ").append(line);
    } else {
      parts.push_back(
          {.kind = FooterPart::Kind::paragraph, .text = std::string(line), .comment = {}});
      open = true;
    }
  }
  return parts;
}

std::vector<std::string> groups_of(const CommandOutline& command) {
  std::vector<std::string> groups;
  for (const OptionOutline& option : command.options) {
    if (option.is_argument || option.group.empty()) continue;
    const bool is_new = std::ranges::find(groups, option.group) == groups.end();
    if (is_new) groups.push_back(option.group);
  }
  return groups;
}

std::string usage(const CommandOutline& program, const CommandOutline& command) {
  std::string out = program.name;
  if (&program != &command) out.append(" ").append(command.name);
  if (!command.commands.empty()) return out + " [OPTIONS] COMMAND";
  out.append(" [OPTIONS]");
  for (const OptionOutline& option : command.options) {
    if (option.is_argument) out.append(" [").append(shown_name(option)).append("]");
  }
  return out;
}

std::string help_text(const CommandOutline& program, const CommandOutline& command,
                      std::size_t width) {
  std::string out;
  append_words(out, command.description + ".", 0, 0, width);
  out.push_back('\n');
  append_words(out, "Usage: " + usage(program, command), 0, kNarrowIndent, width);
  const auto append_options = [&](std::string_view heading, auto&& belongs) {
    out.append("\n").append(heading).append(":\n");
    for (const OptionOutline& option : command.options) {
      if (belongs(option)) append_row(out, shown_name(option), option.text, width);
    }
  };
  if (std::ranges::any_of(command.options, &OptionOutline::is_argument)) {
    append_options("Arguments", [](const auto& option) { return option.is_argument; });
  }
  for (const std::string& group : groups_of(command)) {
    append_options(
        group, [&](const auto& option) { return !option.is_argument && option.group == group; });
  }
  if (!command.commands.empty()) {
    out.append("\nCommands:\n");
    for (const CommandOutline& one : command.commands) {
      append_row(out, one.name, one.description, width);
    }
  }
  append_footer(out, command.footer, width);
  return out;
}

}  // namespace sluice
