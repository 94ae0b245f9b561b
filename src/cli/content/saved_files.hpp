#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// The ending of the names of files of a MIME type (RFC 6838), such as "png"; "bin" if it is not
/// known. The server chooses among known endings only.
std::string_view file_ending(std::string_view mime_type);

/// Writes `bytes` to a new file. Returns false, and writes nothing, if there is something at `path`
/// already. Errors carry kExitFailure and name the file.
Result<bool> save_if_new(const std::string& path, std::string_view bytes);

/// Writes `bytes` to a new file in `folder`: KIND.ENDING, or KIND-1.ENDING and so on, where no file
/// is yet. Returns its path. Errors carry kExitFailure and name the file.
Result<std::string> save_new_file(const std::string& folder, std::string_view kind,
                                  std::string_view mime_type, std::string_view bytes);
inline constexpr int kMaxSameName = 1000;

}  // namespace sluice
