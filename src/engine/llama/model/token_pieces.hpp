#pragma once

#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// The bytes of all tokens of a vocabulary, sorted, so that common prefixes are examined only once.
/// Excludes tokens that end an answer and tokens without bytes. Immutable.
class TokenPieces {
 public:
  struct Piece {
    llama_token token = 0;
    std::uint32_t shared = 0;  // leading bytes in common with the previous piece
    bool control = false;      // a control token, which marks the model's format and is not text
    std::size_t at = 0;
    std::size_t size = 0;
  };

  /// `vocab` may be null, which means that there are no tokens.
  explicit TokenPieces(const llama_vocab* vocab);

  [[nodiscard]] const std::vector<Piece>& sorted() const { return pieces_; }
  [[nodiscard]] std::string_view bytes(const Piece& piece) const {
    return std::string_view(bytes_).substr(piece.at, piece.size);
  }
  /// The bytes of `token`; empty if it is excluded.
  [[nodiscard]] std::string_view bytes_of(llama_token token) const;
  [[nodiscard]] bool is_control(llama_token token) const;
  /// The tokens that end an answer.
  [[nodiscard]] const std::vector<llama_token>& ends() const { return ends_; }
  /// The length of the longest piece.
  [[nodiscard]] std::size_t longest() const { return longest_; }

 private:
  std::string bytes_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> places_;  // by token: its index in pieces_, or the size of pieces_
  std::vector<llama_token> ends_;
  std::size_t longest_ = 0;
};

}  // namespace sluice
