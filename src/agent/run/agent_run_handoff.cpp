// How an AgentRun goes from one agent to another.

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "agent/run/agent_run.hpp"

namespace sluice {
void AgentRun::adopt(RunAgent agent) {
  const bool is_first = engine_ == nullptr;
  if (!is_first) {
    agent.options.budget = options_.budget;
    agent.options.grace = options_.grace;
    agent.options.max_inputs = options_.max_inputs;
    agent.options.idle_timeout = options_.idle_timeout;
    agent.options.call_timeout = options_.call_timeout;
  }
  agents_.push_back(std::move(agent.keeps));
  engine_ = agent.engine;
  reaction_engine_ = agent.reaction_engine == nullptr ? agent.engine : agent.reaction_engine;
  tools_ = agent.tools;
  options_ = std::move(agent.options);
  hosts_.insert_or_assign(options_.name, tools_);
  find_handoffs_ = std::move(agent.handoffs);
  history_.set_options(history_options());
}

std::optional<RunAgent> AgentRun::reachable_agent(std::string_view name) const {
  constexpr std::size_t kMostAgents = 1000;
  std::set<std::string, std::less<>> seen = {options_.name};
  std::deque<RunHandoff> next;
  const auto add = [&next](const std::function<std::vector<RunHandoff>()>& find) {
    if (find) std::ranges::move(find(), std::back_inserter(next));
  };
  for (add(find_handoffs_); !next.empty() && seen.size() < kMostAgents; next.pop_front()) {
    if (!seen.insert(next.front().agent).second) continue;
    std::optional<RunAgent> agent = next.front().reach();
    if (agent && agent->options.name == name) return agent;
    if (agent) add(agent->handoffs);
  }
  return std::nullopt;
}

void AgentRun::take_handoff(const ChatToolCall& asked, const RunHandoff& handoff) {
  if (pending_handoff_) {
    return answer_call(asked.id, "The call was not made: the conversation goes to " +
                                     pending_handoff_->to.options.name + " already");
  }
  std::optional<RunAgent> other = handoff.reach();
  if (!other) {
    return answer_call(asked.id, "The call was not made: " + handoff.agent + " is not there");
  }
  answer_call(asked.id, "The conversation is handed over to " + handoff.agent);
  pending_handoff_ = {*std::move(other), handoff.running_calls, asked.id};
}

bool AgentRun::hand_over() {
  if (!pending_handoff_) return false;
  using RunningCalls = HandoffOptions::RunningCalls;
  const bool is_running = std::ranges::any_of(
      calls_, [](const auto& each) { return each.second->state != RunningCall::State::ended; });
  if (is_running && pending_handoff_->running_calls == RunningCalls::wait) return true;
  if (is_running && pending_handoff_->running_calls == RunningCalls::cancel) {
    cancel_calls("The conversation is handed over to " + pending_handoff_->to.options.name);
  }
  PendingHandoff next = *std::exchange(pending_handoff_, std::nullopt);
  const std::string from = options_.name;
  adopt(std::move(next.to));
  offer();
  is_new_ = true;
  write(AgentEventType::run_handoff, next.call_id,
        {{"from", from}, {"to", options_.name}, {"model", engine_->info().model}});
  keep();
  return false;
}

}  // namespace sluice
