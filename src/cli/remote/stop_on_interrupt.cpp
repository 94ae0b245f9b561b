#include "cli/remote/stop_on_interrupt.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace sluice {

StopOnInterrupt::StopOnInterrupt() : over_(::eventfd(0, EFD_CLOEXEC)) {
  if (!over_) throw std::system_error(errno, std::generic_category(), "eventfd");
  waiter_ = std::thread([this] {
    std::array<pollfd, 2> waits{{{over_.get(), POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}}};
    while (::poll(waits.data(), waits.size(), -1) < 0) {
      // A signal came; the next round sees what it meant.
    }
    if (waits[1].revents != 0) source_.request_stop();
  });
}

StopOnInterrupt::~StopOnInterrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(over_.get(), &one, sizeof one);
  waiter_.join();
}

}  // namespace sluice
