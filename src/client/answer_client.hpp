#pragma once

#include <memory>
#include <string>

#include "client/answer.hpp"
#include "client/server_address.hpp"
#include "core/error.hpp"

namespace sluice {

/// An answer that has been requested. The destructor drops the answer and waits until its sink will
/// not be called again. A sink that blocks must have been released before.
class PendingAnswer {
 public:
  virtual ~PendingAnswer() = default;
  /// Calls AnswerMachine::cancel(). May be called from any thread except the client's. A sink that
  /// blocks delays it.
  virtual void cancel() = 0;
};

/// Requests answers from a server, on a thread of its own. Its members are thread-safe. Pending
/// answers must be destroyed before it.
class AnswerClient {
 public:
  explicit AnswerClient(ServerAddress address);
  ~AnswerClient();
  AnswerClient(const AnswerClient&) = delete;
  AnswerClient& operator=(const AnswerClient&) = delete;

  /// Starts an answer. `sink` is called on the client's thread and must outlive the returned
  /// object.
  std::unique_ptr<PendingAnswer> ask(AnswerVia via, AnswerRequest request, AnswerSink& sink);

 private:
  class Asked;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
