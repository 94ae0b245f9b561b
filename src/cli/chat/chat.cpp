#include "cli/chat/chat.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <variant>

#include "cli/chat/answer_queue.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/line_editor.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/word_wrap.hpp"
#include "engine/openai/model_refusal.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr const char* kHelp =
    "  /reset       start over\n"
    "  /help        show this\n"
    "  /quit        leave (also Ctrl-D, or Ctrl-C on an empty line)\n"
    "  Ctrl-C       stop the answer; press it again to leave\n"
    "  \\            at the end of a line: continue the question on the next line\n"
    "  A pasted block is one question, with all of its lines.\n";

/// How long to wait for a stopped answer to end.
constexpr auto kStopPatience = std::chrono::seconds(5);

/// Who refuses to answer without another key.
enum class KeyRefuser : std::uint8_t { nobody, server, model };

KeyRefuser key_refuser_of(const AnswerEnd& end) {
  if (end.outcome != AnswerEnd::Outcome::failed) return KeyRefuser::nobody;
  const std::string& message = end.error.message;
  if (const auto status = model_refusal_in(message)) {
    const bool is_about_keys = status == kUnauthorized || status == kForbidden;
    return is_about_keys ? KeyRefuser::model : KeyRefuser::nobody;
  }
  const bool is_about_keys = end.error.code == kUnauthorized || message.contains("API key");
  return is_about_keys ? KeyRefuser::server : KeyRefuser::nobody;
}

int exit_code_of(const AnswerEnd& end) {
  if (key_refuser_of(end) != KeyRefuser::nobody) return kExitAuthorization;
  switch (end.outcome) {
    case AnswerEnd::Outcome::complete:
      return kExitOk;
    case AnswerEnd::Outcome::cancelled:
      return kExitInterrupted;
    case AnswerEnd::Outcome::unreachable:
      return kExitUnreachable;
    case AnswerEnd::Outcome::failed:
      break;
  }
  return kExitFailure;
}

std::string explain(const AnswerEnd& end) {
  std::string message = end.error.message;
  if (end.outcome == AnswerEnd::Outcome::unreachable) {
    message = "cannot reach the server: " + message;
  }
  switch (key_refuser_of(end)) {
    case KeyRefuser::nobody:
      break;
    case KeyRefuser::server:
      message += " (give a key with --key or SLUICE_KEY)";
      break;
    case KeyRefuser::model:
      message +=
          " (set SLUICE_MODEL_KEY, for the sluice that has this --model, to a key of that "
          "server)";
      break;
  }
  return message;
}

/// Says so if the model did not finish its answer. This is no statistic: --quiet keeps it.
void warn_if_cut_off(const AnswerEnd& end, const json::object& params) {
  if (end.outcome != AnswerEnd::Outcome::complete || end.finish_reason != "length") return;
  const json::value* const limit = params.if_contains("max_tokens");
  const bool by_limit = limit != nullptr && limit->is_number() &&
                        (!end.completion_tokens ||
                         limit->to_number<double>() == static_cast<double>(*end.completion_tokens));
  complain(by_limit ? "the answer was cut off at the limit of --max-tokens"
                    : "the answer was cut off: the conversation has filled the model's context");
}

/// Ends because of `error`. Returns the program's exit code.
int leave(const Error& error) {
  complain(error.message);
  return error.code;
}

}  // namespace

/// Shows an answer as it arrives.
class Chat::View {
 public:
  enum class Mode : std::uint8_t { terminal, plain, silent };
  explicit View(Mode mode) : mode_(mode), style_(Style::of(STDOUT_FILENO)) {
    if (mode == Mode::terminal) use_utf8();
  }

  void show(AnswerDelta::Kind kind, const std::string& text) {
    if (mode_ == Mode::silent) return;
    if (mode_ == Mode::plain) {
      // A script gets the text of the answer and nothing else.
      if (kind == AnswerDelta::Kind::text) put(text);
      return;
    }
    if (kind != kind_) end_line();
    kind_ = kind;
    const std::size_t width = is_dumb_terminal() ? 0 : terminal_width(STDOUT_FILENO);
    std::string out = wrap_.wrap(printable(text), width);
    if (kind != AnswerDelta::Kind::text)
      out = std::string(style_.dim()) + out + std::string(style_.reset());
    put(out);
    if (!text.empty()) line_start_ = text.back() == '\n';
  }

