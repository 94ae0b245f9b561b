#include <csignal>
#include <malloc.h>

#include "cli/program.hpp"

namespace {

/// From this size on, a block of memory goes back to the system when it is freed. glibc would raise
/// the limit with each such block, so that one long message would stay resident for good.
constexpr int kReturnedBlock = 512 << 10;

}  // namespace

int main(int argc, char** argv) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kReturnedBlock);
#endif
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(2)
  return sluice::run_program(argc, argv);
}
