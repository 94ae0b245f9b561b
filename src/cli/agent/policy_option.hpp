#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// A policy as --policy has it, and the tool that it is for.
struct PolicyOption {
  std::string tool = {};  // empty: all that have none of their own
  /// For calls of the tool alone that have these among their arguments; nothing: for all of them.
  std::optional<json::object> arguments = {};
  ReactionPolicy policy = {};
};

/// Reads `[TOOL[ARGUMENTS]:]WHEN[,OPTION...]`, where ARGUMENTS is a JSON object. WHEN is one of
///   pass           the model sees the result alone
///   chunk          each piece at once
///   every=N        N pieces
///   pause[=TIME]   when the tool pauses; with wait=TIME and bytes=SIZE at the latest
///   demand         when the model asks for it
///   idle           when the model has nothing else to do
///   interrupt      each piece at once; breaks off what the model is saying
/// and OPTION one of interrupt, min=TIME, reactions=N, tokens=N. Or
/// `[TOOL[ARGUMENTS]:][OPTION,...]match=REGEX` (RE2): when a line contains it. All behind `match=`
/// is the expression. Errors carry kExitUsage and quote what is wrong.
Result<PolicyOption> parse_policy(std::string_view text);

/// Whether a text before a colon is meant as the name of a tool.
bool is_name_of_tool(std::string_view text);

}  // namespace sluice
