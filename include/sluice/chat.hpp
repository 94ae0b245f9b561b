#pragma once

// What is said to models, and how they choose their words.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// A call of a tool that the model has asked for.
struct ChatToolCall {
  std::string id = {};  // empty: none
  std::string name = {};
  std::string arguments = {};  // should be the JSON text of an object; who uses it checks that

  bool operator==(const ChatToolCall&) const = default;
};

/// An image for a model to see. Copies share its bytes.
struct ChatImage {
  std::string mime_type = {};                      // such as image/png
  std::shared_ptr<const std::string> base64 = {};  // the bytes of the file; never null

  bool operator==(const ChatImage&) const = default;
};

/// One turn of a conversation. `role` is "system", "user", "assistant" or "tool".
struct ChatMessage {
  std::string role = {};
  std::string content = {};
  std::vector<ChatToolCall> tool_calls = {};  // of an assistant
  // Of a tool's result: the id and the tool of the call that it answers. Empty: not told.
  std::string tool_call_id = {};
  std::string tool_name = {};
  std::vector<ChatImage> images = {};  // of a user or a tool, beside `content`
  /// Of an assistant that calls tools: what the server of its model has given with that and demands
  /// back (JSON). For the engine of that server alone. Empty: nothing.
  std::string server_data = {};

  bool operator==(const ChatMessage&) const = default;
};

/// How the next token is chosen. The defaults are those of llama.cpp.
struct SamplingParams {
  /// 0: always the most likely token. Absent: the value that the model's file recommends, or 0.8.
  std::optional<float> temperature = {};
  int top_k = 40;       // 0: off
  float top_p = 0.95F;  // 1: off
  float min_p = 0.05F;  // 0: off
  float repeat_penalty = 1.0F;
  float frequency_penalty = 0.0F;
  float presence_penalty = 0.0F;
  int penalty_last_n = 64;                 // -1: the whole context
  std::optional<std::uint32_t> seed = {};  // absent: drawn from the CSPRNG
};

}  // namespace sluice
