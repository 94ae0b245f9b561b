#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "client/session/questions/questions.hpp"
#include "client/session/session_activity.hpp"

namespace sluice {

/// The task that a message belongs to by its `_meta`; empty if it belongs to none.
std::string_view related_task(const json::object& params);

/// Follows a task of the server until it has ended: asks for its state as often as the server
/// wants, hears of changes, passes its questions on and their answers back (2025-11-25, Tasks;
/// SEP-2663). Its answer is what the call would have been answered. Reports each change of the
/// state, as a Task object, and the task's progress.
class TaskFollower final : public SessionActivity {
 public:
  /// `questions` belongs to the session.
  TaskFollower(ClientSession& session, Executor& loop, Questions& questions, std::string id,
               const RequestOptions& options, RequestCallbacks callbacks);

  bool on_notification(std::string_view method, const json::object& params) override;

  static constexpr Duration kDefaultInterval = std::chrono::seconds(1);  // the server names none
  static constexpr Duration kShortestInterval = std::chrono::milliseconds(20);
  static constexpr Duration kLongestInterval = std::chrono::hours(1);
  /// How often in a row the requests of a kind may fail for a passing reason.
  static constexpr int kMaxFailures = 8;
  /// The questions of one task.
  static constexpr std::size_t kMaxQuestions = 1000;

 private:
  void begin() override { poll(); }
  void on_stop() override;
  void poll();
  void on_polled(Result<json::object> answer);
  void take(const json::object& state);
  /// Opens the stream of changes of a modern server.
  void listen();
  void ask_for_result(bool has_ended);
  void take_questions(const json::object& state);
  void on_input(const std::string& key, Result<json::object> answer);
  void send_answers();
  [[nodiscard]] bool is_extension();

  Questions* questions_;
  const std::string id_;
  std::string seen_;  // status and message of the last state that was reported
  Duration interval_ = kDefaultInterval;
  // In a row, each counted by itself: success with one kind says nothing of another.
  int failed_polls_ = 0;
  int failed_results_ = 0;
  int failed_updates_ = 0;
  Number poll_ = 0;
  Number listening_ = 0;
  bool has_listened_ = false;
  Number result_ = 0;          // the request for the result of a legacy task
  bool result_waits_ = false;  // it was sent before the task had ended
  Number update_ = 0;
  std::map<std::string, std::uint64_t> open_inputs_;  // by their keys: unanswered questions
  std::set<std::string> seen_inputs_;                 // the keys of all questions
  json::object answers_;                              // that were not sent yet
  json::object sent_answers_;                         // by `update_`
};

}  // namespace sluice
