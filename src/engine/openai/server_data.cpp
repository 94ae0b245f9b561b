#include "engine/openai/server_data.hpp"

#include <array>
#include <span>

#include "json/members.hpp"

namespace sluice {
namespace {

/// Texts of a message, which come in pieces (DeepSeek, Thinking Mode, Tool Calls).
constexpr std::array<std::string_view, 1> kOfMessages = {"reasoning_content"};
/// Objects of a call, each of which comes whole (Gemini, OpenAI compatibility, Thought signatures).
constexpr std::array<std::string_view, 1> kOfCalls = {"extra_content"};

/// Adds the members of these names that are of this kind. What was kept may be damaged.
void add_members(const json::object* from, std::span<const std::string_view> names, json::kind kind,
                 json::object& to) {
  for (const std::string_view name : names) {
    const json::value* const value = from == nullptr ? nullptr : from->if_contains(name);
    if (value != nullptr && value->kind() == kind) to[name] = *value;
  }
}

}  // namespace

bool ServerData::hold(std::size_t bytes) {
  bytes_ += bytes;
  return bytes_ <= kMaxBytes;
}

void ServerData::take_message(const json::object& delta) {
  for (const std::string_view name : kOfMessages) {
    const std::string_view piece = text_at(delta, name);
    if (piece.empty() || !hold(piece.size())) continue;
    json::value& text = message_[name];
    if (!text.is_string()) text.emplace_string();
    text.get_string().append(piece);
  }
}

void ServerData::take_call(std::size_t call, const json::object& piece) {
  for (const std::string_view name : kOfCalls) {
    const json::object* const given = object_at(piece, name);
    if (given == nullptr || !hold(to_json(*given).size())) continue;
    calls_[call][name] = *given;
  }
}

std::string ServerData::kept(std::string_view server) const {
  const bool has_some = !message_.empty() || !calls_.empty();
  if (!has_some || bytes_ > kMaxBytes) return {};
  json::object calls;
  for (const auto& [at, members] : calls_) calls[std::to_string(at)] = members;
  return to_json(
      json::object{{"server", server}, {"message", message_}, {"calls", std::move(calls)}});
}

void give_back(std::string_view kept, std::string_view server, json::object& message) {
  if (kept.empty()) return;
  const auto parsed = parse_json(kept);
  const json::object* const data = parsed ? parsed->if_object() : nullptr;
  if (data == nullptr || text_at(*data, "server") != server) return;
  add_members(object_at(*data, "message"), kOfMessages, json::kind::string, message);
  const json::object* const calls = object_at(*data, "calls");
  if (calls == nullptr) return;
  std::size_t at = 0;
  for (json::value& call : message["tool_calls"].as_array()) {
    add_members(object_at(*calls, std::to_string(at++)), kOfCalls, json::kind::object,
                call.as_object());
  }
}

}  // namespace sluice
