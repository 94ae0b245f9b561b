#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// A value of a configuration file, and its position in the file.
struct FileValue {
  std::vector<std::string> values;  // one, unless it is an array
  bool is_list = false;
  std::string origin;  // "sluice.toml:12"
};

/// The values by dotted key, such as "streams.expiry".
using FileValues = std::map<std::string, FileValue, std::less<>>;

/// Parses a TOML text. It may hold strings, numbers, booleans and arrays of them, in at most one
/// level of tables. `name` is the file's name in origins and errors. Errors carry kExitUsage.
Result<FileValues> parse_config_text(std::string_view text, std::string_view name);

/// Parses a TOML text of any shape as a JSON value; dates and times become strings. Errors are as
/// those of parse_config_text(), also for a text that is nested in more than kMaxJsonDepth levels.
Result<json::value> parse_toml_as_json(std::string_view text, std::string_view name);

/// Reads and parses a TOML file of at most 1 MiB, as parse_config_text() does.
Result<FileValues> read_config_file(const std::string& path);

/// The unchanged contents of a file of at most `limit` bytes. Errors name the file and the reason.
Result<std::string> read_small_file(const std::string& path, std::size_t limit);

/// Refuses a file that cannot be read at any time without waiting, such as a pipe. A file that is
/// not there is no error. Errors name the file and carry kExitUsage.
Result<void> check_regular_file(const std::string& path);

}  // namespace sluice
