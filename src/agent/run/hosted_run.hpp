#pragma once

#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "agent/events/run_events.hpp"
#include "agent/run/agent_run.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"

namespace sluice {

/// A run on a loop that another thread turns: its functions may be called on any thread but the
/// loop's, for whose turn those with a result wait. Its events are taken with events(). Destroying
/// it cancels the run.
class HostedRun {
 public:
  /// `loop`, `engine` and `tools` outlive the run.
  HostedRun(Executor& loop, Engine& engine, ToolHost& tools, const AgentRunOptions& options,
            const RunEventsOptions& events);
  ~HostedRun();
  HostedRun(const HostedRun&) = delete;
  HostedRun& operator=(const HostedRun&) = delete;

  [[nodiscard]] RunEvents& events() { return events_; }

  // As those of AgentRun.

  void start(std::string input);
  Result<std::string> inject(RunInput input);
  Result<void> cancel_call(std::string_view call_id);
  Result<void> approve(std::string_view call_id);
  Result<void> reject(std::string_view call_id, std::string_view reason = {});
  void cancel_turn();
  void cancel();

 private:
  /// Does `work` on the loop and returns what it returns.
  template <class Work>
  auto on_loop(Work work) {
    using Value = std::invoke_result_t<Work&>;
    std::promise<Value> promise;
    auto future = promise.get_future();
    loop_->post([&promise, &work] {
      if constexpr (std::is_void_v<Value>) {
        work();
        promise.set_value();
      } else {
        promise.set_value(work());
      }
    });
    return future.get();
  }

  Executor* loop_;
  RunEvents events_;
  std::shared_ptr<AgentRun> run_;  // is touched on the loop alone
};

}  // namespace sluice
