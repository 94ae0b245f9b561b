#pragma once

#include <bitset>
#include <cstddef>
#include <llama.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat_template.hpp"
#include "json/json.hpp"

namespace sluice {

/// The texts that a tokenizer takes for the tokens of a model's format, wherever they stand. What
/// others have written is broken up where it has such a text, so that it stays text. Immutable.
class ControlTexts {
 public:
  /// Those of the control tokens of `vocab`, of the tokens that end an answer, and of those that
  /// its makers have added and that are no words. `are_joined`: parts of what is broken up may be
  /// taken out afterwards, so that others come to stand side by side.
  ControlTexts(const llama_vocab* vocab, bool are_joined);
  /// The same of a tokenizer that only files tell of.
  static ControlTexts of(const ChatTemplateText& tokenizer, bool are_joined);
  /// Texts of one character are left out: they cannot be broken up.
  explicit ControlTexts(std::vector<std::string> texts, bool are_joined = false);

  /// Puts `mark` behind the first character of each of these in `text`, also if only its beginning
  /// stands at the end of `text`; if parts may be joined, behind each such character. So none is
  /// left that begins in `text`, whatever follows, if the text on each side of a mark is tokenized
  /// by itself. Returns whether there was one.
  bool break_up(std::string& text, std::string_view mark) const;
  /// The same for the names and strings in `text`, which is JSON. Some templates write the first
  /// character of one in front of a name, so `mark` is also put in front of a name that begins with
  /// the rest of one, if it has characters that names of parameters do not have.
  bool break_up_json(std::string& text, std::string_view mark) const;

  /// `text` without the marks that these functions have put into it. `between` stands in place of a
  /// mark that keeps one of these apart, so it is none although the text is tokenized as a whole.
  [[nodiscard]] std::string joined(std::string_view text, std::string_view mark,
                                   std::string_view between) const;

 private:
  /// Whether one of these may begin here.
  [[nodiscard]] bool may_begin(std::string_view text) const;
  [[nodiscard]] bool is_first(char c) const { return firsts_[static_cast<unsigned char>(c)]; }
  bool break_up_value(json::value& value, std::string_view mark) const;

  std::vector<std::string> texts_;  // sorted
  bool are_joined_;
  std::bitset<256> firsts_;  // their first bytes
  /// How these go on from a character that is no letter and no digit: templates look for names that
  /// are words. Sorted.
  std::vector<std::string> rests_;
  std::bitset<256> rest_firsts_;
};

}  // namespace sluice
