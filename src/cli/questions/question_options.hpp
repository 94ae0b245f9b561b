#pragma once

#include <string>

#include "core/error.hpp"
#include "sluice/client.hpp"

namespace sluice {

class Subcommand;

/// What a user says of the questions of a server.
struct QuestionOptions {
  std::string sampling = "ask";
  std::string model;  // GGUF file; empty: the built-in one
};

/// Adds --sampling and --model. `options` must outlive the parsing.
void add_question_options(Subcommand& command, QuestionOptions& options);

/// Client options that answer the server's questions: terminal_answers(), and sampling if there is
/// a model and somebody who has allowed it or can be asked. Errors carry an exit code: a wrong
/// option, or a model that was asked for and cannot be used.
Result<ClientOptions> client_answers(const QuestionOptions& options);

}  // namespace sluice
