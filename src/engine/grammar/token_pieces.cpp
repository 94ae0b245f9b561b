#include "engine/grammar/token_pieces.hpp"

#include <algorithm>

namespace sluice {

TokenPieces::TokenPieces(const std::vector<Entry>& vocabulary) {
  std::size_t count = 0;
  for (const Entry& each : vocabulary) {
    count = std::max(count, static_cast<std::size_t>(each.token) + 1);
    if (each.ends) {
      ends_.push_back(each.token);
    } else if (!each.bytes.empty()) {
      pieces_.push_back({.token = each.token,
                         .control = each.control,
                         .at = bytes_.size(),
                         .size = each.bytes.size()});
      bytes_ += each.bytes;
    }
  }
  std::ranges::sort(pieces_, {}, [this](const Piece& piece) { return bytes(piece); });
  places_.assign(count, static_cast<std::uint32_t>(pieces_.size()));
  std::string_view before;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::string_view text = bytes(pieces_[i]);
    pieces_[i].shared =
        static_cast<std::uint32_t>(std::ranges::mismatch(before, text).in2 - text.begin());
    places_[static_cast<std::size_t>(pieces_[i].token)] = static_cast<std::uint32_t>(i);
    before = text;
  }
}

std::string_view TokenPieces::bytes_of(TokenId token) const {
  const auto index = static_cast<std::size_t>(token);
  if (index >= places_.size() || places_[index] >= pieces_.size()) return {};
  return bytes(pieces_[places_[index]]);
}

bool TokenPieces::is_control(TokenId token) const {
  const auto index = static_cast<std::size_t>(token);
  return index < places_.size() && places_[index] < pieces_.size() &&
         pieces_[places_[index]].control;
}

}  // namespace sluice