  /// Moves the cursor to the beginning of a line, on a new line if necessary.
  void end_line() {
    if (mode_ == Mode::silent || line_start_) return;
    put("\n");
    line_start_ = true;
    wrap_.begin_line();
  }

  /// Why the answer is no longer shown, as of write_all().
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  void put(std::string_view text) {
    if (mode_ == Mode::plain && !text.empty()) line_start_ = text.back() == '\n';
    if (failure_) return;
    if (const auto written = write_all(STDOUT_FILENO, text); !written) failure_ = written.error();
  }

  Mode mode_;
  Style style_;
  WordWrap wrap_;
  AnswerDelta::Kind kind_ = AnswerDelta::Kind::text;
  bool line_start_ = true;
  std::optional<Error> failure_;
};

Chat::Chat(AnswerClient& client, Interrupts& interrupts, Conversation conversation,
           ChatOptions options)
    : client_(&client),
      interrupts_(&interrupts),
      conversation_(std::move(conversation)),
      options_(options) {}

Chat::Answer Chat::ask(const std::string& question, View& view) {
  conversation_.ask(question);
  AnswerQueue queue;
  AnswerRequest request;
  request.params = conversation_.params();
  Answer answer{.text = {},
                .reasoning = {},
                .tool_calls = {},
                .end = {},
                .stats = AnswerStats(std::chrono::steady_clock::now()),
                .gave_up = false};
  const auto pending = client_->ask(options_.via, std::move(request), queue);
  std::optional<TimePoint> stop_by;
  const auto stop = [&] {
    pending->cancel();
    stop_by = std::chrono::steady_clock::now() + kStopPatience;
  };
  for (bool ended = false; !ended;) {
    std::array<pollfd, 2> waits{{{queue.fd(), POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}}};
    constexpr int kTickMs = 200;
    if (::poll(waits.data(), waits.size(), stop_by ? kTickMs : -1) < 0 && errno != EINTR) break;
    if (interrupts_->take() || (view.failure() && !stop_by)) {
      if (stop_by) {
        answer.gave_up = true;
        break;
      }
      stop();
    }
    if (stop_by && std::chrono::steady_clock::now() > *stop_by) break;
    // One at a time: an answer may come faster than it can be shown, and interrupts count.
    if (auto event = queue.take()) {
      if (const auto* text = std::get_if<AnswerQueue::Text>(&*event)) {
        if (stop_by) continue;
        answer.stats.on_delta(text->at);
        if (text->kind == AnswerDelta::Kind::text) answer.text += text->text;
        if (text->kind == AnswerDelta::Kind::reasoning) answer.reasoning += text->text;
        if (text->kind == AnswerDelta::Kind::tool_call) {
          if (auto call = parse_json(text->text)) answer.tool_calls.push_back(*std::move(call));
        }
        view.show(text->kind, text->text);
      } else if (const auto* retry = std::get_if<AnswerQueue::Retry>(&*event)) {
        complain("connection lost (" + retry->why.message + "), trying again");
      } else {
        answer.end = std::get<AnswerEnd>(*event);
        ended = true;
      }
    }
  }
  queue.abandon();
  if (stop_by) answer.end.outcome = AnswerEnd::Outcome::cancelled;
  answer.stats.on_end(std::chrono::steady_clock::now(), answer.end);
  conversation_.answer(answer.text);
  return answer;
}

