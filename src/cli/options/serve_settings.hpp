#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/serve_config.hpp"

namespace sluice {

/// One setting of the server. Every source and every printout is generated from it.
struct Setting {
  enum class Kind : std::uint8_t { number, text, list, flag };

  std::string_view key;    // in the file: "section.name", or "name" before all sections
  std::string_view flag;   // "--name"; the environment variable is SLUICE_NAME
  std::string operand;     // the placeholder for the value in the help; a flag has none
  std::string_view help;   // without the full stop at the end
  std::string allowed;     // what is allowed; completes "give ..." in errors
  Kind kind = Kind::text;  // how the value is written in the file
  bool secret = false;     // the value is never shown
  /// Whether the value is used; if not, print_config() leaves it out. Null: always.
  std::function<bool(const ServeConfig&)> is_used;
  /// Stores `values`, which holds one value unless `kind` is list. Returns false if they are not
  /// allowed.
  std::function<bool(ServeConfig&, const std::vector<std::string>& values)> store;
  /// The current values in the form that `store` accepts. Empty for a text that is not set.
  std::function<std::vector<std::string>(const ServeConfig&)> show;
};

/// All settings, grouped by section, in the order of the help.
std::span<const Setting> serve_settings();

const Setting* find_setting(std::string_view key);

/// "SLUICE_MAX_BODY" for "--max-body".
std::string environment_name(const Setting& setting);

/// The part of the key before the dot, or "".
std::string_view section_of(const Setting& setting);

/// Parses NAME=KEY. Returns nothing unless the name has 1 to 64 characters of [A-Za-z0-9_.-] and
/// the key has 16 to 256 visible ASCII characters, none of them a comma.
std::optional<ApiKey> parse_api_key(std::string_view text);

}  // namespace sluice
