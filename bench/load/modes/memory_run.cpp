#include "modes/memory_run.hpp"

#include <stdexcept>
#include <string>
#include <unistd.h>

namespace sluice::bench {
namespace {

constexpr std::int64_t kOpenDeadlineNs = 60'000'000'000;

int server_of(const Options& options) {
  if (options.server_pid == 0) throw std::runtime_error(options.mode + ": give --server-pid");
  return options.server_pid;
}

}  // namespace

MemoryRun::MemoryRun(const Options& options)
    : options_(options),
      loop_(options),
      tally_(std::make_unique<Tally>()),
      memory_{.before = memory_of(server_of(options)), .after = {}},
      begin_(cpu_times(options.server_pid)),
      started_(now_ns()) {}

void MemoryRun::open() {
  while (tally_->units < options_.connections && !loop_.stopped() &&
         now_ns() < started_ + kOpenDeadlineNs) {
    loop_.run_until(now_ns() + 10'000'000);
  }
}

std::uint64_t MemoryRun::finish() {
  if (tally_->units != options_.connections) {
    tally_->error(std::to_string(tally_->units) + " were opened");
  }
  loop_.run_until(now_ns() + options_.settle_ms * 1'000'000);
  memory_.after = memory_of(options_.server_pid);
  print_report(options_, *tally_, static_cast<double>(now_ns() - started_) / 1e9, begin_,
               cpu_times(options_.server_pid), &memory_);
  if (options_.hold) {
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
  }
  return tally_->errors;
}

}  // namespace sluice::bench
