#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/stop_matcher.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// How a model marks its reasoning.
struct ReasoningMarks {
  std::string start = "<think>";
  std::vector<std::string> ends = {"</think>"};
};

/// Separates reasoning from the answer in text that arrives in pieces. Reasoning is the text
/// between the marks if the text begins with the start mark (after white space); if the prompt
/// already ended with the start mark, reasoning starts at the beginning. The marks, and white space
/// directly after them, are removed.
class ReasoningSplitter {
 public:
  /// `open`: whether the prompt ended inside the reasoning.
  ReasoningSplitter(ReasoningMarks marks, bool open);

  /// Takes the next piece and appends to `out` what is certain to be text or reasoning.
  void push(std::string_view piece, std::vector<Delta>& out);
  /// Whether the reasoning, if there is any, is over.
  [[nodiscard]] bool is_in_text() const { return state_ == State::answer; }
  /// Ends the text and appends what was held back.
  void finish(std::vector<Delta>& out);

 private:
  enum class State : std::uint8_t { start, reasoning, answer };

  void emit(std::string_view text, std::vector<Delta>& out);
  void begin(State state);

  const std::string start_;
  StopMatcher ends_;
  State state_ = State::start;
  bool skip_space_ = false;
  std::string held_;  // in State::start: white space and what may be the start mark
};

}  // namespace sluice
