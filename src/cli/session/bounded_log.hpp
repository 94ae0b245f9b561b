#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// Makes a file of what this process, and those that it starts, write to standard error. The file
/// begins anew when it is full, so it never has more than kMaxLog bytes. A thread writes it.
class BoundedLog {
 public:
  /// Begins at once. Errors carry kExitFailure and name the file.
  static Result<std::unique_ptr<BoundedLog>> open(const std::string& path);
  /// What is written afterwards is dropped.
  ~BoundedLog();
  BoundedLog(const BoundedLog&) = delete;
  BoundedLog& operator=(const BoundedLog&) = delete;

  static constexpr std::size_t kMaxLog = std::size_t{1} << 20U;

 private:
  BoundedLog(Descriptor file, Descriptor input, Descriptor over);
  void run();
  /// Copies once. Returns false if nothing is there.
  bool copy();

  Descriptor file_;
  Descriptor input_;  // the end of a pipe that is read; non-blocking
  Descriptor over_;   // readable at the end
  std::size_t size_ = 0;
  std::thread thread_;
};

}  // namespace sluice
