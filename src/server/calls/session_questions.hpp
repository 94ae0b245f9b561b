#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "core/executor.hpp"
#include "protocol/input_answers.hpp"
#include "server/calls/pending_request.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// If `error` asks the user to open pages (kUrlElicitationRequired), records them in `session`, so
/// that its client is told when the user has finished with each.
void remember_pages(Session& session, const Error& error);

class SessionQuestions;

/// On whose behalf a client is asked, and the way to it.
class SessionAsker {
 public:
  virtual ~SessionAsker() = default;
  /// Sends the client a message.
  virtual void send(std::string_view message) = 0;
  /// Sends queued messages now.
  virtual void flush() {}
  /// Nobody waits for these answers any more. May release the questions.
  virtual void forget(const SessionQuestions& questions) = 0;
};

/// Requests to the client of a session (the eras before 2026-07-28), and what it has answered so
/// far. Belongs to its loop.
class SessionQuestions final : public std::enable_shared_from_this<SessionQuestions> {
 public:
  /// Somebody keeps this alive until `asker` is told to forget it. `done` is called at most once,
  /// with the results in the order of the requests or the first error: -32603 if the client answers
  /// with an error, which is then the data; that of AskedInputs::take(); kTimedOut if the client
  /// does not answer in time. `memory` is for AskedInputs.
  SessionQuestions(std::unique_ptr<SessionAsker> asker, Executor& loop,
                   std::weak_ptr<Session> session, std::vector<InputRequest> requests,
                   PendingRequest::Answer done, MemoryHold memory = MemoryHold());
  /// The same for `asker`, which keeps this alive until it is over.
  SessionQuestions(PendingRequest& asker, const std::shared_ptr<Session>& session,
                   std::vector<InputRequest> requests, PendingRequest::Answer done,
                   MemoryHold memory);
  ~SessionQuestions();
  SessionQuestions(const SessionQuestions&) = delete;
  SessionQuestions& operator=(const SessionQuestions&) = delete;

  /// Sends the requests. Errors: kLimitReached if too many requests of the session are unanswered,
  /// kInvalidRequest if the session is over; then nothing is sent, and `done` is not called.
  Result<void> send();
  /// Tells the client that nobody waits for its answers any more.
  void take_back();
  /// Does the same, and lets the asker forget the questions. `done` is not called.
  void withdraw();

  /// How long a client may take to answer.
  static constexpr Duration kAnswerTime = std::chrono::minutes(10);

 private:
  class OfCall;

  void send(Session& session, std::size_t index);
  void on_result(std::size_t index, Result<json::value> result);
  void on_timeout();
  void finish(Result<std::vector<json::value>> outcome);

  std::unique_ptr<SessionAsker> asker_;
  Executor* executor_;
  std::weak_ptr<Session> session_;
  AskedInputs asked_;
  PendingRequest::Answer done_;
  std::vector<RequestId> ids_;  // in the order of the requests; each is empty once answered
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice
