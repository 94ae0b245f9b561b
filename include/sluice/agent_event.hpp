#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/json.hpp"

namespace sluice {

/// What happens in a run. What the model does has the names and the order of the Responses API's
/// stream; what is ours has a prefix, as the specification of Open Responses wants.
enum class AgentEventType : std::uint8_t {
  run_started,
  response_created,
  response_in_progress,
  output_item_added,
  content_part_added,
  output_text_delta,
  output_text_done,
  reasoning_text_delta,
  reasoning_text_done,
  content_part_done,
  function_call_arguments_delta,
  function_call_arguments_done,
  output_item_done,
  response_completed,
  response_incomplete,
  response_failed,
  tool_output_started,
  tool_output_delta,
  tool_output_done,
  tool_progress,
  tool_detached,
  reaction_started,
  reaction_skipped,
  reaction_done,
  input_delivered,
  approval_required,
  run_budget,
  run_handoff,
  run_done,
};

struct AgentEventKind {
  AgentEventType type;
  std::string_view name;
  std::string_view members;  // besides those of the envelope, with commas between them
  std::string_view meaning;  // a sentence
};

/// The vocabulary, in the order of the enumeration; docs/events.md is made from it.
inline constexpr std::array<AgentEventKind, 29> kAgentEvents = {{
    {AgentEventType::run_started, "sluice:run.started", "agent, model",
     "The run has begun. It is the first event."},
    {AgentEventType::response_created, "response.created", "response",
     "The model is asked for an answer. Everything up to the end of this response is of this "
     "answer, "
     "or a `sluice:` event."},
    {AgentEventType::response_in_progress, "response.in_progress", "response",
     "The model has the request."},
    {AgentEventType::output_item_added, "response.output_item.added", "output_index, item",
     "A part of the answer begins: a `message`, a `reasoning` or a `function_call`."},
    {AgentEventType::content_part_added, "response.content_part.added",
     "item_id, output_index, content_index, part", "The text of a message or of reasoning begins."},
    {AgentEventType::output_text_delta, "response.output_text.delta",
     "item_id, output_index, content_index, delta, logprobs",
     "The model has written a piece of text."},
    {AgentEventType::output_text_done, "response.output_text.done",
     "item_id, output_index, content_index, text, logprobs", "The whole text of a message."},
    {AgentEventType::reasoning_text_delta, "response.reasoning_text.delta",
     "item_id, output_index, content_index, delta",
     "The model has written a piece of its reasoning."},
    {AgentEventType::reasoning_text_done, "response.reasoning_text.done",
     "item_id, output_index, content_index, text", "The whole text of its reasoning."},
    {AgentEventType::content_part_done, "response.content_part.done",
     "item_id, output_index, content_index, part",
     "The text of a message or of reasoning is complete."},
    {AgentEventType::function_call_arguments_delta, "response.function_call_arguments.delta",
     "item_id, output_index, delta", "A piece of the arguments of a call, as JSON text."},
    {AgentEventType::function_call_arguments_done, "response.function_call_arguments.done",
     "item_id, output_index, name, arguments", "The whole arguments of a call."},
    {AgentEventType::output_item_done, "response.output_item.done", "output_index, item",
     "A part of the answer is complete, or was broken off (`status`)."},
    {AgentEventType::response_completed, "response.completed", "response",
     "The model has ended its answer."},
    {AgentEventType::response_incomplete, "response.incomplete", "response",
     "The answer was broken off: by its length, which `incomplete_details` says, or by whoever "
     "runs the agent, and its `status` is `cancelled`."},
    {AgentEventType::response_failed, "response.failed", "response",
     "The model could not answer. `response.error` says why."},
    {AgentEventType::tool_output_started, "sluice:tool.output.started",
     "call_id, tool, server, arguments",
     "A tool has been called. `server` is the label of its server."},
    {AgentEventType::tool_output_delta, "sluice:tool.output.delta",
     "call_id, first, last, delta, content, dropped, restart",
     "A running tool has written something: its chunks `first` to `last`, as text, or `content` "
     "that "
     "is no text. `dropped` chunks before them are missing: nobody took them in time, or they "
     "did not come. `restart`: the connection broke, and the call was made anew, so what it wrote "
     "before may come again."},
    {AgentEventType::tool_output_done, "sluice:tool.output.done", "call_id, status, text, result",
     "A call has ended: `completed`, `failed`, `cancelled`, `rejected` or `unknown`."},
    {AgentEventType::tool_progress, "sluice:tool.progress",
     "call_id, dropped, progress, total, message",
     "A running tool says how far it is, without output. `dropped` as with its output."},
    {AgentEventType::tool_detached, "sluice:tool.detached", "call_id",
     "The model goes on while this tool runs."},
    {AgentEventType::reaction_started, "sluice:tool.reaction.started", "call_ids",
     "The next response reacts to what these running tools have written."},
    {AgentEventType::reaction_skipped, "sluice:tool.reaction.skipped", "call_id, reason",
     "There is no reaction to this call any more, because of a limit."},
    {AgentEventType::reaction_done, "sluice:tool.reaction.done", "call_ids",
     "The response that reacted has ended."},
    {AgentEventType::input_delivered, "sluice:input.delivered", "input_id",
     "The next response has this input before it."},
    {AgentEventType::approval_required, "sluice:approval.required",
     "call_id, tool, server, arguments, reason",
     "The call waits until somebody approves or rejects it."},
    {AgentEventType::run_budget, "sluice:run.budget", "budget",
     "A budget is used up: `turns`, `tokens`, `cost` or `time`. The model is asked for one last "
     "answer, without tools."},
    {AgentEventType::run_handoff, "sluice:run.handoff", "call_id, from, to, model",
     "The conversation is another agent's now, because the model has called for that."},
    {AgentEventType::run_done, "sluice:run.done", "status, reason, output_text, usage",
     "The run is over: `completed`, `incomplete`, `cancelled` or `failed`. It is the last event. "
     "`usage` has the `cost` if there are prices."},
}};

std::string_view name_of(AgentEventType type);

/// An event of a run. Members that a type does not have are empty.
struct AgentEvent {
  AgentEventType type = AgentEventType::run_started;
  /// Of all events of the run as they are taken, from 0 on, without gaps.
  std::uint64_t sequence_number = 0;
  std::uint32_t turn = 0;    // the number of the response, from 1 on; 0: none yet
  std::string call_id = {};  // of a tool's events and of calls
  std::string item_id = {};  // of a response's events
  std::int32_t output_index = -1;
  std::int32_t content_index = -1;
  std::string text = {};    // `delta` or `text`
  std::uint64_t first = 0;  // of a tool's output: the numbers of the chunks
  std::uint64_t last = 0;
  std::uint64_t dropped = 0;
  json::object data = {};  // the other members

