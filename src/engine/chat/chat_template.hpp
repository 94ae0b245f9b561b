#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/answer/answer_reader.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// A chat template, and what the files of its tokenizer say of tokens.
struct ChatTemplateText {
  std::string path = {};       // where it is from
  std::string text = {};       // Jinja; empty: there is none
  std::string tool_text = {};  // for requests with tools; empty: as for others
  std::string bos = {};
  std::string eos = {};
  std::vector<std::string> special_tokens = {};  // those that a tokenizer leaves out of texts
  std::vector<std::string> added_tokens = {};    // others that were added to the vocabulary
};

/// A request as a text for the model, and how to read its answer.
struct RenderedChat {
  std::string text;
  AnswerReader::Options reader;
};

/// The chat template of a model that takes text. Thread-safe.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  /// Renders the messages of `request`, or its prompt as one user message, with its tools. What
  /// looks like a control token in them is broken up. Takes about a second at most. Errors: -32602
  /// for what the template refuses, for tools that are none or cannot be followed, and for too many
  /// members in their objects.
  [[nodiscard]] virtual Result<RenderedChat> render(GenerationRequest request) const = 0;
  /// Whether the reasoning or the calls of its answers are marked with special tokens: then the
  /// model's runtime must put those out.
  [[nodiscard]] virtual bool needs_special_tokens() const = 0;
  /// Whether `piece` is a special token that does not belong to an answer.
  [[nodiscard]] virtual bool hides(std::string_view piece) const = 0;
};

}  // namespace sluice
