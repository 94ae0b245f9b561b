// What is kept of a history, and how it is read again.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/history/kept_state.hpp"
#include "agent/history/run_history.hpp"
#include "agent/history/tool_name.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"system", "input", "answer", "result",
                                                    "update"};
constexpr std::array<std::string_view, 4> kStates = {"open", "held", "placeholder", "ended"};

json::object kept_message(const ChatMessage& message) {
  json::object out{{"role", message.role}, {"content", message.content}};
  if (!message.tool_call_id.empty()) out["call_id"] = message.tool_call_id;
  if (!message.tool_name.empty()) out["tool"] = message.tool_name;
  if (!message.server_data.empty()) out["server_data"] = message.server_data;
  if (message.tool_calls.empty()) return out;
  json::array& calls = out["calls"].emplace_array();
  for (const ChatToolCall& call : message.tool_calls) {
    calls.emplace_back(
        json::object{{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  return out;
}

/// Whether a call can be sent to a model's server.
bool is_sound(const ChatToolCall& call) {
  const auto arguments = parse_json(call.arguments.empty() ? "{}" : call.arguments);
  return !call.id.empty() && !call.name.empty() && arguments && arguments->is_object();
}

/// Nothing if it has a call that is none.
std::optional<ChatMessage> message_in_state(const json::object& object) {
  ChatMessage out{.role = std::string(text_at(object, "role")),
                  .content = std::string(text_at(object, "content")),
                  .tool_call_id = std::string(text_at(object, "call_id")),
                  .tool_name = std::string(text_at(object, "tool")),
                  .server_data = std::string(text_at(object, "server_data"))};
  if (!out.tool_name.empty()) out.tool_name = name_for_model(out.tool_name);
  const json::array* const calls = array_in_state(object, "calls");
  for (const json::value& each : calls == nullptr ? json::array() : *calls) {
    const json::object* const call = each.if_object();
    const json::value* const arguments = call == nullptr ? nullptr : call->if_contains("arguments");
    if (arguments == nullptr || !arguments->is_string()) return std::nullopt;
    out.tool_calls.push_back({.id = std::string(text_at(*call, "id")),
                              .name = std::string(text_at(*call, "name")),
                              .arguments = std::string(arguments->get_string())});
    if (!is_sound(out.tool_calls.back())) return std::nullopt;
    out.tool_calls.back().name = name_for_model(out.tool_calls.back().name);
  }
  return out;
}

}  // namespace

json::object RunHistory::state() const {
  json::array messages;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    // The instructions are those of the agent that goes on.
    if (kinds_[i] == Kind::system) continue;
    json::object one = kept_message(messages_[i]);
    one["kind"] = kKinds.at(static_cast<std::size_t>(kinds_[i]));
    messages.emplace_back(std::move(one));
  }
  json::array calls;
  for (const auto& [id, call] : calls_) {
    if (call.state == State::ended && std::ranges::find(round_, id) == round_.end()) continue;
    json::object one{{"id", id},
                     {"tool", call.tool},
                     {"state", kStates.at(static_cast<std::size_t>(call.state))},
                     {"output", call.output},
                     {"left_out", call.left_out},
                     {"first", call.range.first},
                     {"last", call.range.last},
                     {"has_output", call.has_output}};
    calls.emplace_back(std::move(one));
  }
  json::array round;
  for (const std::string& id : round_) round.emplace_back(id);
  return {
      {"messages", std::move(messages)}, {"calls", std::move(calls)}, {"round", std::move(round)}};
}

Result<void> RunHistory::restore(const json::object& state) {
  const json::array* const messages = array_in_state(state, "messages");
  const json::array* const calls = array_in_state(state, "calls");
  const json::array* const round = array_in_state(state, "round");
  if (messages == nullptr || calls == nullptr || round == nullptr) {
    return broken_state("its history has no messages, calls or round");
  }
  for (const json::value& each : *messages) {
    const json::object* const one = each.if_object();
    const auto kind = one == nullptr ? std::nullopt : enumerator_in(kKinds, text_at(*one, "kind"));
    if (!kind || *kind == 0) return broken_state("a message is of no kind");
    auto message = message_in_state(*one);
    if (!message) return broken_state("a call of a message has no id, name or arguments");
    messages_.push_back(*std::move(message));
    kinds_.push_back(static_cast<Kind>(*kind));
  }
  for (const json::value& each : *calls) {
    const json::object* const one = each.if_object();
    const auto kept =
        one == nullptr ? std::nullopt : enumerator_in(kStates, text_at(*one, "state"));
    if (!kept) return broken_state("a call has no state");
    Call call{.tool = std::string(text_at(*one, "tool")), .state = static_cast<State>(*kept)};
    call.output = std::string(text_at(*one, "output"));
    call.left_out = number_in_state(*one, "left_out");
    call.range = {.first = number_in_state(*one, "first"), .last = number_in_state(*one, "last")};
    call.has_output = flag_in_state(*one, "has_output");
    calls_.insert_or_assign(std::string(text_at(*one, "id")), std::move(call));
  }
  for (const json::value& each : *round) {
    if (!each.is_string()) return broken_state("a call of the last answer has no id");
    round_.emplace_back(each.get_string());
  }
  return check_restored();
}

/// Finds the results of the calls, and whether each message is where a strict API wants it.
Result<void> RunHistory::check_restored() {
  std::vector<std::string> wanted;  // the results that must come next
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const ChatMessage& message = messages_[i];
    const bool is_result = kinds_[i] == Kind::result || message.role == "tool";
    if (is_result != !wanted.empty())
      return broken_state("calls and results do not follow each other");
    if (is_result) {
      if (message.role != "tool" || message.tool_call_id != wanted.front()) {
        return broken_state("a result belongs to another call");
      }
      wanted.erase(wanted.begin());
      const auto found = calls_.find(message.tool_call_id);
      if (found != calls_.end()) found->second.message = i;
      continue;
    }
    if (message.role != (kinds_[i] == Kind::answer ? "assistant" : "user") &&
        kinds_[i] != Kind::system) {
      return broken_state("a message has the role of another");
    }
    if (message.content.empty() && message.tool_calls.empty()) {
      return broken_state("a message has no text");
    }
    for (const ChatToolCall& call : message.tool_calls) wanted.push_back(call.id);
  }
  for (const auto& [id, call] : calls_) {
    const bool is_open = call.state == State::open || call.state == State::held;
    const bool is_wanted = std::ranges::find(wanted, id) != wanted.end();
    if (is_open != is_wanted) return broken_state("a call has no result, or two");
    if (call.state == State::placeholder && call.message == 0) {
      return broken_state("a call has no placeholder");
    }
    open_ += call.state == State::open ? 1 : 0;
  }
  if (wanted.empty()) {
    for (const std::string& id : round_) {
      if (!calls_.contains(id)) return broken_state("a call of the last answer is unknown");
    }
    return {};
  }
  if (wanted != round_ || open_ == 0) return broken_state("its last answer has other calls");
  for (const std::string& id : round_) {
    if (!calls_.contains(id)) return broken_state("a call of the last answer is unknown");
  }
  return {};
}

std::vector<std::string> RunHistory::unanswered() const {
  std::vector<std::string> ids;
  for (const auto& [id, call] : calls_) {
    if (call.state == State::open || call.state == State::placeholder) ids.push_back(id);
  }
  return ids;
}

}  // namespace sluice
