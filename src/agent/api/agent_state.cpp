#include "agent/api/agent_state.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/api/user_functions.hpp"
#include "agent/history/tool_name.hpp"
#include "agent/policy/reaction_trigger.hpp"

namespace sluice::detail {
namespace {

constexpr int kInvalid = -32602;

void require(const Result<void>& outcome, const std::string& what) {
  if (!outcome) throw Error{kInvalid, what + ": " + outcome.error().message};
}

void require_amount(double amount, const std::string& what) {
  if (!std::isfinite(amount) || amount < 0) throw Error{kInvalid, what + ": it is no amount", {}};
}

void require_price(const std::optional<TokenPrice>& price, const std::string& name) {
  if (!price) return;
  require_amount(price->prompt, name + ".prompt");
  require_amount(price->cached.value_or(0), name + ".cached");
  require_amount(price->completion, name + ".completion");
}

void require_costs(const AgentOptions& options) {
  require_amount(options.budget.cost, "budget.cost");
  require_price(options.price, "price");
  require_price(options.reaction_price, "reaction_price");
  if (options.budget.cost > 0 && !options.price) {
    throw Error{kInvalid, "budget.cost: there is no price", {}};
  }
  if (options.reaction_price && !options.reaction_model) {
    throw Error{kInvalid, "reaction_price: there is no reaction_model", {}};
  }
}

void require_sight(const Model& model, const AgentOptions& options) {
  if (options.max_images == 0) return;
  for (const Model& each : {model, options.reaction_model.value_or(model)}) {
    if (each.engine()->info().takes_images) continue;
    throw Error{kInvalid, "max_images: the model \"" + each.name() + "\" takes no images", {}};
  }
}

}  // namespace

AgentState::AgentState(Model asked, AgentOptions given)
    : model(std::move(asked)),
      options(shielded(std::move(given))),
      store(options.store == nullptr ? nullptr : std::make_unique<StoreThread>(options.store)),
      tools(background->loop(), options.store != nullptr, options.partial_results) {
  require(check(options.policy), "policy");
  require_costs(options);
  require_sight(model, options);
  if (options.max_running == 0 || options.max_running_of_server == 0) {
    throw Error{kInvalid, "max_running: no call could run", {}};
  }
  std::set<std::string, std::less<>> labels;
  for (const AgentServer& server : options.servers) {
    if (!labels.insert(server.label).second) {
      throw Error{kInvalid, "Two servers have the label \"" + server.label + "\""};
    }
    std::vector<Listed> listed;
    try {
      listed = Client(server.client).tools();
    } catch (const Error& error) {
      throw Error{error.code, server.label + ": " + error.message, error.data};
    }
    tools.add(server, listed);
  }
  const auto require_tool = [&](const std::string& tool, const std::string& what) {
    const auto& all = tools.tools();
    if (std::ranges::find(all, tool, &AgentTool::name) != all.end()) return;
    throw Error{kInvalid, "There is no tool " + tool + ", which has a " + what};
  };
  for (const auto& [tool, policy] : options.policies) {
    require(check(policy), "policy of " + tool);
    require_tool(tool, "policy");
  }
  for (const auto& [tool, grace] : options.graces) require_tool(tool, "grace");
}

void AgentState::add_handoff(const std::shared_ptr<AgentState>& other, HandoffOptions handoff) {
  const std::string& name = other->options.name;
  std::string tool =
      name_for_model(handoff.tool.empty() ? "transfer_to_" + name : std::move(handoff.tool));
  std::string description = handoff.description.empty()
                                ? "Hands the conversation over to " + name + "."
                                : std::move(handoff.description);
  const std::lock_guard lock(mutex_);
  const auto is_namesake = [&](const RunHandoff& each) {
    const auto known = each.agent == name ? each.reach() : std::nullopt;
    return known && known->tools != &other->tools;
  };
  if ((name == options.name && other.get() != this) ||
      std::ranges::any_of(handoffs_, is_namesake)) {
    throw Error{
        kInvalid, "Two agents have the name \"" + name + "\": give each a name of its own", {}};
  }
  if (tools.has_name(tool) ||
      std::ranges::find(handoffs_, tool, &RunHandoff::tool) != handoffs_.end()) {
    throw Error{kInvalid, "There is a tool " + tool + " already", {}};
  }
  handoffs_.push_back({.tool = std::move(tool),
                       .description = std::move(description),
                       .running_calls = handoff.running_calls,
                       .agent = name,
                       .reach = [weak = std::weak_ptr(other)]() -> std::optional<RunAgent> {
                         const auto agent = weak.lock();
                         return agent == nullptr ? std::nullopt : std::optional(agent->for_run());
                       }});
}

RunAgent AgentState::for_run() {
  return {
      .engine = model.engine().get(),
      .reaction_engine = options.reaction_model ? options.reaction_model->engine().get() : nullptr,
      .tools = &tools,
      .options = options,
      .handoffs =
          [this] {
            const std::lock_guard lock(mutex_);
            return handoffs_;
          },
      .keeps = shared_from_this()};
}

}  // namespace sluice::detail
