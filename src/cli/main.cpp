#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "cli/program.hpp"

namespace {

/// Memory blocks of at least this size are returned to the system when they are freed. Without
/// this, glibc raises the threshold with each such block, and the memory of one long message would
/// stay resident for good.
constexpr int kReturnedBlock = 512 << 10;

/// Occupies the descriptors of standard streams that are closed. Otherwise the next file or
/// connection opened would get such a number, and log lines would be written into it. The
/// replacement fails to be read or written just like a closed stream.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int taken =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// SIGHUP makes a server reload. Until the server takes it, it must not end the program.
void hold_hangups() {
  sigset_t held{};
  sigemptyset(&held);
  sigaddset(&held, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "serve") == 0) hold_hangups();
  occupy_closed_streams();
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kReturnedBlock);
#endif
  std::signal(SIGCHLD, SIG_DFL);  // whoever started this may have ignored it
  std::signal(SIGPIPE, SIG_IGN);  // write(2) reports a reader that is gone as an error
  std::signal(SIGXFSZ, SIG_IGN);  // so does it report a file that may not grow
  return sluice::run_program(argc, argv);
}
