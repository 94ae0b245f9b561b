#include "engine/llama/model/token_pieces.hpp"

#include <algorithm>

namespace sluice {

TokenPieces::TokenPieces(const llama_vocab* vocab) {
  const llama_token count = vocab == nullptr ? 0 : llama_vocab_n_tokens(vocab);
  std::string piece(256, '\0');
  for (llama_token token = 0; token < count; ++token) {
    if (llama_vocab_is_eog(vocab, token)) {
      ends_.push_back(token);
      continue;
    }
    const auto capacity = static_cast<std::int32_t>(piece.size());
    std::int32_t size = llama_token_to_piece(vocab, token, piece.data(), capacity, 0, true);
    if (size < 0) {
      piece.resize(static_cast<std::size_t>(-size));
      size = llama_token_to_piece(vocab, token, piece.data(), -size, 0, true);
    }
    if (size <= 0) continue;
    const auto length = static_cast<std::size_t>(size);
    pieces_.push_back({.token = token,
                       .control = llama_vocab_is_control(vocab, token),
                       .at = bytes_.size(),
                       .size = length});
    bytes_.append(piece, 0, length);
    longest_ = std::max(longest_, length);
  }
  std::ranges::sort(pieces_, {}, [this](const Piece& piece) { return bytes(piece); });
  places_.assign(static_cast<std::size_t>(count), static_cast<std::uint32_t>(pieces_.size()));
  std::string_view before;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::string_view text = bytes(pieces_[i]);
    pieces_[i].shared =
        static_cast<std::uint32_t>(std::ranges::mismatch(before, text).in2 - text.begin());
    places_[static_cast<std::size_t>(pieces_[i].token)] = static_cast<std::uint32_t>(i);
    before = text;
  }
}

std::string_view TokenPieces::bytes_of(llama_token token) const {
  const auto index = static_cast<std::size_t>(token);
  if (index >= places_.size() || places_[index] >= pieces_.size()) return {};
  return bytes(pieces_[places_[index]]);
}

bool TokenPieces::is_control(llama_token token) const {
  const auto index = static_cast<std::size_t>(token);
  return index < places_.size() && places_[index] < pieces_.size() &&
         pieces_[places_[index]].control;
}

}  // namespace sluice
