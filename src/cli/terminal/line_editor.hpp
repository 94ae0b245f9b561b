#pragma once

#include <memory>
#include <string>

namespace sluice {

class Interrupts;

/// A line typed on a terminal, with editing and a history that outlives the program (libedit).
class LineEditor {
 public:
  enum class Result : unsigned char { line, end_of_input, interrupted };

  /// Reads standard input, echoes to standard output. `history_file` may be empty; its folder is
  /// made when needed. `interrupts` outlives the editor.
  LineEditor(Interrupts& interrupts, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Shows `prompt` (`colour` is a terminal sequence or empty) and reads a line without its end.
  /// Interrupted: what was typed is in `line`.
  Result read(const std::string& prompt, const std::string& colour, std::string& line);
  /// Adds a line to the history, and saves it.
  void remember(const std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// $XDG_STATE_HOME/sluice/chat_history, or below ~/.local/state; empty without a home.
std::string default_history_file();

}  // namespace sluice
