#include "awake.hpp"

#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <stop_token>
#include <unistd.h>

namespace sluice::bench {

AwakeProcessors::AwakeProcessors() {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  for (long each = 0; each < count; ++each) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<int>(each), &only);
    const sched_param none{};
    const pthread_t thread = threads_
                                 .emplace_back([](const std::stop_token& stop) {
                                   while (!stop.stop_requested()) {
                                   }
                                 })
                                 .native_handle();
    if (pthread_setschedparam(thread, SCHED_IDLE, &none) != 0 ||
        pthread_setaffinity_np(thread, sizeof only, &only) != 0) {
      throw std::runtime_error("--keep-awake: the system refuses a thread of idle priority");
    }
  }
}

}  // namespace sluice::bench
