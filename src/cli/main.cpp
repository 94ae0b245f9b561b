#include <csignal>

#include "cli/program.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(2)
  return sluice::run_program(argc, argv);
}
