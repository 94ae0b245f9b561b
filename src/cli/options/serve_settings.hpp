#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/serve_config.hpp"

namespace sluice {

/// One setting of the server, as every source and every print-out knows it.
struct Setting {
  enum class Kind : std::uint8_t { number, text, list, flag };

  std::string_view key;      // in the file: "section.name", or "name" above all sections
  std::string_view flag;     // "--name"; the variable is SLUICE_NAME
  std::string_view operand;  // what stands for the value in the help; a flag has none
  std::string_view help;     // a sentence without its full stop
  std::string allowed;       // completes "give ..."
  Kind kind = Kind::text;    // how the file writes it
  bool secret = false;       // never shown
  /// Stores `values` (one, unless kind is list); false if they are not allowed.
  std::function<bool(ServeConfig&, const std::vector<std::string>& values)> store;
  /// The values as `store` would take them; empty for a text that is not set.
  std::function<std::vector<std::string>(const ServeConfig&)> show;
};

/// All of them, grouped by section, in the order of the help.
std::span<const Setting> serve_settings();

const Setting* find_setting(std::string_view key);

/// "SLUICE_MAX_BODY" for "--max-body".
std::string environment_name(const Setting& setting);

/// The part of the key before the dot, or "".
std::string_view section_of(const Setting& setting);

/// NAME=KEY as an ApiKey; nothing if the name is not 1-64 of [A-Za-z0-9_.-] or the key not 16-256
/// visible ASCII characters without a comma.
std::optional<ApiKey> parse_api_key(std::string_view text);

}  // namespace sluice
