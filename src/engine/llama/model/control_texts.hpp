#pragma once

#include <bitset>
#include <cstddef>
#include <llama.h>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"

namespace sluice {

/// The texts that a tokenizer takes for the tokens of a model's format, wherever they stand. What
/// others have written is broken up where it has such a text, so that it stays text. Immutable.
class ControlTexts {
 public:
  /// Those of the control tokens of `vocab`, of the tokens that end an answer, and of those that
  /// its makers have added and that are no words.
  explicit ControlTexts(const llama_vocab* vocab);
  /// Texts of one character are left out: they cannot be broken up.
  explicit ControlTexts(std::vector<std::string> texts);

  /// Puts `mark` behind the first character of each of these in `text`, also if only its beginning
  /// stands at the end of `text`. So none is left that begins in `text`, whatever follows, if the
  /// text on each side of a mark is tokenized by itself. Returns whether there was one.
  bool break_up(std::string& text, std::string_view mark) const;
  /// The same for the names and strings in `text`, which is JSON.
  bool break_up_json(std::string& text, std::string_view mark) const;

 private:
  /// Whether `text` begins with one of these, or is the beginning of one.
  [[nodiscard]] bool begins(std::string_view text) const;
  [[nodiscard]] bool is_first(char c) const { return firsts_[static_cast<unsigned char>(c)]; }
  bool break_up_value(json::value& value, std::string_view mark) const;

  std::vector<std::string> texts_;  // sorted
  std::bitset<256> firsts_;         // their first bytes
};

}  // namespace sluice
