#include "cli/targets/process_targets.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <pwd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"

namespace sluice {
namespace {

/// The user's home without a slash at its end; empty if there is none.
std::string home_folder() {
  std::string home = environment("HOME").value_or("");
  if (!home.starts_with('/')) {
    constexpr std::size_t kMaxUserEntry = 16U << 10U;
    std::array<char, kMaxUserEntry> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
    home = found == nullptr ? "" : found->pw_dir;
  }
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  return home;
}

std::string working_directory() {
  std::error_code gone;
  const auto path = std::filesystem::current_path(gone);
  return gone ? "/" : path.string();
}

}  // namespace

PlaceSources process_places() {
  return {.platform = this_platform(),
          .home = home_folder(),
          .directory = working_directory(),
          .environment = environment,
          .exists = [](const std::string& path) {
            std::error_code ignored;
            return std::filesystem::exists(path, ignored);
          }};
}

VariableSources process_variables() {
  return {.environment = [](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          },
          .read_file = [](const std::string& path) -> Result<std::string> {
            auto content = read_config(path, kMaxExpanded);
            if (!content) return std::unexpected(std::move(content.error()));
            if (!*content) return fail(kExitUsage, path + ": there is no such file");
            // A variable can make a program do anything, such as LD_PRELOAD.
            if (!(*content)->distrust.empty()) return fail(kExitUsage, (*content)->distrust);
            return std::move((*content)->text);
          },
          .home = home_folder(),
          .directory = working_directory()};
}

FoundServers process_servers() {
  return find_servers(config_places(process_places()),
                      [](const std::string& path) { return read_config(path); });
}

}  // namespace sluice
