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
  bool quiet = false;    // no figures after the answer
  bool as_json = false;  // one object instead of text; for single questions
};

/// A conversation with a server, in a terminal or for a script. The client and the interrupts
/// outlive it.
class Chat {
 public:
  Chat(AnswerClient& client, Interrupts& interrupts, Conversation conversation,
       ChatOptions options);

  /// Asks one question and prints the answer. Returns the program's exit code.
  int once(const std::string& question);
  /// Asks what the user types, until they leave. Returns the program's exit code.
  int interact();

 private:
  struct Answer {
    std::string text;
    std::string reasoning;
    AnswerEnd end;
    AnswerStats stats;
    bool gave_up = false;  // interrupted again while stopping
  };
  class View;

  /// Asks and shows what comes, until the answer ends or the user does not want to wait for that.
  Answer ask(const std::string& question, View& view);
  int finish_json(const Answer& answer);
  /// Reads one question, which a backslash at the end of a line continues. Nothing: leave.
  std::optional<std::string> read_question(LineEditor& editor);
  /// False: leave.
  bool command(const std::string& line);

  AnswerClient* client_;
  Interrupts* interrupts_;
  Conversation conversation_;
  ChatOptions options_;
};

}  // namespace sluice
