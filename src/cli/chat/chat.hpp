#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/chat/answer_stats.hpp"
#include "cli/chat/conversation.hpp"
#include "client/answer_client.hpp"

namespace sluice {

class Interrupts;
class LineEditor;

struct ChatOptions {
  AnswerVia via = AnswerVia::sse;
  bool quiet = false;    // no statistics after the answer
  bool as_json = false;  // print one JSON object instead of text; for single questions
};

/// A conversation with a server, in a terminal or for a script. The client and the interrupts must
/// outlive it.
class Chat {
 public:
  Chat(AnswerClient& client, Interrupts& interrupts, Conversation conversation,
       ChatOptions options);

  /// Asks one question and prints the answer. Returns the program's exit code.
  int once(const std::string& question);
  /// Asks the questions that the user types, until they leave. Returns the program's exit code.
  int interact();

 private:
  struct Answer {
    std::string text;
    std::string reasoning;
    json::array tool_calls;
    AnswerEnd end;
    AnswerStats stats;
    bool gave_up = false;  // the user interrupted again while the answer was stopping
  };
  class View;

  /// Asks and shows the answer as it arrives, until it ends or the user no longer waits for its
  /// end.
  Answer ask(const std::string& question, View& view);
  int finish_json(const Answer& answer);
  /// Reads one question. A backslash at the end of a line continues it on the next line. Returns
  /// nothing if the user wants to leave.
  std::optional<std::string> read_question(LineEditor& editor);
  /// Runs a command such as "/help". Returns false if the user wants to leave.
  bool command(const std::string& line);

  AnswerClient* client_;
  Interrupts* interrupts_;
  Conversation conversation_;
  ChatOptions options_;
};

}  // namespace sluice
