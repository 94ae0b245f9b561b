#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// What a server of models had left out of its stream, and the decoder has made up for.
struct ChatRepairs {
  bool index = false;          // of a tool call
  bool name_repeated = false;  // in each piece of a tool call
  bool finish_reason = false;  // the stream has ended without one

  bool operator==(const ChatRepairs&) const = default;
};

/// Decodes the stream of POST /v1/chat/completions (OpenAI, Chat Completions, streaming), as
/// OpenAI, llama-server, vLLM, Ollama and others send it. It is fed with the data of events.
/// Bounded: all calls of tools together take at most kMaxCallBytes.
class ChatDecoder {
 public:
  /// Takes one event, and adds what it says to `out`. The error is the server's own one, or says
  /// what cannot be read; nothing more may be fed then.
  Result<void> take(std::string_view data, std::vector<Delta>& out);
  /// Whether the server has said that nothing follows.
  [[nodiscard]] bool is_done() const { return is_done_; }
  /// The stream has ended or broken off. Adds the calls of tools, which are whole only now. Timings
  /// are left to the caller. The error says why this is no answer.
  Result<Completion> end(std::vector<Delta>& out);

  [[nodiscard]] const ChatRepairs& repairs() const { return repairs_; }
  /// Whether the stream has said anything of an answer.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

  static constexpr std::size_t kMaxCallBytes = std::size_t{4} << 20U;
  static constexpr std::size_t kMaxCalls = 128;

 private:
  struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;  // so far
  };

  Result<void> take_choice(const json::object& choice, std::vector<Delta>& out);
  Result<void> take_call(const json::object& call);
  /// The call that a piece without an index belongs to.
  [[nodiscard]] std::int64_t index_of(std::string_view id, std::string_view name) const;
  void take_usage(const json::object& usage);

  std::map<std::int64_t, ToolCall> calls_;  // by their index
  std::size_t call_bytes_ = 0;
  std::string finish_reason_;
  Usage usage_;
  ChatRepairs repairs_;
  bool has_begun_ = false;
  bool is_done_ = false;
};

/// The message of an error in a reply or an event: {"error": {"message": ...}} or {"error": "..."}.
/// On one line, and not long.
std::optional<std::string> model_error_of(const json::object& body);

}  // namespace sluice
