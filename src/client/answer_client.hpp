#pragma once

#include <memory>
#include <string>

#include "client/answer.hpp"
#include "client/server_address.hpp"
#include "core/error.hpp"

namespace sluice {

/// An answer that was asked for. Destroying it drops the answer and waits until its sink will not
/// be called again; a sink that blocks must have been released before.
class PendingAnswer {
 public:
  virtual ~PendingAnswer() = default;
  /// AnswerMachine::cancel(), from any thread but the client's. A sink that blocks delays it.
  virtual void cancel() = 0;
};

/// Asks a server for answers, on a thread of its own. Its members are thread-safe; pending answers
/// must be destroyed before it.
class AnswerClient {
 public:
  explicit AnswerClient(ServerAddress address);
  ~AnswerClient();
  AnswerClient(const AnswerClient&) = delete;
  AnswerClient& operator=(const AnswerClient&) = delete;

  /// Starts an answer. `sink` is called on the client's thread and outlives what is returned.
  std::unique_ptr<PendingAnswer> ask(AnswerVia via, AnswerRequest request, AnswerSink& sink);

 private:
  class Asked;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
