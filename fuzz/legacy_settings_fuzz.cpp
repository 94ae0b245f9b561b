// The settings file of an earlier server. What is accepted is a configuration that `sluice serve`
// reads as the same, and its notes are one line each.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/import/legacy_settings.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/serve_settings.hpp"
#include "core/text/utf8.hpp"
#include "require.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<ImportedSettings> imported = import_legacy_settings(text, "settings.json");
  if (!imported) {
    require(imported.error().code == kExitUsage);
    require(imported.error().message.starts_with("settings.json:"));
    return 0;
  }
  for (const std::string& note : imported->notes) {
    require(note.starts_with("settings.json: ") && !note.contains('\n') && is_valid_utf8(note));
  }
  require(check_together(imported->loaded.config).has_value());
  const Result<FileValues> printed =
      parse_config_text(print_settings(imported->loaded), "sluice.toml");
  require(printed.has_value());
  ServeConfig read;
  for (const auto& [key, value] : *printed) {
    const Setting* const setting = find_setting(key);
    require(setting != nullptr && setting->store(read, value.values));
    require(setting->show(read) == setting->show(imported->loaded.config));
  }
  return 0;
}
