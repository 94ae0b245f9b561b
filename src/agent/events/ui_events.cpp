#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/events/message_item.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "sluice/agent_event.hpp"

namespace sluice {
std::vector<json::object> UiEvents::show(const AgentEvent& event, std::string_view run_id) {
  std::vector<json::object> out;
  const std::string id = "notif_" + event.call_id;
  const auto add = [&](AgentEventType type, json::object members) {
    json::object one{{"type", name_of(type)}, {"run_id", run_id}, {"output_index", 0}};
    for (auto& [name, value] : members) one[name] = std::move(value);
    out.push_back(std::move(one));
  };
  const auto add_of_part = [&](AgentEventType type, json::object members) {
    members["item_id"] = id;
    members["content_index"] = 0;
    add(type, std::move(members));
  };
  if (!name_of(event.type).starts_with("sluice:")) {
    out.push_back(to_object(event, run_id));
  } else if (event.type == AgentEventType::tool_output_delta && !event.text.empty()) {
    const auto [text, is_new] = open_.try_emplace(event.call_id);
    if (is_new) {
      add(AgentEventType::output_item_added, {{"item", message_item(id, "in_progress", {})}});
      add_of_part(AgentEventType::content_part_added, {{"part", text_part("")}});
    }
    std::string& kept = text->second;
    const std::string_view more = std::string_view(event.text).substr(0, kMaxText - kept.size());
    kept += more.substr(0, complete_utf8_prefix(more));
    add_of_part(AgentEventType::output_text_delta,
                {{"delta", event.text}, {"logprobs", json::array()}});
  } else if (event.type == AgentEventType::tool_output_done) {
    const auto text = open_.extract(event.call_id);
    if (text.empty()) return out;
    const json::object part = text_part(text.mapped());
    add_of_part(AgentEventType::output_text_done,
                {{"text", text.mapped()}, {"logprobs", json::array()}});
    add_of_part(AgentEventType::content_part_done, {{"part", part}});
    add(AgentEventType::output_item_done, {{"item", message_item(id, "completed", {part})}});
  }
  return out;
}

}  // namespace sluice
