// How an AgentRun goes from one agent to another.

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/run/agent_run.hpp"

namespace sluice {

std::vector<std::shared_ptr<const void>> AgentRun::agents() const {
  std::vector<std::shared_ptr<const void>> out;
  for (const auto& [name, agent] : reached_) out.push_back(agent.keeps);
  if (pending_handoff_) out.push_back(pending_handoff_->to.keeps);
  return out;
}

void AgentRun::adopt(RunAgent agent) {
  const bool is_first = engine_ == nullptr;
  if (!is_first) {
    agent.options.budget = options_.budget;
    agent.options.max_running = options_.max_running;
    agent.options.max_running_of_server = options_.max_running_of_server;
    agent.options.max_calls_of_answer = options_.max_calls_of_answer;
    agent.options.max_inputs = options_.max_inputs;
    agent.options.idle_timeout = options_.idle_timeout;
    agent.options.call_timeout = options_.call_timeout;
    agent.options.grace = options_.grace;
    agent.options.max_answer = options_.max_answer;
  }
  remember(agent);
  engine_ = agent.engine;
  reaction_engine_ = agent.reaction_engine;
  tools_ = agent.tools;
  options_ = std::move(agent.options);
  choose_reaction_model();
  for (const auto& [id, call] : calls_) {
    if (call->has_own_policy) continue;
    call->trigger.set_policy(policy_of(call->asked.name, *call->tool, call->arguments));
  }
  history_.set_options(history_options());
}

void AgentRun::remember(RunAgent& agent) {
  reached_.insert_or_assign(agent.options.name,
                            Reached{agent.tools, agent.options.approval, agent.options.guardrails,
                                    std::move(agent.handoffs), std::move(agent.keeps)});
}

bool AgentRun::is_namesake(const RunAgent& agent) const {
  const auto known = reached_.find(agent.options.name);
  return known != reached_.end() && known->second.tools != agent.tools;
}

std::optional<RunAgent> AgentRun::reachable_agent(std::string_view name) const {
  constexpr std::size_t kMostAgents = 1000;
  std::set<std::pair<std::string, const ToolHost*>> seen;
  std::deque<RunHandoff> next;
  std::optional<RunAgent> found;
  const auto add = [&next](const std::function<std::vector<RunHandoff>()>& find) {
    if (find) std::ranges::move(find(), std::back_inserter(next));
  };
  for (const auto& [known, agent] : reached_) {
    seen.emplace(known, agent.tools);
    add(agent.handoffs);
  }
  for (; !next.empty() && seen.size() < kMostAgents; next.pop_front()) {
    std::optional<RunAgent> agent = next.front().reach();
    if (!agent || !seen.emplace(agent->options.name, agent->tools).second) continue;
    add(agent->handoffs);
    if (agent->options.name != name) continue;
    if (found) return std::nullopt;
    found = std::move(agent);
  }
  return found;
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
  if (is_namesake(*other)) {
    return answer_call(asked.id,
                       "The call was not made: another agent of this conversation has the name " +
                           handoff.agent + "; each needs a name of its own");
  }
  answer_call(asked.id, "The conversation is handed over to " + handoff.agent);
  pending_handoff_ = {*std::move(other), handoff.running_calls, asked.id};
}

bool AgentRun::hand_over() {
  if (!pending_handoff_) return false;
  using RunningCalls = HandoffOptions::RunningCalls;
  const bool is_running = std::ranges::any_of(
      calls_, [](const auto& each) { return each.second->state != RunningCall::State::ended; });
  const bool waits = pending_handoff_->running_calls == RunningCalls::wait && used_up_.empty();
  if (is_running && waits && !has_input(false)) return true;
  if (is_running && pending_handoff_->running_calls == RunningCalls::cancel) {
    cancel_calls("The call was cancelled: the conversation goes to " +
                 pending_handoff_->to.options.name);
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
