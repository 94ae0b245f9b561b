#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "engine/llama/answer/stop_matcher.hpp"

namespace sluice {

/// How a model marks its reasoning.
struct ReasoningMarks {
  std::string start = "<think>";
  std::vector<std::string> ends = {"</think>"};
};

/// Separates reasoning from answer in text that arrives in pieces. Reasoning is what stands between
/// the marks if the text begins with the start mark (after white space), or from the beginning if
/// the prompt already ended with it. The marks, and white space directly behind them, vanish.
class ReasoningSplitter {
 public:
  /// `open`: the prompt already ended inside the reasoning.
  ReasoningSplitter(ReasoningMarks marks, bool open);

  /// Takes the next piece; appends to `out` what is decided, as text and reasoning.
  void push(std::string_view piece, std::vector<Delta>& out);
  /// No more comes: appends what was held back.
  void finish(std::vector<Delta>& out);

 private:
  enum class State : std::uint8_t { start, reasoning, answer };

  void emit(std::string_view text, std::vector<Delta>& out);
  void begin(State state);

  const std::string start_;
  StopMatcher ends_;
  State state_ = State::start;
  bool skip_space_ = false;
  std::string held_;  // in State::start: white space and what may become the start mark
};

}  // namespace sluice
