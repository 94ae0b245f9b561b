#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace sluice::bench {

/// A server started by the load, which reads its messages from a pipe and writes to another.
/// Standard error is shared. Ended with SIGTERM and awaited by the destructor.
class Child {
 public:
  /// Throws std::runtime_error if the program cannot be started.
  explicit Child(const std::vector<std::string>& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The ends of its pipes that are ours; whoever takes them closes them.
  [[nodiscard]] int output() const { return output_; }
  [[nodiscard]] int input() const { return input_; }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  int input_ = -1;
};

}  // namespace sluice::bench
