#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/events/message_item.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "sluice/agent_event.hpp"

namespace sluice {
namespace {

bool begins_or_ends_response(AgentEventType type) {
  return type == AgentEventType::response_created || type == AgentEventType::response_completed ||
         type == AgentEventType::response_incomplete || type == AgentEventType::response_failed;
}

}  // namespace

std::vector<json::object> UiEvents::show(const AgentEvent& event, std::string_view run_id) {
  std::vector<json::object> out;
  const auto add = [&](AgentEventType type, const Message& message, json::object members) {
    json::object one{{"type", name_of(type)}, {"run_id", run_id}, {"output_index", message.index}};
    for (auto& [name, value] : members) one[name] = std::move(value);
    out.push_back(std::move(one));
  };
  const auto add_of_part = [&](AgentEventType type, const Message& message, json::object members) {
    members["item_id"] = message.id;
    members["content_index"] = 0;
    add(type, message, std::move(members));
  };
  const auto begin = [&](Message& message) {
    message.is_open = true;
    message.is_cut = false;
    message.text.clear();
    message.index = next_index_++;
    message.id = "notif_" + event.call_id;
    // Ids of calls have no colon.
    if (++message.number > 1) message.id += ":" + std::to_string(message.number);
    add(AgentEventType::output_item_added, message,
        {{"item", message_item(message.id, "in_progress", {})}});
    add_of_part(AgentEventType::content_part_added, message, {{"part", text_part("")}});
  };
  const auto end = [&](Message& message, std::string_view status) {
    if (!std::exchange(message.is_open, false)) return;
    const json::object part = text_part(message.text);
    add_of_part(AgentEventType::output_text_done, message,
                {{"text", message.text}, {"logprobs", json::array()}});
    add_of_part(AgentEventType::content_part_done, message, {{"part", part}});
    add(AgentEventType::output_item_done, message,
        {{"item", message_item(message.id, status, {part})}});
  };
  if (!name_of(event.type).starts_with("sluice:")) {
    if (begins_or_ends_response(event.type)) {
      for (auto& [call, message] : messages_) end(message, "completed");
    }
    out.push_back(to_object(event, run_id));
  } else if (event.type == AgentEventType::tool_output_delta && !event.text.empty()) {
    Message& message = messages_[event.call_id];
    if (event.data.contains("restart")) end(message, "incomplete");
    if (!message.is_open) begin(message);
    if (!message.is_cut) {
      std::string_view more = event.text;
      message.is_cut = more.size() > kMaxText - message.text.size();
      if (message.is_cut) {
        more = more.substr(0, kMaxText - message.text.size());
        more = more.substr(0, complete_utf8_prefix(more));
      }
      message.text += more;
    }
    add_of_part(AgentEventType::output_text_delta, message,
                {{"delta", event.text}, {"logprobs", json::array()}});
  } else if (event.type == AgentEventType::tool_output_done) {
    auto last = messages_.extract(event.call_id);
    if (last.empty()) return out;
    end(last.mapped(), text_at(event.data, "status") == "completed" ? "completed" : "incomplete");
  }
  return out;
}

}  // namespace sluice
