#include "cli/chat/conversation.hpp"

#include <utility>

namespace sluice {

Conversation::Conversation(std::string system, json::object params)
    : system_(std::move(system)), params_(std::move(params)) {
  reset();
}

void Conversation::ask(std::string_view question) {
  messages_.push_back({{"role", "user"}, {"content", question}});
}

void Conversation::answer(std::string_view text) {
  if (text.empty()) {
    messages_.pop_back();
  } else {
    messages_.push_back({{"role", "assistant"}, {"content", text}});
  }
}

void Conversation::reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
}

json::object Conversation::params() const {
  json::object params = params_;
  params["messages"] = messages_;
  return params;
}

}  // namespace sluice
