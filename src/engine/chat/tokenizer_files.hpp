#pragma once

#include <cstddef>
#include <string>

#include "core/error.hpp"
#include "engine/chat/chat_template.hpp"

namespace sluice {

/// The most bytes of a file that these functions read, and of a template in it.
inline constexpr std::size_t kMaxTokenizerFile = std::size_t{16} << 20U;
inline constexpr std::size_t kMaxChatTemplate = std::size_t{1} << 20U;

/// Reads a chat template: a file in Jinja, or one in JSON whose name ends with ".json", as Hugging
/// Face's tokenizer_config.json, which also says which tokens there are. Errors name the file: 404,
/// it is not there; 403, it cannot be read; 413, it or its template is too long; 422, it is none.
Result<ChatTemplateText> read_chat_template(const std::string& path);

/// The template of the model at `model_path`: that of the file `path` if it is not empty, else of
/// chat_template.jinja or tokenizer_config.json in the model's folder, in this order. A template in
/// Jinja has its tokens from that tokenizer_config.json. Without any, its text is empty. Errors:
/// those above.
Result<ChatTemplateText> find_chat_template(const std::string& model_path, const std::string& path);

}  // namespace sluice
