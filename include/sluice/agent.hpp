#pragma once

// An agent: a model that uses tools, and sees what they write while they run.
//
//   sluice::Agent agent(sluice::remote_model({.url = "http://127.0.0.1:8080/v1"}),
//                       {.instructions = "Use the tools.",
//                        .servers = {{"notes", sluice::connect("http://127.0.0.1:8090/mcp")}},
//                        .policy = {.when = sluice::ReactionPolicy::When::debounce}});
//   sluice::Run run = agent.run("What is due today?");
//   while (auto event = run.next()) std::cout << run.to_object(*event) << "\n";
//
// The events of a run are one ordered stream: what the model says, what its tools write, and what
// the agent decides (sluice/agent_event.hpp). Functions that wait block the calling thread. A
// handler of a server must not do that: there, `co_await run.next(loop)` waits without a thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/agent_event.hpp"
#include "sluice/agent_input.hpp"
#include "sluice/agent_options.hpp"
#include "sluice/json.hpp"
#include "sluice/model.hpp"
#include "sluice/request_loop.hpp"
#include "sluice/task.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

namespace detail {
class AgentState;
class RunState;
}  // namespace detail

/// How a run has ended.
struct RunResult {
  std::string status = {};  // "completed", "incomplete", "cancelled" or "failed"
  std::string reason = {};  // why, if it is not completed; may be empty
  std::string text = {};    // the last answer of the model
  /// input_tokens, cached_tokens, output_tokens, turns, reactions; cost, if there are prices.
  json::object usage = {};

  bool is_completed() const { return status == "completed"; }
};

/// What Run::step() has found.
struct RunStep {
  enum class State : std::uint8_t {
    event,  // the next event
    idle,   // there was none until the deadline
    done,   // the last one was taken before
  };
  State state = State::idle;
  std::optional<AgentEvent> event = {};  // if there is one
};

/// A run of an agent. Destroying it cancels it, with its calls and the model's answer; calls that
/// Agent::resume() can take up again go on, if the run is in a store or they are in a snapshot of
/// it. Thread-safe, but only one thread or coroutine at a time may take events: another one gets
/// std::logic_error. Must not be destroyed within a callback of a client, but for the function of
/// on_next(). Within such callbacks, which are on the thread of all clients, only poll(),
/// on_next(), cancel_turn(), cancel(), id(), is_over() and to_object() may be called. The other
/// functions wait for that thread, so they throw std::logic_error there. A program that is told of
/// a question in a callback answers it on another thread.
///
/// Events that nobody takes hold up what makes them, as AgentOptions::events says.
class [[nodiscard]] Run {
 public:
  explicit Run(std::shared_ptr<detail::RunState> state);
  ~Run();
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;

  /// Names the run in its events, and in the store.
  const std::string& id() const;
  /// What Agent::resume() needs to go on with the run as it is now, behind the events that were
  /// taken. It is secret: besides the conversation, it may have ids of sessions with servers, and
  /// whoever has these can act as this client. In it, `calls` are those that
  /// the model has not been shown the end of. Their `state` says what is known of them:
  /// "unapproved" or "waiting" (never begun), "begun" (with effects, it is not known after a crash
  /// whether these happened), "unkept" (it has ended, but the store does not have that yet) or
  /// "ended".
  json::object snapshot() const;

  /// Waits for the next event. Nothing: the last one was taken.
  std::optional<AgentEvent> next();
  /// The next event, if it is there. Never waits.
  std::optional<AgentEvent> poll();
  /// Waits for the next event until the deadline, and takes at most one.
  RunStep step(std::chrono::steady_clock::time_point deadline);
  /// The same for a program with a loop of its own: `told` is called once, when next() would return
  /// at once: in this call, or later on the thread of all clients, which it must not hold up. There
  /// it may take what poll() has, cancel the run and destroy it; what waits for the run throws
  /// std::logic_error. What it throws is logged.
  void on_next(std::function<void()> told);
  /// next() for a coroutine of a handler or a middleware. The run must outlive the wait.
  Task<std::optional<AgentEvent>> next(RequestLoop& loop);
  /// Takes what events there are until the end, and returns how the run has ended.
  RunResult result();
  /// Whether the last event was taken.
  bool is_over() const;
  /// The event as it is sent and recorded (docs/events.md).
  json::object to_object(const AgentEvent& event) const;

