#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/openai/answer_decoder.hpp"

namespace sluice {

/// Decodes the stream of POST /v1/responses (OpenAI, Responses, streaming; Open Responses), as
/// OpenAI, llama-server, vLLM, Ollama and others send it, and the messages of the same API over a
/// WebSocket.
///
/// Events are taken in the order in which they come. Their sequence numbers are not looked at,
/// because several servers have none. What an event is about is told by the item's id, the call's
/// id or the output index, whichever is known, and else it is the last call. The end of an item and
/// the end of its arguments hold, whatever the pieces were. A response that was not streamed is
/// taken too.
class ResponsesDecoder final : public AnswerDecoder {
 public:
  explicit ResponsesDecoder(AnswerOptions options = {}) : AnswerDecoder(std::move(options)) {}

  [[nodiscard]] std::string_view response_id() const override { return response_id_; }

 private:
  /// What is known of the item that is a call.
  struct Item {
    std::string id;
    std::optional<std::int64_t> output_index;
  };

  Result<void> take_object(std::string_view name, const json::object& event,
                           std::vector<Delta>& out) override;
  Result<std::optional<Completion::Reason>> reason() override;

  void take_text(const json::object& event, std::vector<Delta>& out);
  void take_reasoning(bool is_summary, const json::object& event, std::vector<Delta>& out);
  Result<void> take_item(bool is_done, const json::object& event, std::vector<Delta>& out);
  Result<void> take_arguments(bool is_done, const json::object& event, std::vector<Delta>& out);
  Result<void> take_response(std::string_view status, const json::object& response,
                             std::vector<Delta>& out);
  /// Takes from the whole output what the stream has not said.
  Result<void> take_output(const json::object& response, std::vector<Delta>& out);
  void take_usage(const json::object& usage);
  /// The call that an event is about; nothing if it is not known.
  [[nodiscard]] std::optional<std::size_t> find_call(
      std::string_view item_id, std::string_view call_id,
      std::optional<std::int64_t> output_index) const;
  /// Whether an item that is added or done is another call than `call`, whose ids it has. An item
  /// may be added twice before anything is said of it.
  [[nodiscard]] bool is_another(std::size_t call, bool is_done, const json::object& event,
                                const json::object& item) const;
  Result<std::size_t> begin_call(std::string_view item_id,
                                 std::optional<std::int64_t> output_index);

  std::vector<Item> items_;  // of calls, by their positions
  std::string response_id_;
  std::optional<Completion::Reason> reason_;
  std::optional<std::int64_t> summary_part_;  // of the reasoning that was summarized last
  bool has_text_ = false;
  bool has_reasoning_ = false;      // of either kind
  bool has_raw_reasoning_ = false;  // not summarized
};

}  // namespace sluice
