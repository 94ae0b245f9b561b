#include "engine/openai/response_chain.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "json/json.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

std::vector<ChatMessage> conversation_of(const GenerationRequest& request) {
  if (!request.messages.empty()) return request.messages;
  return {{.role = "user", .content = request.prompt}};
}

}  // namespace

void ResponseChain::forget() {
  messages_ = {};
  answer_ = {.role = "assistant", .content = {}};
  bytes_ = 0;
  is_too_long_ = false;
  response_id_.clear();
}

void ResponseChain::begin(const GenerationRequest& request) {
  forget();
  principal_ = request.principal;
  for (const ChatMessage& message : request.messages) bytes_ += text_bytes(message);
  is_too_long_ = bytes_ + request.prompt.size() > kMaxBytes;
  if (!is_too_long_) messages_ = conversation_of(request);
}

void ResponseChain::note(const Delta& said) {
  if (is_too_long_) return;
  bytes_ += said.text.size();
  if (bytes_ > kMaxBytes) {
    forget();
    is_too_long_ = true;
    return;
  }
  if (said.kind == Delta::Kind::text) answer_.content.append(said.text);
  if (said.kind != Delta::Kind::tool_call) return;
  const Result<json::value> call = parse_json(said.text);
  const json::object* const arguments =
      call && call->is_object() ? object_at(call->get_object(), "arguments") : nullptr;
  if (arguments == nullptr) return;
  answer_.tool_calls.push_back(
      {.id = said.call->id, .name = said.call->name, .arguments = to_json(*arguments)});
}

void ResponseChain::finish(std::string_view response_id) {
  if (!is_too_long_) response_id_ = response_id;
}

bool ResponseChain::is_answer(const ChatMessage& message) const {
  return message.role == answer_.role && message.content == answer_.content &&
         std::ranges::equal(message.tool_calls, answer_.tool_calls,
                            [](const ChatToolCall& one, const ChatToolCall& other) {
                              return one.name == other.name &&
                                     is_same_json(one.arguments, other.arguments);
                            });
}

std::optional<std::vector<ChatMessage>> ResponseChain::continuation(
    const GenerationRequest& request) const {
  const std::vector<ChatMessage>& all = request.messages;
  const std::size_t known = messages_.size();
  if (!is_set() || request.principal != principal_ || all.size() < known + 2) return std::nullopt;
  if (!std::equal(messages_.begin(), messages_.end(), all.begin()) || !is_answer(all[known])) {
    return std::nullopt;
  }
  std::vector<ChatMessage> rest(all.begin() + static_cast<std::ptrdiff_t>(known) + 1, all.end());
  // A client that was told no ids has its own, or none; results then answer the calls in order.
  const std::vector<ChatToolCall>& theirs = all[known].tool_calls;
  std::size_t next = 0;
  for (ChatMessage& message : rest) {
    if (message.role != "tool") break;
    const auto call = std::ranges::find(theirs, message.tool_call_id, &ChatToolCall::id);
    const bool is_named = !message.tool_call_id.empty() && call != theirs.end();
    const std::size_t at = is_named ? static_cast<std::size_t>(call - theirs.begin()) : next++;
    if (at < answer_.tool_calls.size()) message.tool_call_id = answer_.tool_calls[at].id;
  }
  return rest;
}

}  // namespace sluice
