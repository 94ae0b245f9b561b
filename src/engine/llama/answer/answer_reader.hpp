#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "engine/llama/answer/reasoning_splitter.hpp"
#include "engine/llama/answer/stop_matcher.hpp"
#include "engine/llama/answer/utf8_assembler.hpp"

namespace sluice {

/// What a model's raw text means in its own format.
struct ParsedAnswer {
  std::string reasoning;
  std::string text;
  std::vector<std::string> tool_calls;  // each as JSON {"name","arguments"}
};

/// Reads a format that needs more than marks around the reasoning.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  /// Parses everything from the first character on. `whole`: the text is complete, so are its tool
  /// calls. Nothing if the text does not fit the format.
  virtual std::optional<ParsedAnswer> parse(const std::string& raw, bool whole) = 0;
};

/// Turns the bytes of a model's tokens into deltas: whole characters, reasoning apart from text,
/// nothing from a stop string on, and tool calls at the end.
class AnswerReader {
 public:
  struct Options {
    std::vector<std::string> stops = {};      // that end the text
    std::vector<std::string> raw_stops = {};  // that end it also amid reasoning and tool calls
    ReasoningMarks marks = {};                // if there is no parser
    bool reasoning_open = false;
    std::unique_ptr<AnswerParser> parser = {};
  };

  explicit AnswerReader(Options options);

  /// Takes the bytes of the next token and appends to `out` what is decided. True: a stop string
  /// came up; the answer ends here, call finish().
  bool push(std::string_view bytes, std::vector<Delta>& out);
  /// No more comes. `whole`: the model ended by itself or at a stop string, not amid the answer.
  /// True if the answer has tool calls.
  bool finish(bool whole, std::vector<Delta>& out);

 private:
  void read(std::string_view text, std::vector<Delta>& out);
  void emit(std::vector<Delta>& from, std::vector<Delta>& out);
  void emit_parsed(const ParsedAnswer& answer, std::vector<Delta>& out);

  Utf8Assembler assembler_;
  StopMatcher raw_stops_;
  ReasoningSplitter splitter_;
  StopMatcher stops_;
  std::unique_ptr<AnswerParser> parser_;
  std::string raw_;             // for the parser
  std::size_t parsed_ = 0;      // the length of raw_ when it was last parsed
  ParsedAnswer seen_;           // what of it has been passed on
  std::vector<Delta> scratch_;  // between calls empty
  bool stopped_ = false;
};

}  // namespace sluice
