#pragma once

#include <common/chat.h>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer/answer_reader.hpp"

namespace sluice {

/// Parses an answer with the parser that llama.cpp made for a chat template. Where that gives up on
/// a whole answer, which a model may write that nothing constrains, the calls in it are looked for
/// one by one.
class TemplateParser final : public AnswerParser {
 public:
  explicit TemplateParser(const common_chat_params& params);

  std::optional<ParsedAnswer> parse(const std::string& raw, bool whole) override;

 private:
  class CallReader;

  [[nodiscard]] ParsedAnswer parse_part(const std::string& raw) const;
  [[nodiscard]] ParsedAnswer parse_whole(const std::string& raw) const;
  /// As llama.cpp parses it; what is behind its first fault is text.
  [[nodiscard]] ParsedAnswer parse_at_once(const std::string& raw) const;
  /// Where the first text that begins a call is, from `from` on; npos: there is none.
  [[nodiscard]] std::size_t next_start(const std::string& raw, std::size_t from) const;
  /// The same outside of the reasoning.
  [[nodiscard]] std::size_t first_start(const std::string& raw) const;

  common_chat_parser_params params_;
  std::vector<std::string> call_starts_;  // texts that begin a call
  std::string call_rule_;                 // of the parser, for one or more calls; empty: none
};

}  // namespace sluice
