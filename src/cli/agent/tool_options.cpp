#include "cli/agent/tool_options.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/agent/policy_option.hpp"
#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

constexpr Duration kLongestGrace = std::chrono::hours(24 * 7);

bool has_arguments(const json::object& given, const json::object& wanted) {
  return std::ranges::all_of(wanted, [&given](const auto& each) {
    const json::value* const value = given.if_contains(each.key());
    return value != nullptr && is_same_value(*value, each.value());
  });
}

/// The policy of single calls: the last one that fits.
PolicyRule rule_of(std::vector<PolicyOption> policies) {
  return
      [policies = std::move(policies)](
          const AgentTool& tool, const json::object& arguments) -> std::optional<ReactionPolicy> {
        for (auto each = policies.rbegin(); each != policies.rend(); ++each) {
          if (each->tool == tool.name && has_arguments(arguments, *each->arguments)) {
            return each->policy;
          }
        }
        return {};
      };
}

Result<void> read_grace(std::string_view text, AgentOptions& options) {
  const std::size_t colon = text.find(':');
  const std::string_view tool = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view rest = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const auto time = parse_duration(rest);
  const bool has_tool = colon != std::string_view::npos;
  if (!time || *time > kLongestGrace || (has_tool && !is_name_of_tool(tool))) {
    return fail(kExitUsage, "--grace: \"" + std::string(text) +
                                "\": give [TOOL:]TIME, a time up to 168h, such as 10s or build:1m");
  }
  if (has_tool) {
    options.graces.insert_or_assign(std::string(tool), *time);
  } else {
    options.grace = *time;
  }
  return {};
}

}  // namespace

void add_tool_options(Subcommand& command, ToolArguments& arguments) {
  command.add_repeatable(
      "--policy", Keep::all,
      [&arguments](const std::vector<std::string>& given) { arguments.policies = given; },
      {.text = "When the model is shown what a running tool has written; may be repeated, for "
               "single tools, and for calls with certain arguments. Default: pause,wait=500ms",
       .operand = "[TOOL[ARGUMENTS]:]WHEN"});
  command.add_repeatable(
      "--grace", Keep::all,
      [&arguments](const std::vector<std::string>& given) { arguments.graces = given; },
      {.text =
           "How long calls may go on that still run after the last answer; may be repeated, for "
           "single tools. Default: 500ms",
       .operand = "[TOOL:]TIME"});
}

Result<void> read_tool_options(const ToolArguments& arguments, AgentOptions& options) {
  std::vector<PolicyOption> of_calls;
  for (const std::string& text : arguments.policies) {
    auto policy = parse_policy(text);
    if (!policy) return std::unexpected(std::move(policy.error()));
    if (policy->arguments) {
      of_calls.push_back(*std::move(policy));
    } else if (policy->tool.empty()) {
      options.policy = std::move(policy->policy);
    } else {
      options.policies.insert_or_assign(std::move(policy->tool), std::move(policy->policy));
    }
  }
  if (!of_calls.empty()) options.policy_rule = rule_of(std::move(of_calls));
  for (const std::string& text : arguments.graces) {
    if (auto read = read_grace(text, options); !read) return read;
  }
  return {};
}

Result<void> check_tool_options(const ToolArguments& arguments,
                                const std::vector<AgentTool>& tools) {
  for (const std::string& text : arguments.policies) {
    const auto policy = parse_policy(text);
    const bool is_known = !policy || !policy->arguments ||
                          std::ranges::find(tools, policy->tool, &AgentTool::name) != tools.end();
    if (is_known) continue;
    return fail(kExitUsage, "There is no tool " + policy->tool + ", which has a policy");
  }
  return {};
}

}  // namespace sluice
