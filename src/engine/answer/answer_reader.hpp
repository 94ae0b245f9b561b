#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/reasoning_splitter.hpp"
#include "engine/answer/stop_matcher.hpp"
#include "engine/answer/utf8_assembler.hpp"
#include "engine/engine.hpp"

namespace sluice {

struct ParsedCall {
  std::string name;
  std::string json;  // {"name","arguments"}
};

/// A model's raw text, parsed according to its format.
struct ParsedAnswer {
  std::string reasoning;
  std::string text;
  std::vector<ParsedCall> tool_calls;
  bool begins_call = false;  // whether a text that is not whole has at least begun one
  bool has_calls = false;    // the same, and what has begun is certainly one
};

/// Parses a format that has more structure than marks around the reasoning.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  /// Parses the text from its beginning. `whole` says that the text is complete: its tool calls are
  /// those that are, and what the model has written besides them is text, whatever it looks like.
  /// Returns nothing if the text does not fit the format.
  virtual std::optional<ParsedAnswer> parse(const std::string& raw, bool whole) = 0;
};

/// Turns the bytes of a model's tokens into deltas: it completes characters, separates reasoning
/// from text, ends the text before a stop string, and adds tool calls at the end, with random ids.
class AnswerReader {
 public:
  enum class Ending : std::uint8_t {
    text,
    calls,     // there are tool calls
    cut_call,  // it broke off in a tool call or after it, so that its calls are lost
  };

  struct Options {
    std::vector<std::string> stops = {};      // strings that end the text
    std::vector<std::string> raw_stops = {};  // strings that also end reasoning and tool calls
    ReasoningMarks marks = {};                // used if there is no parser
    bool reasoning_open = false;
    std::unique_ptr<AnswerParser> parser = {};
  };

  explicit AnswerReader(Options options);

  /// Takes the bytes of the next token and appends to `out` the deltas that are certain now.
  /// Returns true if a stop string has been found: the answer ends here, and finish() must be
  /// called.
  bool push(std::string_view bytes, std::vector<Delta>& out);
  /// Whether what it has taken so far ends in the text, rather than in the reasoning or in a call.
  [[nodiscard]] bool is_in_text();
  /// Ends the answer. `whole` says that the model stopped by itself or at a stop string, not in the
  /// middle of the answer.
  Ending finish(bool whole, std::vector<Delta>& out);

 private:
  void read(std::string_view text, std::vector<Delta>& out);
  void emit(std::vector<Delta>& from, std::vector<Delta>& out);
  void emit_parsed(const ParsedAnswer& answer, std::vector<Delta>& out);

  Utf8Assembler assembler_;
  StopMatcher raw_stops_;
  ReasoningSplitter splitter_;
  StopMatcher stops_;
  std::unique_ptr<AnswerParser> parser_;
  std::string raw_;             // all text so far, for the parser
  std::size_t parsed_ = 0;      // the length of raw_ when it was last parsed
  bool in_calls_ = false;       // no more than its calls is expected
  ParsedAnswer seen_;           // the part that has been passed on
  std::vector<Delta> scratch_;  // empty between calls
  bool stopped_ = false;
};

}  // namespace sluice
