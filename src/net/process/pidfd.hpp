#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "net/loop/descriptor.hpp"

namespace sluice {

/// A descriptor of a process, which stays that of this process when its id is another's
/// (pidfd_open(2)). It is readable once the process has ended. Invalid if there is no such process,
/// or the kernel is older than Linux 5.3.
inline Descriptor open_pidfd(pid_t process) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

}  // namespace sluice
