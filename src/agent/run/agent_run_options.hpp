#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/history/run_history.hpp"
#include "agent/policy/reaction_policy.hpp"
#include "agent/tools/tool_host.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// What may be changed or refused on its way. Each function returns what is to be used instead, or
/// an error, whose text is told to the model or, for the input and the output, ends the run. They
/// run on the loop and must not wait. An empty one lets everything through.
struct Guardrails {
  std::function<Result<std::string>(std::string text)> input = {};
  std::function<Result<std::string>(std::string text)> output = {};  // the last answer
  std::function<Result<json::object>(const AgentTool&, json::object arguments)> arguments = {};
  std::function<Result<std::string>(const AgentTool&, std::string text)> result = {};
  std::function<Result<std::string>(const AgentTool&, std::string text)> chunk =
      {};  // for the model
};

/// What a run may use up. At a limit the model is asked for one last answer, without tools, and the
/// run is incomplete.
struct RunBudget {
  std::uint32_t turns = 20;      // answers of the model
  std::uint32_t reactions = 50;  // answers to what running tools have written; not counted as turns
  std::uint64_t tokens = 0;      // that the model has read and written; 0: no limit
  Duration time{};               // 0: no limit
};

struct AgentRunOptions {
  std::string name = "agent";
  RunHistoryOptions history = {};
  SamplingParams sampling = {};
  std::optional<int> max_tokens = {};  // of one answer
  /// The most bytes of one answer. A longer one is broken off, as by its length.
  std::size_t max_answer = std::size_t{1} << 20U;

  ReactionPolicy policy = {};  // of tools that have none of their own
  std::map<std::string, ReactionPolicy, std::less<>> policies = {};  // by tool
  /// Whether tool_status and tool_cancel are offered beside the tools.
  bool offers_call_tools = true;
  /// Whether the instructions explain to the model what updates are.
  bool explains_updates = true;

  RunBudget budget = {};
  std::size_t max_running = 8;  // calls at a time; further ones wait
  std::size_t max_running_of_server = 8;
  std::size_t max_calls_of_answer = 32;             // further ones fail
  std::size_t max_inputs = 100;                     // that wait to be delivered
  Duration idle_timeout = std::chrono::minutes(5);  // of a call, without output; 0: none
  Duration call_timeout{};                          // of a call, in total; 0: none
  /// How long calls may go on that still run after the last answer; their output is for the user.
  Duration grace = std::chrono::milliseconds(500);

  /// Whether the same call may run twice at a time.
  bool allows_duplicates = false;
  /// Why a call must be approved; an empty text: it need not be. Empty: none must.
  std::function<std::string(const AgentTool&, const json::object& arguments)> approval = {};
  /// Whether calls are cancelled by an input that interrupts. If not, they go on.
  bool cancels_on_interrupt = false;
  /// Whether the model may go on while a tool runs.
  bool detaches = true;

  Guardrails guardrails = {};
};

/// A text for a run that is under way.
struct RunInput {
  enum class When : std::uint8_t {
    asap,       // before the next answer; calls that run are not waited for
    when_idle,  // once the model has nothing else to do
    silent,     // before the next answer, whatever causes that
    interrupt,  // at once: an answer that is being given is broken off
  };
  std::string text;
  When when = When::asap;
};

}  // namespace sluice