  /// About what it takes in memory, in bytes.
  [[nodiscard]] std::size_t memory() const;
};

/// The event as it is sent and recorded: a JSON object with `type`, `sequence_number`, `run_id`,
/// `turn`, and what the table says.
json::object to_object(const AgentEvent& event, std::string_view run_id);

/// The events of a run for a user interface that knows the Responses API alone: those of the model
/// as they are, and what a tool writes as messages of their own. Such a message ends where a
/// response of the model begins or ends, so it is within one response, or between two. Its id is
/// `notif_` and that of the call, for the second and further ones of the call with `:2` and so on
/// behind it; its `output_index` is from kFirstIndex on, where no response has items of the
/// model. Other events are left out. The `done` events of a message have the first kMaxText bytes
/// of its text. Use one for each run.
class UiEvents {
 public:
  static constexpr std::size_t kMaxText = std::size_t{1} << 20U;
  static constexpr std::int32_t kFirstIndex = 1'000'000;

  /// What the interface gets for an event, in order; perhaps nothing.
  std::vector<json::object> show(const AgentEvent& event, std::string_view run_id);

 private:
  /// The last one of a running call.
  struct Message {
    std::string id = {};
    std::int32_t index = 0;
    std::string text = {};
    std::uint32_t number = 0;  // of those of the call
    bool is_open = false;
    bool is_cut = false;
  };

  std::map<std::string, Message, std::less<>> messages_;  // by the call
  std::int32_t next_index_ = kFirstIndex;
};

}  // namespace sluice
