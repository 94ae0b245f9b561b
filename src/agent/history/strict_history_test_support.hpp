#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace sluice {

/// Why a strict chat API would refuse `messages`; empty: it would not. `alternates`: users and
/// assistants must alternate, where answers with calls and their results do not count.
inline std::string why_not_strict(const std::vector<ChatMessage>& messages, bool alternates) {
  const auto at = [](std::size_t i, std::string what) {
    return "message " + std::to_string(i) + ": " + std::move(what);
  };
  bool expects_user = true;
  std::size_t i = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  for (; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == "tool") return at(i, "a result without a call");
    if (message.role != "user" && message.role != "assistant") return at(i, message.role);
    if (message.tool_calls.empty()) {
      if (message.content.empty()) return at(i, "empty");
      if (alternates && (message.role == "user") != expects_user)
        return at(i, "does not alternate");
      expects_user = message.role != "user";
      continue;
    }
    if (message.role != "assistant") return at(i, "calls of a user");
    if (alternates && expects_user) return at(i, "calls without a question");
    for (const ChatToolCall& call : message.tool_calls) {
      if (++i >= messages.size()) return at(i, "no result of " + call.id);
      if (messages[i].role != "tool") return at(i, "no result");
      if (messages[i].tool_call_id != call.id) return at(i, "not the result of " + call.id);
    }
  }
  if (messages.empty() || (messages.back().role == "assistant")) return "nothing to answer";
  return {};
}

}  // namespace sluice
