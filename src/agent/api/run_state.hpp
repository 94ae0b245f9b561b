#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "agent/api/agent_state.hpp"
#include "agent/events/run_events.hpp"
#include "agent/run/agent_run.hpp"
#include "agent/spans/run_spans.hpp"

namespace sluice::detail {

/// A run on the loop of all clients. Destroying it cancels the run. Thread-safe; functions that
/// wait for the loop's turn throw std::logic_error on the loop's thread.
class RunState {
 public:
  /// What a run begins with.
  struct Begin {
    std::string id = {};  // empty: a new one
    std::optional<AgentInput> input = {};
    std::optional<json::object> state = {};  // that it goes on with
    std::uint64_t version = 0;               // of what the store has
    TraceContext parent = {};
  };
  /// Throws Error -32602, if the state is broken or the run does not take the input.
  RunState(std::shared_ptr<AgentState> agent, Begin begin);
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] RunEvents& events() { return events_; }
  /// As those of RunEvents.
  std::optional<AgentEvent> poll();
  std::optional<AgentEvent> wait(Duration patience);
  /// `told` is called in a turn of its own if it is called later, and may throw then.
  void on_next(std::function<void()> told, const void* waiter);
  /// How the run has ended, once its last event was taken.
  [[nodiscard]] RunResult result() const;

  // As those of AgentRun, whose errors they throw.

  json::object snapshot();
  std::string inject(RunInput input);
  void cancel_call(std::string_view call_id);
  // On the loop's thread, these happen in a later turn.
  void cancel_turn() { tell(&AgentRun::cancel_turn); }
  void cancel() { tell(&AgentRun::cancel); }
  void set_policy(std::string_view call_id, ReactionPolicy policy);
  void approve(std::string_view call_id);
  void reject(std::string_view call_id, std::string_view reason);

 private:
  /// Does `work` on the loop and returns what it returns.
  template <class Work>
  auto on_loop(Work work) {
    using Value = std::invoke_result_t<Work&>;
    require_other_thread();
    std::promise<Value> promise;
    auto future = promise.get_future();
    agent_->background->loop().post([&promise, &work] {
      if constexpr (std::is_void_v<Value>) {
        work();
        promise.set_value();
      } else {
        promise.set_value(work());
      }
    });
    return future.get();
  }
  void tell(void (AgentRun::*what)());
  void require_other_thread() const;

  class Keeper;

  std::shared_ptr<AgentState> agent_;
  const std::string id_;
  RunEvents events_;
  std::unique_ptr<Keeper> keeper_;   // null: it is not kept
  std::unique_ptr<RunSpans> spans_;  // null: there is no trace
  std::shared_ptr<AgentRun> run_;    // is touched on the loop alone, as `spans_` is
  /// Whether this exists, for what is to be told on the loop.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace sluice::detail
