#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "core/clock.hpp"
#include "json/json.hpp"
#include "sluice/agent.hpp"

namespace sluice {

/// Asks the user whether to make calls, one after the other, on a thread of its own, so that the
/// events of the run go on to be shown. Destroying it withdraws what is open. The functions belong
/// to one thread.
class ApprovalQuestions {
 public:
  struct Options {
    bool may_ask = false;  // without it, and without a terminal, calls are rejected
    bool names_servers = false;
  };

  /// `run` outlives this.
  ApprovalQuestions(Run& run, Options options) : run_(&run), options_(options) {}
  ~ApprovalQuestions() { close(); }
  ApprovalQuestions(const ApprovalQuestions&) = delete;
  ApprovalQuestions& operator=(const ApprovalQuestions&) = delete;

  /// Asks about the call of this event, `approval_required`.
  void ask(const json::object& event);
  /// The call has ended, so nobody waits for the answer.
  void withdraw(std::string_view call_id);
  /// Withdraws all, and asks no more.
  void close();

  /// To be called before something else is shown, which then begins on a line of its own.
  void on_output(TimePoint now);
  /// While nothing is shown: whether the question was covered for a while, so that it is to be
  /// shown again.
  bool wants_to_ask_again(TimePoint now);
  /// Shows it again, where a line begins.
  void ask_again();

 private:
  struct Question {
    std::string call_id;
    std::string text;
    std::stop_source over = {};
  };

  void work(const std::stop_token& end);
  void put(Question& question);

  Run* run_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Question>> waiting_;
  std::shared_ptr<Question> open_;       // null: none
  bool is_shown_ = false;                // the open one, and is not answered
  std::optional<TimePoint> covered_at_;  // when something was shown after it
  bool is_closed_ = false;
  std::jthread thread_;  // joined first
};

}  // namespace sluice
