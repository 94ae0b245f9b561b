#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/executor.hpp"
#include "protocol/input_answers.hpp"
#include "server/calls/pending_request.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// If `error` asks the user to open pages (kUrlElicitationRequired), records them in `session`, so
/// that its client is told when the user has finished with each.
void remember_pages(Session& session, const Error& error);

/// Requests to the client of a session (the eras before 2026-07-28), and what it has answered so
/// far. Belongs to the loop of the request that asks.
class SessionQuestions final : public std::enable_shared_from_this<SessionQuestions> {
 public:
  /// `asker` keeps this alive until it is over. `done` is called at most once, with the results in
  /// the order of the requests or the first error: -32603 if the client answers with an error,
  /// which is then the data; that of AskedInputs::take(); kTimedOut if the client does not answer
  /// in time. `memory` is for AskedInputs.
  SessionQuestions(PendingRequest& asker, std::shared_ptr<Session> session,
                   std::vector<InputRequest> requests, PendingRequest::Answer done,
                   MemoryHold memory);
  ~SessionQuestions();
  SessionQuestions(const SessionQuestions&) = delete;
  SessionQuestions& operator=(const SessionQuestions&) = delete;

  /// Sends the requests. Error: kLimitReached if too many requests of the session are unanswered;
  /// then nothing is sent, and `done` is not called.
  Result<void> send();
  /// Tells the client that nobody waits for its answers any more.
  void take_back();
  /// Does the same, and lets `asker` forget the questions. `done` is not called.
  void withdraw();

  /// How long a client may take to answer.
  static constexpr Duration kAnswerTime = std::chrono::minutes(10);

 private:
  void send(std::size_t index);
  void on_result(std::size_t index, Result<json::value> result);
  void on_timeout();
  void finish(Result<std::vector<json::value>> outcome);

  PendingRequest* asker_;
  Executor* executor_;
  std::shared_ptr<Session> session_;
  AskedInputs asked_;
  PendingRequest::Answer done_;
  std::vector<RequestId> ids_;  // in the order of the requests; each is empty once answered
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice
