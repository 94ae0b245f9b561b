#include "cli/session/session_name.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>
#include <variant>

#include "cli/targets/session_files.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

/// Programs that say nothing about the server.
constexpr std::array<std::string_view, 11> kRunners = {
    "npx", "bunx", "uvx", "node", "bun", "deno", "python3", "python", "ruby", "java", "env"};

std::string_view last_part_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

/// Of a file, without its extension.
std::string_view stem_of(std::string_view path) {
  const std::string_view file = last_part_of(path);
  const auto dot = file.rfind('.');
  return dot == 0 ? file : file.substr(0, dot);
}

std::string_view command_name_of(const std::vector<std::string>& arguments) {
  const std::string_view program = stem_of(arguments.front());
  if (std::ranges::find(kRunners, program) == kRunners.end()) return program;
  for (const std::string_view each : std::views::drop(arguments, 1)) {
    if (!each.starts_with('-') && !each.contains('=')) return stem_of(each);
  }
  return program;
}

std::string raw_name_of(const Target& target) {
  if (!target.name.empty()) return target.name;
  if (const auto* const url = std::get_if<UrlTarget>(&target.place)) return url->url.host;
  if (const auto* const socket = std::get_if<UnixTarget>(&target.place)) {
    return std::string(stem_of(socket->path));
  }
  return std::string(command_name_of(std::get<CommandTarget>(target.place).arguments));
}

}  // namespace

std::string session_name_of(const Target& target) {
  std::string name;
  for (const char c : raw_name_of(target)) {
    const bool is_plain = is_letter(c) || is_digit(c);
    if (is_plain || (!name.empty() && (c == '.' || c == '_'))) {
      name.push_back(c);
    } else if (!name.empty() && !name.ends_with('-')) {
      name.push_back('-');
    }
    if (name.size() == kMaxSessionName) break;
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

}  // namespace sluice
