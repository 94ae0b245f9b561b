#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace sluice {

/// A value of a configuration file and where it stands.
struct FileValue {
  std::vector<std::string> values;  // one, unless it is an array
  bool is_list = false;
  std::string origin;  // "sluice.toml:12"
};

/// By dotted key: "streams.expiry".
using FileValues = std::map<std::string, FileValue, std::less<>>;

/// Reads a TOML text: strings, numbers, booleans and arrays of them, in at most one level of
/// tables. `name` is the file's name in origins and errors (code kExitUsage).
Result<FileValues> parse_config_text(std::string_view text, std::string_view name);

/// The same for a file of at most 1 MiB.
Result<FileValues> read_config_file(const std::string& path);

/// The whole of a file of at most `limit` bytes, as it is. Errors name the file and the reason.
Result<std::string> read_small_file(const std::string& path, std::size_t limit);

}  // namespace sluice
