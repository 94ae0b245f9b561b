#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// What some servers of chat completions give with calls of tools and demand back with them in each
/// later request: DeepSeek its reasoning, Gemini a signature of each call. It is kept with the
/// message (ChatMessage::server_data), and no other server gets it. Bounded: of an answer that has
/// more than kMaxBytes of it, nothing is kept.
class ServerData {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;

  /// What a piece of the message has of it.
  void take_message(const json::object& delta);
  /// What a piece of the call at this position has of it.
  void take_call(std::size_t call, const json::object& piece);
  /// All of it, to be kept; empty: there is nothing. `server` names who has given it.
  [[nodiscard]] std::string kept(std::string_view server) const;

 private:
  [[nodiscard]] bool hold(std::size_t bytes);

  json::object message_;
  std::map<std::size_t, json::object> calls_;
  std::size_t bytes_ = 0;
};

/// Adds what was kept to the message that it came with, which has its `tool_calls`, if `server` has
/// given it.
void give_back(std::string_view kept, std::string_view server, json::object& message);

}  // namespace sluice
