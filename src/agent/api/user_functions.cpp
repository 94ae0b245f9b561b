#include "agent/api/user_functions.hpp"

#include <memory>
#include <type_traits>
#include <utility>

#include "agent/policy/reaction_trigger.hpp"
#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

template <class Out, class... In>
void shield(std::function<Out(In...)>& function, const std::shared_ptr<LogLimit>& failures) {
  if (!function) return;
  function = [inner = std::move(function), failures](In... in) -> Out {
    try {
      return inner(std::forward<In>(in)...);
    } catch (const Error& error) {
      if constexpr (std::is_same_v<Out, std::string>) {
        return error.message.empty() ? std::string("its rule has failed") : error.message;
      } else {
        return std::unexpected(error);
      }
    } catch (...) {
      log_exception(*failures, "a guardrail or a rule of approval has failed");
    }
    if constexpr (std::is_same_v<Out, std::string>) {
      return "its rule has failed";
    } else {
      return fail(-32603, "a check has failed");
    }
  };
}

}  // namespace

std::string unless_read_only(const AgentTool& tool, const json::object& /*arguments*/) {
  return tool.is_read_only ? std::string() : "it may change something";
}

AgentOptions shielded(AgentOptions options) {
  const auto failures = std::make_shared<LogLimit>();
  shield(options.guardrails.input, failures);
  shield(options.guardrails.output, failures);
  shield(options.guardrails.arguments, failures);
  shield(options.guardrails.result, failures);
  shield(options.guardrails.chunk, failures);
  shield(options.approval, failures);
  if (options.policy_rule) {
    options.policy_rule = [inner = std::move(options.policy_rule), failures](
                              const AgentTool& tool,
                              const json::object& arguments) -> std::optional<ReactionPolicy> {
      try {
        std::optional<ReactionPolicy> policy = inner(tool, arguments);
        if (!policy) return policy;
        const Result<void> checked = check(*policy);
        if (checked) return policy;
        if (const auto left_out = failures->take()) {
          log_warning(
              "a call has the policy of its tool, as its own makes no sense",
              {{"why", std::string_view(checked.error().message)}, {"left_out", *left_out}});
        }
      } catch (...) {
        log_exception(*failures, "a rule of policies has failed");
      }
      return std::nullopt;
    };
  }
  return options;
}

}  // namespace sluice
