#include "cli/agent/agent_view.hpp"

#include <utility>

#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::string_view kModelLane = "model";
constexpr std::string_view kCallLane = "call ";  // and its id, which may be any text
constexpr std::size_t kMaxShown = 200;           // bytes of arguments and results

}  // namespace

std::string AgentView::break_line() {
  lane_.clear();
  return std::exchange(is_at_line_start_, true) ? "" : "\n";
}

std::string AgentView::label(std::string_view call_id) const {
  const auto found = tools_.find(call_id);
  const std::string name = found == tools_.end() ? std::string(call_id) : found->second;
  return std::string(style_.cyan()) + "  " + one_line(name) + " | " + std::string(style_.reset());
}

std::string AgentView::model_text(std::string_view delta) {
  std::string out = lane_ == kModelLane ? "" : break_line();
  lane_ = kModelLane;
  const std::string text = printable(delta);
  if (!text.empty()) is_at_line_start_ = text.ends_with('\n');
  return out + text;
}

std::string AgentView::tool_line(std::string_view call_id, std::string_view text) {
  std::string out;
  if (std::string lane = std::string(kCallLane).append(call_id); lane_ != lane) {
    out = break_line();
    lane_ = std::move(lane);
  }
  for (const char c : printable(text)) {
    if (std::exchange(is_at_line_start_, c == '\n')) out += label(call_id);
    out += c;
  }
  return out;
}

std::string AgentView::note(std::string_view call_id, std::string_view text) {
  std::string out = break_line();
  out += call_id.empty() ? "  " : label(call_id);
  return out + std::string(style_.dim()) + one_line(text) + std::string(style_.reset()) + "\n";
}

void AgentView::name_call(std::string_view call_id, std::string_view tool) {
  tools_.insert_or_assign(std::string(call_id), std::string(tool));
}

std::string AgentView::show(const json::object& event) {
  const std::string_view type = text_at(event, "type");
  const std::string_view call_id = text_at(event, "call_id");
  if (type == "response.output_text.delta") return model_text(text_at(event, "delta"));
  if (type == "response.output_text.done") return break_line();
  if (type == "sluice:tool.output.delta") {
    if (event.contains("content")) {
      return note(call_id, shortened(to_json(event.at("content")), kMaxShown));
    }
    std::string anew = event.contains("restart") ? note(call_id, "made anew") : std::string();
    return anew + tool_line(call_id, text_at(event, "delta"));
  }
  if (type == "response.output_item.done") {
    const json::object* const item = object_at(event, "item");
    if (item != nullptr && text_at(*item, "type") == "function_call") {
      name_call(text_at(*item, "call_id"), text_at(*item, "name"));
    }
    return {};
  }
  if (type == "sluice:tool.output.started") {
    // The call may be one of a run that goes on.
    name_call(call_id, text_at(event, "tool"));
    const json::value* const arguments = event.if_contains("arguments");
    return note(call_id, "called with " + (arguments == nullptr
                                               ? std::string("nothing")
                                               : shortened(to_json(*arguments), kMaxShown)));
  }
  if (type == "sluice:tool.output.done") {
    const std::string_view status = text_at(event, "status");
    const std::string text = shortened(text_at(event, "text"), kMaxShown);
    return note(call_id, std::string(status) + (text.empty() ? "" : ": " + text));
  }
  if (type == "sluice:tool.progress") {
    const std::string_view message = text_at(event, "message");
    return message.empty() ? std::string() : note(call_id, message);
  }
  if (type == "sluice:run.budget") {
    return note({}, "the budget is used up: " + std::string(text_at(event, "budget")));
  }
  return {};
}

}  // namespace sluice
