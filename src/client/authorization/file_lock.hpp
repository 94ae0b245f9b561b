#pragma once

#include <functional>
#include <string>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// Makes the folder of `path` and those above it, if they are missing, for their owner alone (XDG
/// Base Directory Specification). Opening the file shows what is wrong.
void make_private_folder(const std::string& path);

/// A lock that one holder has at a time, among the threads of all processes: flock(2) on a file,
/// which the kernel releases if its process dies. The file stays, because another could be waiting
/// for it.
class FileLock {
 public:
  /// Holds nothing, and keeps nobody out: for what is not shared.
  FileLock() = default;

  using Done = std::function<void(Result<FileLock>)>;
  /// Asks for the lock on `path` again and again until `patience` has passed. `done` is called
  /// once, never from within this function; not at all if the loop ends. `path` empty: holds
  /// nothing. Errors: 504, somebody else held it all the time; 500, the system refuses.
  static void acquire(Executor& loop, std::string path, Duration patience, Done done);

 private:
  class Wait;
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
};

}  // namespace sluice