  /// Gives the model another input. Returns the id that the event input_delivered has.
  /// Throws Error: kBusy if AgentOptions::max_inputs wait; -32602 if the run is over, or for the
  /// input as Agent::run().
  std::string inject(AgentInput input, RunInput::When when = RunInput::When::asap);
  /// Ends a call; the model is told. Throws Error -32602 if none of this id runs.
  void cancel_call(std::string_view call_id);
  /// Breaks the answer off that is being given, takes a hand-off back that waits, and cancels all
  /// calls. Inputs that wait go on; if there are none, the run is over. Within a callback of a
  /// client, soon.
  void cancel_turn();
  /// Ends the run. Within a callback of a client, soon.
  void cancel();
  /// From now on the model is shown what this call writes by another policy than its tool's, also
  /// if the run is handed over. What waits to be shown counts; a pattern is looked for in what is
  /// written afterwards. It is not kept: after Agent::resume() the tool's counts again. Throws
  /// Error -32602 if no call of this id runs or waits, or if the policy makes no sense.
  void set_policy(std::string_view call_id, ReactionPolicy policy);
  /// Lets a call go on that waits for approval. Throws Error -32602 if none of this id does.
  void approve(std::string_view call_id);
  /// The same, but the call is not made. The model is told `reason`.
  void reject(std::string_view call_id, std::string_view reason = {});

 private:
  std::shared_ptr<detail::RunState> state_;
};

/// A model with tools. Copies are handles of the same agent, which lives as long as they and its
/// runs. Any number of runs may be under way. Thread-safe.
class Agent {
 public:
  /// Asks the servers for their tools. Throws Error: what Client::tools() throws, with the server's
  /// label; -32602 if a policy makes no sense, it or a grace names a tool that there is not, no
  /// call may run, a price or the budget of cost is no amount, or there is no price for the budget.
  explicit Agent(Model model, AgentOptions options = {});

  /// The tools, as the model knows them.
  const std::vector<AgentTool>& tools() const;
  /// Lets the model of this agent hand conversations over to `other`, by a tool. From then on the
  /// run is the other's: its model, instructions, tools, policies, guardrails and rules of approval
  /// count; the budgets remain, and the limits of calls, inputs, answers and times. What the
  /// other's model costs is by its own prices. Agents may hand over to each other, and each needs a
  /// name of its own: a run that has had an agent is not handed over to another one of its name.
  /// Runs are offered it that begin, or come to this agent, afterwards. Neither agent keeps the
  /// other: once the last handle and run of `other` are gone, the tool says so. Throws Error -32602
  /// if the tool's name is that of another tool, or the name of `other` that of this agent or of
  /// another one that this hands over to.
  void add_handoff(const Agent& other, HandoffOptions options = {}) const;

  /// Begins a run. Empty `id`: it gets one. With an id that the store has, it fails. `parent`: the
  /// trace that the run belongs to, such as Call::trace(), which its calls pass on; null: none.
  /// Throws Error -32602 if the input is empty, or has images and the model is shown none
  /// (AgentOptions::max_images).
  Run run(AgentInput input, std::string id = {}, const TraceContext* parent = nullptr) const;

  /// Goes on with a run that ended or broke off, also in another process, with the instructions and
  /// tools that this agent has; if it was handed over, those of the agent of that name that can be
  /// reached by hand-offs from here, as can those whose calls have not ended. Calls of an agent
  /// that is not reached are not made any more. An input is the user's next, and has budgets of its
  /// own. Without one, a run that had ended ends at once as it had ended. The events begin anew,
  /// and an answer that was being given is asked for again. Of the calls that had begun,
  /// - tasks are taken up again by their id;
  /// - those over Streamable HTTP before 2026-07-28 are taken up in their session, if their server
  ///   still has what followed the output that was taken when the run was kept or gave its
  ///   snapshot. Chunks have the numbers that they had;
  /// - others of tools that only read are made again;
  /// - others are not: the model is told that they have failed if their tools may be called again
  ///   (AgentTool::is_idempotent), and else that their end is not known.
  /// Each call belongs to its server (AgentServer::identity): where that is not, or has not the
  /// tool, its end is not known, or it is not made. Calls that are still to be made, and those that
  /// are made again, pass the guardrails of the agent that has made them, as it is now, and wait
  /// for approval if it demands that, even if they were approved before. Throws Error: 404 if the
  /// store has no such run, -32602 if what is kept is broken, or for the input as run().
  Run resume(const std::string& id, std::optional<AgentInput> input = {},
             const TraceContext* parent = nullptr) const;
  /// The same with what Run::snapshot() was. The run has a new id.
  Run resume(const json::object& snapshot, std::optional<AgentInput> input = {},
             const TraceContext* parent = nullptr) const;

 private:
  std::shared_ptr<detail::AgentState> state_;
};

}  // namespace sluice
