#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/serve_config.hpp"
#include "core/error.hpp"

namespace sluice {

/// The settings file of NANO, an earlier server of RKLLM models, in our terms.
struct ImportedSettings {
  LoadedConfig loaded;             // the origins name the settings in the file
  std::vector<std::string> notes;  // of each setting without a meaning here, and why
};

/// The most bytes of a settings file. NANO reads no more either.
inline constexpr std::size_t kMaxLegacySettings = std::size_t{1} << 20U;

/// Reads settings as JSON, with comments, as NANO reads them. What the file leaves out keeps our
/// default, but for the ports of transports that it turns on, which are NANO's. `null` leaves a
/// setting out. Errors carry kExitUsage, begin with `name`, and name the line or the setting, and
/// what is allowed there: for what is not JSON, too large, of the wrong type or unknown, or what
/// does not fit together.
Result<ImportedSettings> import_legacy_settings(std::string_view text, std::string_view name);

}  // namespace sluice
