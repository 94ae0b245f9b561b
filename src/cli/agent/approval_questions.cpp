#include "cli/agent/approval_questions.hpp"

#include <algorithm>
#include <chrono>
#include <termios.h>
#include <unistd.h>
#include <utility>

#include "cli/questions/terminal_answers.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

/// How long nothing else is shown before a question is shown again.
constexpr Duration kRest = std::chrono::seconds(1);

/// Approves a call, or rejects it.
void decide(Run& run, const std::string& call_id, bool agrees, std::string_view reason = {}) {
  try {
    agrees ? run.approve(call_id) : run.reject(call_id, reason);
  } catch (const Error& error) {
    // The call has ended meanwhile.
    complain("agent: it is too late: " + error.message);
  }
}

}  // namespace

void ApprovalQuestions::ask(const json::object& event) {
  if (is_closed_) return;
  const std::string call_id(text_at(event, "call_id"));
  std::string tool = one_line(text_at(event, "tool"));
  if (options_.names_servers) tool += " of " + one_line(text_at(event, "server"));
  if (!options_.may_ask || !has_terminal_user()) {
    complain("agent: " + tool + " is not called, because it may change something; --yes allows it");
    return decide(*run_, call_id, false, "nobody is there to agree");
  }
  const json::value* const given = event.if_contains("arguments");
  const auto question = std::make_shared<Question>(
      Question{.call_id = call_id,
               .text = "Call " + tool + " with " +
                       (given == nullptr ? "nothing" : visible_json(to_json(*given))) +
                       "? It may change something. [y/N] "});
  const std::lock_guard lock(mutex_);
  waiting_.push_back(question);
  changed_.notify_one();
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& end) { work(end); });
  }
}

void ApprovalQuestions::withdraw(std::string_view call_id) {
  std::shared_ptr<Question> open;  // is stopped without the mutex
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const auto& each) { return each->call_id == call_id; });
    if (open_ != nullptr && open_->call_id == call_id) open = open_;
  }
  if (open != nullptr) open->over.request_stop();
}

void ApprovalQuestions::close() {
  std::shared_ptr<Question> open;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    waiting_.clear();
    open = open_;
  }
  if (open != nullptr) open->over.request_stop();
}

void ApprovalQuestions::on_output(TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!is_shown_ || !is_terminal(STDOUT_FILENO)) return;
  if (!std::exchange(covered_at_, now)) write_all(STDERR_FILENO, "\n");
}

bool ApprovalQuestions::wants_to_ask_again(TimePoint now) {
  const std::lock_guard lock(mutex_);
  return is_shown_ && covered_at_ && now >= *covered_at_ + kRest;
}

void ApprovalQuestions::ask_again() {
  const std::lock_guard lock(mutex_);
  // It may have been answered just now.
  if (!is_shown_) return;
  covered_at_.reset();
  write_all(STDERR_FILENO, open_->text);
}

void ApprovalQuestions::put(Question& question) {
  const auto user = terminal_user(question.over.get_token());
  if (!user) return;  // it was withdrawn before its turn
  // What was typed before is no answer to this.
  ::tcflush(STDIN_FILENO, TCIFLUSH);
  {
    const std::lock_guard lock(mutex_);
    if (question.over.stop_requested()) return;
    user->show(question.text);
    is_shown_ = true;
    covered_at_.reset();
  }
  const auto line = user->read_line();
  {
    const std::lock_guard lock(mutex_);
    is_shown_ = false;
  }
  // After an interrupt, the run ends.
  if (question.over.stop_requested() || Interrupts::is_pending()) return;
  decide(*run_, question.call_id, line && said_yes(*line).value_or(false));
}

void ApprovalQuestions::work(const std::stop_token& end) {
  for (;;) {
    std::shared_ptr<Question> next;
    {
      std::unique_lock lock(mutex_);
      open_ = nullptr;
      if (!changed_.wait(lock, end, [this] { return !waiting_.empty(); })) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      open_ = next;
    }
    put(*next);
  }
}

}  // namespace sluice
