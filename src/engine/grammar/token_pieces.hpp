#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

using TokenId = std::int32_t;

/// The bytes of all tokens of a vocabulary, sorted, so that common prefixes are examined only once.
/// Excludes tokens that end an answer and tokens without bytes. Immutable.
class TokenPieces {
 public:
  /// A token of the vocabulary.
  struct Entry {
    TokenId token = 0;  // 0 or more
    std::string bytes = {};
    bool control = false;
    bool ends = false;  // it ends an answer
  };
  struct Piece {
    TokenId token = 0;
    std::uint32_t shared = 0;  // leading bytes in common with the previous piece
    bool control = false;      // a control token, which marks the model's format and is not text
    std::size_t at = 0;
    std::size_t size = 0;
  };

  /// Each token occurs once. There may be none.
  explicit TokenPieces(const std::vector<Entry>& vocabulary);

  [[nodiscard]] const std::vector<Piece>& sorted() const { return pieces_; }
  [[nodiscard]] std::string_view bytes(const Piece& piece) const {
    return std::string_view(bytes_).substr(piece.at, piece.size);
  }
  /// The bytes of `token`; empty if it is excluded.
  [[nodiscard]] std::string_view bytes_of(TokenId token) const;
  [[nodiscard]] bool is_control(TokenId token) const;
  /// The tokens that end an answer.
  [[nodiscard]] const std::vector<TokenId>& ends() const { return ends_; }
  /// One more than the highest token; 0: there is none.
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  std::string bytes_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> places_;  // by token: its index in pieces_, or the size of pieces_
  std::vector<TokenId> ends_;
};

}  // namespace sluice
