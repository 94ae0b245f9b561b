#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/grammar/token_pieces.hpp"
#include "json/json.hpp"

namespace sluice {

/// The most bytes of a tokenizer.json, and tokens in it.
inline constexpr std::size_t kMaxVocabularyFile = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxTokens = 1'000'000;

/// Which tokens end an answer.
struct AnswerEnds {
  std::vector<std::string> texts = {};
  std::vector<TokenId> tokens = {};
};

/// The file of a model's vocabulary, as Hugging Face's tokenizers write it.
inline constexpr std::string_view kVocabularyFile = "tokenizer.json";

/// The tokens of such a file. Those that its `model` has are bytes in the letters of GPT-2, or
/// texts with U+2581 for a blank and <0xNN> for a byte; its `decoder` says which. A token that is
/// neither has no bytes. Error 422, which begins in the middle of a sentence about the file.
Result<std::vector<TokenPieces::Entry>> parse_vocabulary(const json::object& file,
                                                         const AnswerEnds& ends);

/// The tokens of the model whose files are in `folder`: those of its tokenizer.json. The eos_token
/// of its tokenizer_config.json and the eos_token_id of its generation_config.json end an answer,
/// if there are such files. Takes up to some seconds. Errors name the file: 404, it is not there;
/// 403, it cannot be read; 413, it is too long; 422, it is something else, or no token ends an
/// answer.
Result<std::vector<TokenPieces::Entry>> read_vocabulary(const std::string& folder);

}  // namespace sluice
