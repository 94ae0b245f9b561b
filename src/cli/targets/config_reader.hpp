#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace sluice {

/// A configuration file as it is on the disk.
struct ReadConfig {
  std::string text;
  /// Why a program that the file names must not be started: somebody else may have written it.
  /// Empty if only this user and root can change the file.
  std::string distrust = {};
};

/// The most bytes of a configuration file. Claude Code keeps much else in its file.
inline constexpr std::size_t kMaxConfigFile = std::size_t{16} << 20U;

/// Reads a regular file. Nothing if there is none. `distrust` is set if the file, a folder above it
/// or what a symbolic link on its path leads to
///
/// - belongs to somebody else than this user and root, or
/// - can be written by others: by anybody, or by a group that is not the user's own (a group of the
///   user's name without other members). A folder with the sticky bit, such as /tmp, is no reason,
///   because nobody can replace what is another's in it.
///
/// Errors carry kExitUsage and name the file and the reason. Opening never waits.
Result<std::optional<ReadConfig>> read_config(const std::string& path,
                                              std::size_t limit = kMaxConfigFile);

}  // namespace sluice
