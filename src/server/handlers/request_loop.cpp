// sluice/request_loop.hpp.

#include "sluice/request_loop.hpp"

#include <stdexcept>

#include "rpc/error_codes.hpp"

namespace sluice {

std::exception_ptr detail::dropped_resolver() noexcept {
  return std::make_exception_ptr(
      Error{kInternalError, "What the handler waited for was dropped without an answer", {}});
}

std::exception_ptr detail::null_failure() noexcept {
  return std::make_exception_ptr(
      std::logic_error("what a handler waits for was failed with a null exception_ptr"));
}
void detail::refuse_second_wait() {
  throw std::logic_error("two coroutines wait for the same value; await it in one of them");
}

Awaiting<void> RequestLoop::sleep(std::chrono::nanoseconds duration) {
  const auto arrival = std::make_shared<Awaiting<void>::Arrival>(*loop_);
  const std::uint64_t timer = loop_->after(duration, [arrival] { arrival->succeed({}); });
  arrival->set_withdraw([weak = loop_->weak(), timer] {
    if (const auto loop = weak.lock()) loop->cancel(timer);
  });
  return Awaiting<void>(arrival);
}

}  // namespace sluice
