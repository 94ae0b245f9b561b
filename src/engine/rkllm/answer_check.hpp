#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json_schema/json_schema.hpp"

namespace sluice::rkllm {

/// Has an answer follow a JSON Schema although the runtime does not constrain it: the model is told
/// the schema, and asked again if the whole answer does not follow it.
class AnswerCheck {
 public:
  /// How often the model is asked again.
  static constexpr int kMoreTries = 2;

  /// Tells the model of the schema that `request` has. Error: -32602, it is no schema.
  static Result<AnswerCheck> begin(GenerationRequest& request);

  /// Takes a piece of the answer.
  void add(std::string_view text) { answer_ += text; }
  /// What is wrong with the whole answer; nothing: it follows the schema.
  [[nodiscard]] std::optional<std::string> fault() const;
  /// The JSON in the answer, without blanks or a Markdown fence around it.
  [[nodiscard]] std::string_view json() const;
  /// Whether the model may be asked again.
  [[nodiscard]] bool has_tries() const { return tries_ < kMoreTries; }
  /// Has `request` ask again: the answer and its fault become a part of the conversation. Only if
  /// has_tries().
  void ask_again(GenerationRequest& request, std::string_view fault);

 private:
  explicit AnswerCheck(JsonSchema schema) : schema_(std::move(schema)) {}

  JsonSchema schema_;
  std::string answer_;
  int tries_ = 0;  // besides the first
};

}  // namespace sluice::rkllm
