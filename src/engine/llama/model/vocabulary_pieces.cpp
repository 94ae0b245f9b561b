#include "engine/llama/model/vocabulary_pieces.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice {

static_assert(std::is_same_v<llama_token, TokenId>);

TokenPieces pieces_of(const llama_vocab* vocab) {
  const llama_token count = vocab == nullptr ? 0 : llama_vocab_n_tokens(vocab);
  std::vector<TokenPieces::Entry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  std::string piece(256, '\0');
  for (llama_token token = 0; token < count; ++token) {
    TokenPieces::Entry entry{.token = token,
                             .control = llama_vocab_is_control(vocab, token),
                             .ends = llama_vocab_is_eog(vocab, token)};
    const auto capacity = static_cast<std::int32_t>(piece.size());
    std::int32_t size = llama_token_to_piece(vocab, token, piece.data(), capacity, 0, true);
    if (size < 0) {
      piece.resize(static_cast<std::size_t>(-size));
      size = llama_token_to_piece(vocab, token, piece.data(), -size, 0, true);
    }
    if (size > 0) entry.bytes.assign(piece, 0, static_cast<std::size_t>(size));
    entries.push_back(std::move(entry));
  }
  return TokenPieces(entries);
}

}  // namespace sluice
