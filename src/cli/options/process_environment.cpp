#include "cli/options/process_environment.hpp"

#include <cstdlib>
#include <utility>

namespace sluice {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

ConfigSources process_sources(SettingValues flags, const std::string& file) {
  ConfigSources sources;
  sources.flags = std::move(flags);
  sources.environment = environment;
  if (!file.empty()) sources.file = file;
  return sources;
}

}  // namespace sluice
