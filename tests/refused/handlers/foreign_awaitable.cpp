// expect: to wait for another library's completion, use call.callback<T>()
#include <coroutine>

#include <sluice/server.hpp>

struct Event {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> awaiter) { waiting = awaiter; }
  void await_resume() const {}
  std::coroutine_handle<> waiting;
};
sluice::Task<int> wait_for(Event& event) {
  co_await event;
  co_return 1;
}
