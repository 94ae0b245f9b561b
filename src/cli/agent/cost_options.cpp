#include "cli/agent/cost_options.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

constexpr const char* kPriceOperand = "PROMPT,COMPLETION[,CACHED]";

Result<TokenPrice> parse_price(const std::string& option, std::string_view text) {
  std::vector<double> amounts;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::optional<double> amount = parse_decimal(rest.substr(0, comma));
    if (!amount) break;
    amounts.push_back(*amount);
    if (comma != std::string_view::npos) {
      rest.remove_prefix(comma + 1);
      continue;
    }
    if (amounts.size() != 2 && amounts.size() != 3) break;
    TokenPrice price{.prompt = amounts[0], .completion = amounts[1]};
    if (amounts.size() == 3) price.cached = amounts[2];
    return price;
  }
  return fail(kExitUsage,
              option + ": give " + kPriceOperand + ", what a million tokens cost, such as 2.5,10");
}

}  // namespace

void add_cost_options(Subcommand& command, CostArguments& arguments) {
  command.add_option("--max-cost", &arguments.most,
                     {.text = "The most that the run may cost, by --price", .operand = "X"});
  command.add_option(
      "--price", &arguments.price,
      {.text = "What a million tokens of the model cost, in any currency: those that "
               "it reads, those that it writes, and those that it has read before, "
               "which cost as much as others by default",
       .operand = kPriceOperand});
  command.add_option(
      "--reaction-price", &arguments.reaction_price,
      {.text = "The same of the model for reactions. Default: --price", .operand = kPriceOperand});
}

Result<void> read_costs(const CostArguments& arguments, bool has_reaction_model,
                        AgentOptions& options) {
  if (!arguments.price.empty()) {
    auto price = parse_price("--price", arguments.price);
    if (!price) return std::unexpected(std::move(price.error()));
    options.price = *price;
  }
  if (!arguments.reaction_price.empty()) {
    if (!has_reaction_model) {
      return fail(kExitUsage, "--reaction-price belongs to --reaction-model");
    }
    auto price = parse_price("--reaction-price", arguments.reaction_price);
    if (!price) return std::unexpected(std::move(price.error()));
    options.reaction_price = *price;
  }
  if (!arguments.most) return {};
  if (!std::isfinite(*arguments.most) || *arguments.most <= 0) {
    return fail(kExitUsage, "--max-cost: give a number above 0, such as 0.5");
  }
  if (!options.price) return fail(kExitUsage, "--max-cost needs --price");
  options.budget.cost = *arguments.most;
  return {};
}

}  // namespace sluice
