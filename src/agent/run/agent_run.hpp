#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/events/run_events.hpp"
#include "agent/history/run_history.hpp"
#include "agent/run/answer.hpp"
#include "agent/run/run_agent.hpp"
#include "agent/run/running_call.hpp"
#include "agent/spans/run_spans.hpp"
#include "agent/store/state_keeper.hpp"
#include "agent/tools/tool_host.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "engine/engine.hpp"
#include "sluice/agent_input.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// One run of an agent: a model that is asked, the tools that it calls, and what it makes of their
/// output while they run. A state machine over an Engine and a ToolHost. Belongs to its loop, on
/// which all functions must be called; its events may be taken on any thread. Destroying it cancels
/// all that it has begun, but for what restore() takes up again of a run that is kept or has given
/// a snapshot. Owned by shared pointers.
///
/// The model is asked when all calls of its last answer have ended; before, if a policy wants a
/// reaction or an input comes, and the calls are answered with placeholders then; and again when
/// such a call ends. The run is over when the model has answered and nothing runs any more.
class AgentRun final : public std::enable_shared_from_this<AgentRun>,
                       private RunningCall::Owner,
                       private Answer::Owner {
 public:
  /// `events` outlive the run.
  AgentRun(Executor& loop, RunEvents& events, RunAgent agent);
  ~AgentRun() override;
  AgentRun(const AgentRun&) = delete;
  AgentRun& operator=(const AgentRun&) = delete;

  /// Keeps the state of the run with `keeper`, which outlives it: before each call is made, so that
  /// none with effects is made again, and after whatever else changes it. A run whose state cannot
  /// be kept fails. Call before it begins.
  void keep_with(StateKeeper& keeper);
  /// Keeps the agents that this has been, or is to be, a run of.
  [[nodiscard]] std::vector<std::shared_ptr<const void>> agents() const;
  /// Sends the trace context of `spans`, which outlives the run and watches its events, with each
  /// call. Call before it begins.
  void trace_with(const RunSpans& spans) { spans_ = &spans; }
  /// Error -32602: the input is empty, or has images and the model is shown none. Call before
  /// start() and resume(), after restore().
  [[nodiscard]] Result<void> check_input(std::string_view text,
                                         const std::vector<ChatImage>& images) const;
  /// Begins. Call once, or resume().
  void start(AgentInput input);
  /// Takes over what state() was. Call before resume(). Error -32602: it is broken, and the run of
  /// no use.
  Result<void> restore(const json::object& state);
  /// Goes on with what was restored. Calls that had begun go on if they are tasks or have a
  /// position that their server still knows, are made again if they only read, and have the end of
  /// lost_end() otherwise. Calls whose server is not there are not made. An input has budgets of
  /// its own. Without one, a run that was over ends as it had ended.
  void resume(std::optional<AgentInput> input);
  /// All that is needed to go on later. The output of running tools is not part of it. Each call
  /// that the model has not been shown the end of has a `state`: "unapproved" or "waiting" (never
  /// begun), "begun" (whoever goes on does not know whether it was carried out), "unkept" (it has
  /// ended, and the keeper does not have that yet) or "ended".
  [[nodiscard]] json::object state() const;
  /// The same for somebody who may go on with it: the run's end leaves the calls to them that they
  /// can take up.
  json::object snapshot();
  /// Returns the id that input_delivered has. Errors: kBusy, if max_inputs wait; -32602, if the run
  /// is over or has not begun, and those of check_input().
  Result<std::string> inject(RunInput input);
  /// Ends a call; the model is told. Error -32602, if none of this id runs.
  Result<void> cancel_call(std::string_view call_id);
  /// Breaks the answer off that is being given, takes a hand-off back that waits, and cancels all
  /// calls. Inputs that wait go on; if there are none, or it is the last answer, the run is over.
  void cancel_turn();
  /// Ends the run.
  void cancel();
  /// Gives a call another policy than its tool's, also if the run is handed over. Error -32602, if
  /// none of this id has begun or waits, or the policy makes no sense.
  Result<void> set_policy(std::string_view call_id, ReactionPolicy policy);
  /// Lets a call go on that waits for approval. Error -32602, if none of this id does.
  Result<void> approve(std::string_view call_id);
  /// The same, but the call is not made. The model is told `reason`.
  Result<void> reject(std::string_view call_id, std::string_view reason = {});
  /// To be called when RunEvents::on_room() has told it.
  void on_room(const std::string& call_id);

  [[nodiscard]] bool is_over() const { return phase_ == Phase::over; }
  [[nodiscard]] const RunHistory& history() const { return history_; }
  [[nodiscard]] std::uint32_t turns() const { return turns_; }
  [[nodiscard]] std::uint32_t reactions() const { return reactions_; }
  [[nodiscard]] std::size_t running() const { return running_; }

 private:
  enum class Phase : std::uint8_t { created, running, closing, grace, over };
  /// An agent that has had the run, or has made a call that was kept.
  struct Reached {
    ToolHost* tools;
    // What calls of this agent must pass.
    ApprovalRule approval;
    Guardrails guardrails;
    std::function<std::vector<RunHandoff>()> handoffs;
    std::shared_ptr<const void> keeps;
  };
  /// A hand-off that is to come.
  struct PendingHandoff {
    RunAgent to;
    HandoffOptions::RunningCalls running_calls;
    std::string call_id;
  };
  struct Waiting {
    std::string id;
    RunInput input;
  };
  struct Ended {
    AgentEvent event;
    std::unique_ptr<ToolCall> task;  // null: it is none
  };
  /// Tokens of all answers, and what they cost.
  struct TokenSum {
    std::uint64_t prompt = 0;
    std::uint64_t cached = 0;
    std::uint64_t completion = 0;
    double cost = 0;
  };

  // RunningCall::Owner
  void on_output(RunningCall& call, ToolChunk chunk) override;
  void on_progress(RunningCall& call, double progress, std::optional<double> total,
                   std::string_view message) override;
  void on_task(RunningCall& call, std::string id) override;
  void on_position(RunningCall& call, std::string position) override;
  void on_end(RunningCall& call, ToolEnd end) override;
  // Answer::Owner
  bool on_delta(const Delta& delta) override;
  void on_complete(const Completion& completion) override;

  /// Becomes a run of this agent, but for what holds for the whole run.
  void adopt(RunAgent agent);
  void remember(RunAgent& agent);
  /// Whether this agent has the name of another one that was reached.
  [[nodiscard]] bool is_namesake(const RunAgent& agent) const;
  /// The agent of this name, if hand-offs lead to it from those that were reached, and to no other
  /// of this name.
  [[nodiscard]] std::optional<RunAgent> reachable_agent(std::string_view name) const;
  /// Whether a model's template demands that users and assistants alternate.
  [[nodiscard]] bool alternates() const;
  [[nodiscard]] RunHistoryOptions history_options() const;
  /// Says that the run has begun, and what tools there are.
  void begin();
  /// Says what the model is offered.
  void offer();
  [[nodiscard]] json::object state_with(std::string_view unkept) const;
  /// Where a call can be taken up that has not ended.
  [[nodiscard]] CallPosition position_of(const RunningCall& call) const;
  /// Tells of the first ended calls that they have ended.
  void tell_ended(std::size_t count);
  /// Begins to keep the state as it is now, or once that is kept which is being kept.
  void keep();
  /// `marked`: the calls that were kept as begun.
  void on_kept(const std::vector<std::shared_ptr<RunningCall>>& marked, const Result<void>& kept);
  /// `of`: the agent that had the run.
  Result<void> restore_call(const json::object& kept, std::string_view of);
  Result<void> restore_handoff(const json::object& kept);
  std::string add_input(RunInput input);
  /// Does in a later turn what is to be done.
  void later();
  /// Does a part of the run's work. What that throws ends the run, which nobody else would wake.
  template <class Work>
  void guard(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      end("failed", std::string("The run cannot go on: ") + error.what());
    }
  }
  void advance();
  /// Gives up what has taken too long.
  void expire(TimePoint now);
  /// Sees to it that advance() runs when the next thing is due.
  void arm();
  /// When a call that goes on in silence is given up; nothing if that is not watched here.
  [[nodiscard]] std::optional<TimePoint> silent_until(const RunningCall& call) const;
  /// When the last answer of a run with a limited time is broken off; nothing while it is not
  /// given, or is held up because nobody takes it.
  [[nodiscard]] std::optional<TimePoint> last_answer_until() const;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  [[nodiscard]] bool has_input(bool that_interrupts) const;
  /// Whether the model must be able to ask for what a call has written.
  [[nodiscard]] bool wants_control() const;
  /// Whether there may be another reaction.
  [[nodiscard]] bool can_react() const { return reactions_ < options_.budget.reactions; }
  [[nodiscard]] std::vector<RunningCall*> due_calls(bool is_idle) const;
  /// Shows the model the ends of calls, as far as that is possible now.
  void deliver_ends();
  /// `is_asked`: the model is asked anyhow. Returns whether one was delivered that wants that.
  bool deliver_inputs(bool is_asked);
  void deliver_outputs();
  void show_output(RunningCall& call);
  void ask();
  /// Says which budget is used up, if one is. A reaction is no turn.
  [[nodiscard]] std::string_view exhausted_budget(bool is_reaction) const;
  [[nodiscard]] bool is_time_over() const;
  [[nodiscard]] json::object usage() const;
  /// Tells of the calls whose output the answer has been shown.
  void write_reaction(AgentEventType type);
  void end_reaction();
  /// An answer was broken off that was not only to react: what it was to answer still counts.
  void owe_answer();
  /// Its server may take no images, or not these.
  void ask_without_images(const Answer& answer, const Error& why);
  /// The model for reactions has failed, perhaps after a text: the agent's own reacts from now on.
  void replace_reaction_model(const std::string& shown);
  /// The agent's own model reacts if there is no other, or that has failed.
  void choose_reaction_model();
  void break_off();
  /// Returns false if the model should pause.
  bool take_delta(const Delta& delta);
  void take_completion(const Completion& completion);
  /// Adds what the answer has used, and estimates first what its engine has not told.
  void count(Usage& used, const Answer& answer);
  /// Writes the end of an answer, and counts what it has used, which `completion` says then.
  void end_answer(Answer& answer, Completion& completion);
  /// The id that the call has in the run.
  std::string call_id_of(const Delta& delta);

  void take_calls(std::vector<ChatToolCall> asked);
  void take_call(const ChatToolCall& asked);
  void take_handoff(const ChatToolCall& asked, const RunHandoff& handoff);
  /// Hands the conversation over, if that is due. Returns whether it must be waited for.
  bool hand_over();
  void answer_call(const std::string& call_id, std::string_view text);
  [[nodiscard]] std::string status_of(std::string_view call_id) const;
  [[nodiscard]] const RunningCall* duplicate_of(const AgentTool& tool,
                                                const json::object& arguments) const;
  [[nodiscard]] ReactionPolicy policy_of(const std::string& name, const AgentTool& tool,
                                         const json::object& arguments) const;
  [[nodiscard]] Duration grace_of(std::string_view tool) const;
  /// The call that has this id and has not ended, or null.
  [[nodiscard]] RunningCall* open_call(std::string_view call_id) const;
  void start_waiting();
  void start_call(RunningCall& call);
  /// What the guardrails of the agent that makes a call make of its arguments.
  Result<json::object> checked_arguments(std::string_view agent, const AgentTool& tool,
                                         json::object arguments) const;
  /// The call waits for approval, if the agent that has made it demands that, or for its turn.
  void await_approval(RunningCall& call);
  /// The same for a call that was kept.
  void admit_again(RunningCall& call);
  void end_call(RunningCall& call, ToolEnd end);
  void cancel_calls(std::string_view why);
  /// The same of those that do not run.
  void cancel_waiting_calls(std::string_view why);

  void finish(std::string status, std::string reason);
  void end(std::string status, std::string reason);
  /// The last event, if the run has ended and is kept.
  void write_last();
  void write(AgentEventType type, std::string call_id, json::object data = {});

  Executor* loop_;
  RunEvents* events_;
  std::map<std::string, Reached, std::less<>> reached_;  // by their names
  Engine* engine_ = nullptr;
  Engine* reaction_engine_ = nullptr;
  std::set<const Engine*> failed_engines_;  // that were to react
  ToolHost* tools_ = nullptr;
  AgentOptions options_;
  std::vector<RunHandoff> handoffs_;  // that the model is offered
  std::optional<PendingHandoff> pending_handoff_;
  bool is_new_ = false;  // the conversation was handed over, and the model was not asked since
  RunHistory history_;
  std::string offered_;  // the tools, as JSON
  Phase phase_ = Phase::created;
  std::unique_ptr<Answer> answer_;                     // that is being given
  std::shared_ptr<const Generation> last_generation_;  // of the last answer; null: of other tools
  std::vector<std::string> reacting_;                  // the calls whose output it is shown
  /// By id; those that have ended until the model has been shown it.
  std::map<std::string, std::shared_ptr<RunningCall>, std::less<>> calls_;
  std::deque<std::string> order_;           // of calls that wait for their turn to run
  std::set<std::string, std::less<>> ids_;  // of all calls of the run
  std::size_t running_ = 0;
  std::deque<Waiting> inputs_;
  bool has_news_ = false;   // something that the model has not answered
  std::string last_text_;   // of the last answer that had one
  std::string used_up_;     // the budget that is, so that there is one more answer
  std::string end_status_;  // while in grace, and once it is over
  std::string end_reason_;
  TokenSum usage_;
  Usage last_usage_;  // of the last answer whose usage is known
  std::uint32_t turns_ = 0;
  std::uint32_t reactions_ = 0;
  std::uint32_t responses_ = 0;
  std::uint64_t last_input_ = 0;
  std::uint64_t last_call_ = 0;
  TimePoint began_at_{};
  /// When the last answer was asked for; later by the time for which it was held up.
  TimePoint closing_at_{};
  std::optional<TimePoint> held_up_at_;  // since when nobody takes what the model says
  TimePoint grace_from_{};
  bool drops_news_ = false;  // the turn was cancelled
  bool was_cut_ = false;     // the last answer, by its length
  const RunSpans* spans_ = nullptr;
  StateKeeper* keeper_ = nullptr;
  bool is_keeping_ = false;
  bool is_taking_calls_ = false;  // of an answer, after which the state is kept
  /// Calls that have ended, until that is kept. Only then anybody is told, and the run is known to
  /// be still the one whose tasks they are, and may cancel these.
  std::vector<Ended> ended_;
  std::size_t keeping_ended_ = 0;  // so many of these have ended in the state that is being kept
  bool keeps_again_ = false;       // the state has changed meanwhile
  std::optional<AgentEvent> last_event_;  // waits until the state is kept
  bool is_scheduled_ = false;
  Executor::TimerId timer_ = 0;
  std::optional<TimePoint> timer_at_;
};

}  // namespace sluice
