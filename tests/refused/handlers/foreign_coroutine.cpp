// expect: only a sluice::Task or Stream can co_await what Sluice returns
#include <coroutine>
#include <exception>

#include <sluice/server.hpp>

struct Foreign {
  struct promise_type {
    Foreign get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
    void return_void() {}
  };
};
Foreign wait_in(sluice::Call& call) {
  co_await call.sleep(std::chrono::seconds(1));
}
