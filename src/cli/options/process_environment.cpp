#include "cli/options/process_environment.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <pwd.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace sluice {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

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

std::string program_path() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(kSelf, path.data(), path.size() - 1);
  if (length <= 0) return {};
  // A program that has been replaced since has no name any more, and can be started all the same.
  return std::string_view(path.data()).ends_with(" (deleted)") ? kSelf : path.data();
}

ConfigSources process_sources(SettingValues flags, const std::string& file) {
  ConfigSources sources;
  sources.flags = std::move(flags);
  sources.environment = environment;
  if (!file.empty()) sources.file = file;
  return sources;
}

}  // namespace sluice
