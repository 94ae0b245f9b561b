#pragma once

#include <memory>
#include <string>

namespace sluice {

class Interrupts;

/// Reads lines from a terminal, with editing and a history that is kept in a file (libedit).
class LineEditor {
 public:
  enum class Result : unsigned char { line, end_of_input, interrupted };

  /// Reads standard input and echoes to standard output. `history_file` may be empty; its folder is
  /// created when needed. `interrupts` must outlive the editor.
  LineEditor(Interrupts& interrupts, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Shows `prompt` and reads a line, without its line break. A block that the user pastes is a
  /// part of the line, with its line breaks. `colour` is a terminal sequence or empty. If the user
  /// interrupts, `line` holds what was typed so far.
  Result read(const std::string& prompt, const std::string& colour, std::string& line);
  /// Adds a line to the history and saves the history.
  void remember(const std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// $XDG_STATE_HOME/sluice/chat_history, or the same below ~/.local/state. Empty if HOME is not set
/// either.
std::string default_history_file();

}  // namespace sluice
