#pragma once

#include <common/chat.h>
#include <cstdint>
#include <llama.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/answer/answer_reader.hpp"
#include "engine/chat/chat_template.hpp"
#include "engine/engine.hpp"
#include "engine/grammar/grammar.hpp"
#include "engine/llama/chat/control_texts.hpp"
#include "engine/llama/chat/member_budget.hpp"

namespace sluice {

/// A request rendered for the model, and how to read the model's answer.
struct ChatPrompt {
  std::string text;
  /// Stands in `text` where it must be tokenized in parts, as these belong to what others have
  /// written. Empty: nowhere.
  std::string mark;
  AnswerReader::Options reader;
  std::vector<std::string> visible_tokens;      // control tokens that belong to the answer's format
  std::shared_ptr<const Grammar> tool_grammar;  // what tool calls must match, or null
  bool grammar_lazy = false;  // the grammar applies only from its first trigger on
  std::vector<common_grammar_trigger> grammar_triggers;
  std::string generation_prompt;  // the beginning of the answer, at the end of `text`
};

/// A model's chat template. Thread-safe.
class ChatFormat {
 public:
  /// Reads the template of `model`, which must outlive this object. If the template cannot be used
  /// or does not exist, ChatML is used for messages; is_explicit() tells. `own` is used instead if
  /// it has a template, and its tokens if `model` is null. Throws a std::exception if `own` cannot
  /// be used.
  explicit ChatFormat(const llama_model* model, const ChatTemplateText& own = {});

  /// Whether the model has a chat template of its own.
  [[nodiscard]] bool is_explicit() const { return explicit_; }

  /// Whether rendering may take much longer than a millisecond, even for short messages.
  [[nodiscard]] bool is_large() const { return large_; }

  /// Whether the template takes messages of a user and an assistant in turn, but no two of a user
  /// in a row. Renders both.
  [[nodiscard]] bool alternates() const;

  /// The text of `prompt` for a model that tokenizes all of it at once: `between` stands in it
  /// where it would have a control token that others have written.
  [[nodiscard]] std::string joined_text(const ChatPrompt& prompt, std::string_view between) const {
    return controls_.joined(prompt.text, prompt.mark, between);
  }

  /// Renders `request`: its messages, or its prompt as one user message, with its tools. Control
  /// tokens are those of the template alone; what looks like one elsewhere is broken up. A schema
  /// or grammar is not examined; its presence turns reasoning off. Errors: -32602 for messages that
  /// the template refuses, for invalid tool definitions, for tools whose parameters cannot be
  /// followed, and for those that exceed `budget`. The error names the tool.
  Result<ChatPrompt> render(const GenerationRequest& request, MemberBudget budget = {}) const;

 private:
  [[nodiscard]] const common_chat_templates* templates_for(bool has_tools) const {
    return has_tools && tool_templates_ != nullptr ? tool_templates_.get() : templates_.get();
  }
  void learn_marks(const std::string& bos, const std::string& eos);
  /// Puts `mark` where `tools` must be broken up. Returns whether there is such a place.
  bool break_up(std::vector<common_chat_tool>& tools, std::string_view mark) const;

  mutable std::mutex mutex_;  // the template's interpreter is not documented as thread-safe
  common_chat_templates_ptr templates_;
  common_chat_templates_ptr tool_templates_;  // null: `templates_` are for tools too
  bool explicit_ = false;
  bool large_ = false;
  bool needs_parser_ = false;  // the format has more structure than marks around the reasoning
  ReasoningMarks marks_;
  std::vector<std::string> stops_;
  std::vector<std::string> visible_tokens_;
  ControlTexts controls_;
};

}  // namespace sluice
