#include "sluice/agent_event.hpp"

#include "agent/events/event_table.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kAgentEvents.size(); ++i) {
    if (static_cast<std::size_t>(kAgentEvents[i].type) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

/// The member that an event's text is.
std::string_view text_member(AgentEventType type) {
  switch (type) {
    case AgentEventType::output_text_delta:
    case AgentEventType::reasoning_text_delta:
    case AgentEventType::function_call_arguments_delta:
    case AgentEventType::tool_output_delta:
      return "delta";
    case AgentEventType::output_text_done:
    case AgentEventType::reasoning_text_done:
    case AgentEventType::tool_output_done:
      return "text";
    case AgentEventType::function_call_arguments_done:
      return "arguments";
    case AgentEventType::run_done:
      return "output_text";
    default:
      return {};
  }
}

}  // namespace

std::size_t AgentEvent::memory() const {
  return sizeof(*this) + text.size() + (data.empty() ? 0 : size_of(data).memory());
}

std::string_view name_of(AgentEventType type) {
  return kAgentEvents[static_cast<std::size_t>(type)].name;
}

json::object to_object(const AgentEvent& event, std::string_view run_id) {
  json::object out{{"type", name_of(event.type)},
                   {"sequence_number", event.sequence_number},
                   {"run_id", run_id},
                   {"turn", event.turn}};
  if (!event.call_id.empty()) out["call_id"] = event.call_id;
  if (!event.item_id.empty()) out["item_id"] = event.item_id;
  if (event.output_index >= 0) out["output_index"] = event.output_index;
  if (event.content_index >= 0) out["content_index"] = event.content_index;
  if (event.type == AgentEventType::tool_output_delta) {
    out["first"] = event.first;
    out["last"] = event.last;
  }
  if (event.dropped > 0) out["dropped"] = event.dropped;
  if (const std::string_view member = text_member(event.type); !member.empty()) {
    out[member] = event.text;
  }
  if (event.type == AgentEventType::output_text_delta ||
      event.type == AgentEventType::output_text_done) {
    out["logprobs"] = json::array();
  }
  for (const auto& [name, value] : event.data) out[name] = value;
  return out;
}

std::string event_table() {
  std::string out = "| event | members | meaning |\n|---|---|---|\n";
  for (const AgentEventKind& kind : kAgentEvents) {
    out.append("| `").append(kind.name).append("` | ").append(kind.members).append(" | ");
    out.append(kind.meaning).append(" |\n");
  }
  return out;
}

}  // namespace sluice
