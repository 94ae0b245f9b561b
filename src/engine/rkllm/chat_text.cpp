#include "engine/rkllm/chat_text.hpp"

#include <string_view>

namespace sluice::rkllm {
namespace {

constexpr std::string_view kBreak = "\n\n";

std::string_view speaker(const ChatMessage& message) {
  if (message.role == "assistant") return "Assistant: ";
  if (message.role == "tool") return "Tool: ";
  return message.role == "system" ? std::string_view() : "User: ";
}

}  // namespace

std::string chat_text(const std::vector<ChatMessage>& messages) {
  std::string instructions;
  std::string turns;
  std::size_t count = 0;
  for (const ChatMessage& message : messages) {
    std::string& to = message.role == "system" ? instructions : turns;
    if (!to.empty()) to.append(kBreak);
    to.append(speaker(message)).append(message.content);
    count += message.role == "system" ? 0 : 1;
  }
  // One turn needs no name in front of it.
  if (count == 1 && messages.back().role == "user") turns = messages.back().content;
  if (count > 1) turns.append(kBreak).append("Assistant:");
  if (instructions.empty()) return turns;
  return instructions.append(kBreak).append(turns);
}

}  // namespace sluice::rkllm
