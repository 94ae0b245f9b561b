#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "engine/model_change.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// The folder that callers may name files of. Paths are relative to it and do not leave it, neither
/// by ".." nor by links. Errors repeat what the caller has written, never where the folder is.
/// Thread-safe.
class ModelFolder {
 public:
  /// Error 404: there is no such folder, or it cannot be read.
  static Result<ModelFolder> open(const std::string& path);

  /// Opens a regular file for reading; waits for nothing. `what` is what errors call the path.
  /// Error -32602: there is no such file, it is another thing than a file, or it leads elsewhere.
  [[nodiscard]] Result<NamedFile> find(std::string_view what, const std::string& path) const;
  /// The path of a file that there is not yet, in a folder that there is. Errors as above, and if
  /// there is one.
  [[nodiscard]] Result<std::string> place_for(std::string_view what, const std::string& path) const;

 private:
  explicit ModelFolder(Descriptor folder) : folder_(std::move(folder)) {}

  Descriptor folder_;
};

}  // namespace sluice
