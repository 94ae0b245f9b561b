#include <utility>

#include "engine/openai/answer_decoder.hpp"
#include "engine/openai/chat_decoder.hpp"
#include "engine/openai/responses_decoder.hpp"

namespace sluice {

std::unique_ptr<AnswerDecoder> make_decoder(ModelApi api, AnswerOptions options) {
  if (api == ModelApi::chat) return std::make_unique<ChatDecoder>(std::move(options));
  return std::make_unique<ResponsesDecoder>(std::move(options));
}

}  // namespace sluice