int Chat::once(const std::string& question) {
  using Mode = View::Mode;
  View view(options_.as_json ? Mode::silent
                             : (is_terminal(STDOUT_FILENO) ? Mode::terminal : Mode::plain));
  const Answer answer = ask(question, view);
  view.end_line();
  if (view.failure()) return leave(*view.failure());
  warn_if_cut_off(answer.end, conversation_.params());
  const bool failed = answer.end.outcome == AnswerEnd::Outcome::failed ||
                      answer.end.outcome == AnswerEnd::Outcome::unreachable;
  if (failed) complain(explain(answer.end));
  if (options_.as_json) return finish_json(answer);
  // In a terminal they are shown with the answer.
  if (!is_terminal(STDOUT_FILENO) && !answer.tool_calls.empty()) {
    complain("the model asks for calls of tools: " + to_json(answer.tool_calls));
  }
  if (!options_.quiet && !failed) {
    const Style style = Style::of(STDERR_FILENO);
    std::string line(style.dim());
    line.append("[").append(answer.stats.summary()).append("]").append(style.reset());
    line.push_back('\n');
    write_all(STDERR_FILENO, line);
  }
  return exit_code_of(answer.end);
}

int Chat::finish_json(const Answer& answer) {
  json::object out{{"text", answer.text}};
  if (!answer.reasoning.empty()) out["reasoning"] = answer.reasoning;
  if (!answer.tool_calls.empty()) out["tool_calls"] = answer.tool_calls;
  for (auto& [key, value] : answer.stats.to_object()) out[key] = value;
  const int code = exit_code_of(answer.end);
  if (code != kExitOk && code != kExitInterrupted) {
    out["error"] = {{"code", answer.end.error.code}, {"message", answer.end.error.message}};
  }
  const int printed = print(to_json(out) + "\n");
  return printed == kExitOk ? code : printed;
}

std::optional<std::string> Chat::read_question(LineEditor& editor) {
  const Style style = Style::of(STDOUT_FILENO);
  std::string question;
  for (;;) {
    std::string line;
    const auto result =
        editor.read(question.empty() ? "> " : "| ", std::string(style.cyan()), line);
    if (result == LineEditor::Result::end_of_input) {
      write_all(STDOUT_FILENO, "\n");
      return std::nullopt;
    }
    if (result == LineEditor::Result::interrupted) {
      write_all(STDOUT_FILENO, "\n");
      if ((line.empty() && question.empty()) || Interrupts::terminating()) return std::nullopt;
      question.clear();
      continue;
    }
    if (line.empty() && question.empty()) continue;
    if (!line.empty()) editor.remember(line);
    if (line.ends_with('\\')) {
      line.back() = '\n';
      question += line;
      continue;
    }
    return question + line;
  }
}

bool Chat::command(const std::string& line) {
  if (line == "/quit" || line == "/exit") return false;
  if (line == "/reset") {
    conversation_.reset();
    write_all(STDOUT_FILENO, "Started over.\n");
  } else {
    if (line != "/help") write_all(STDOUT_FILENO, "There is no command " + printable(line) + ".\n");
    write_all(STDOUT_FILENO, kHelp);
  }
  return true;
}

int Chat::interact() {
  LineEditor editor(*interrupts_, default_history_file());
  const Style style = Style::of(STDOUT_FILENO);
  write_all(STDOUT_FILENO, std::string(style.dim()) + "/help for help, Ctrl-D to leave" +
                               std::string(style.reset()) + "\n");
  while (const auto question = read_question(editor)) {
    // A pasted block that begins with a slash is rather a question.
    if (question->starts_with('/') && !question->contains('\n')) {
      if (!command(*question)) return kExitOk;
      continue;
    }
    View view(View::Mode::terminal);
    const Answer answer = ask(*question, view);
    view.end_line();
    if (answer.gave_up || Interrupts::terminating()) return kExitInterrupted;
    if (view.failure()) return leave(*view.failure());
    warn_if_cut_off(answer.end, conversation_.params());
    if (answer.end.outcome == AnswerEnd::Outcome::failed ||
        answer.end.outcome == AnswerEnd::Outcome::unreachable) {
      std::string message = explain(answer.end);
      if (message.contains("the context holds")) message += ", or start over with /reset";
      complain(message);
    } else if (!options_.quiet) {
      write_all(STDOUT_FILENO, std::string(style.dim()) + "[" + answer.stats.summary() + "]" +
                                   std::string(style.reset()) + "\n");
    }
  }
  return Interrupts::terminating() ? kExitInterrupted : kExitOk;
}

}  // namespace sluice
