#include <csignal>
#include <fcntl.h>
#include <initializer_list>
#include <malloc.h>
#include <unistd.h>

#include "cli/program.hpp"

namespace {

/// From this size on, a block of memory goes back to the system when it is freed. glibc would raise
/// the limit with each such block, so that one long message would stay resident for good.
constexpr int kReturnedBlock = 512 << 10;

/// Keeps the numbers of standard streams that are closed from whatever is opened next: a log line
/// would go into a connection. What is there instead can no more be read, or written to, than what
/// is closed.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int taken =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kReturnedBlock);
#endif
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(2)
  return sluice::run_program(argc, argv);
}
