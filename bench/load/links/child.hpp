#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace sluice::bench {

/// A server process that the load generator starts. It reads messages from one pipe and writes to
/// another, and shares standard error. The destructor ends it with SIGTERM and waits for it.
class Child {
 public:
  /// Throws std::runtime_error if the program cannot be started.
  explicit Child(const std::vector<std::string>& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// This side's ends of the pipes. The one who takes them must close them.
  [[nodiscard]] int output() const { return output_; }
  [[nodiscard]] int input() const { return input_; }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  int input_ = -1;
};

}  // namespace sluice::bench
