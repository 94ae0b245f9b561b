#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct ChildCommand {
  /// The program, which is searched for in PATH if it has no slash, and its arguments. It is taken
  /// from `directory` if it is relative, and so are the entries of PATH.
  std::vector<std::string> arguments;
  /// Variables besides those of this process, or in place of them.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string directory = {};    // where it runs; empty: where this process does
  bool discards_errors = false;  // what it writes to standard error; else that goes to ours
  /// Open files that it has besides, as its descriptors from kFirstGiven on.
  std::vector<int> descriptors = {};

  static constexpr int kFirstGiven = 3;
};

/// How long the end of a child may take.
struct ChildDeadlines {
  Duration after_input = std::chrono::seconds(2);  // from the end of its input to SIGTERM
  Duration after_term = std::chrono::seconds(2);   // from SIGTERM to SIGKILL
};

struct ExitStatus {
  int code = 0;
  int signal = 0;              // 0: it has ended by itself, with `code`
  bool was_signalled = false;  // it did not end in time, and stop() sent it a signal

  /// As "it has ended with code 3" or "it was ended by SIGKILL".
  [[nodiscard]] std::string describe() const;
};

/// A process that this one has started, and what that starts in turn. It is the leader of a session
/// and its process group, and has no terminal: what it would ask there, it cannot. When it has
/// ended, whatever is left of the group is killed, and so is what has left the group but still has
/// its environment. If this process is killed, the child finds the end of its input and gets
/// SIGTERM, but nobody ends what that has started. Belongs to the loop.
class ChildProcess {
 public:
  struct Started;

  /// The child's standard input and output are pipes. The error says what is wrong: with code 400
  /// that there is no such program or directory, else that the system refuses.
  static Result<Started> start(EventLoop& loop, const ChildCommand& command,
                               ChildDeadlines deadlines = {});

  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  /// As stop(), but nobody is told. If the loop goes first, the child is killed.
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const;
  /// Sets what is called when it has ended, or in the next turn of the loop if it has; it may
  /// destroy this object.
  void on_exit(std::function<void(ExitStatus)> task);
  /// Ends it: the caller closes its input now, SIGTERM and SIGKILL follow when the deadlines have
  /// passed. The group gets the signals.
  void stop();
  /// As stop(), and lets go of it: `task` is called without this object when it has ended.
  void finish(std::function<void(ExitStatus)> task) &&;

 private:
  class Running;
  explicit ChildProcess(std::shared_ptr<Running> running) : running_(std::move(running)) {}

  std::shared_ptr<Running> running_;  // null if moved from
};

struct ChildProcess::Started {
  ChildProcess process;
  Descriptor input;   // what is written here is its standard input; non-blocking
  Descriptor output;  // its standard output; non-blocking
};

}  // namespace sluice
