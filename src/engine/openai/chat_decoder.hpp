#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/openai/answer_decoder.hpp"
#include "engine/openai/server_data.hpp"

namespace sluice {

/// Decodes the stream of POST /v1/chat/completions (OpenAI, Chat Completions, streaming), as
/// OpenAI, llama-server, vLLM, Ollama and others send it. Of several choices, the first is taken.
///
/// Pieces of a call belong together by their index. A piece begins another call if it has another
/// id or another name, whatever its index is. The same name begins another call once the arguments
/// are whole, unless the call has an id and the piece its index. A call that comes again whole,
/// under the id that it has, is one call.
class ChatDecoder final : public AnswerDecoder {
 public:
  explicit ChatDecoder(AnswerOptions options = {}) : AnswerDecoder(std::move(options)) {}

 private:
  Result<void> take_object(std::string_view name, const json::object& event,
                           std::vector<Delta>& out) override;
  Result<std::optional<Completion::Reason>> reason() override;
  [[nodiscard]] std::string server_data() const override {
    return server_data_.kept(options().server);
  }

  Result<void> take_choice(const json::object& choice, std::vector<Delta>& out);
  Result<void> take_call(const json::object& piece, std::vector<Delta>& out);
  /// Whether a piece begins another call than `call`, which has its index or is the last.
  bool begins_another(std::size_t call, bool has_index, std::string_view id, std::string_view name,
                      std::string_view arguments);
  /// Whether a piece of `call` says all of it once more.
  [[nodiscard]] bool repeats(std::size_t call, bool has_index, std::string_view id,
                             std::string_view name, std::string_view arguments) const;
  void take_usage(const json::object& usage);

  std::map<std::int64_t, std::size_t> positions_;  // of the last call with an index
  std::string finish_reason_;
  ServerData server_data_;
};

}  // namespace sluice
