#pragma once

// What is behind sluice::PendingCall and sluice::RemoteTask, without the types of their results.

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/call_event.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"

namespace sluice {
struct CallOptions;
}

namespace sluice::detail {

class ClientConnection;

/// A request that has been sent. Destroying it cancels the request. Thread-safe.
class ClientCall {
 public:
  using Outcome = std::expected<json::object, Error>;
  class State;

  ClientCall(std::shared_ptr<ClientConnection> connection, std::shared_ptr<State> state)
      : connection_(std::move(connection)), state_(std::move(state)) {}
  ~ClientCall();
  ClientCall(ClientCall&&) noexcept = default;
  ClientCall& operator=(ClientCall&& other) noexcept;

  /// Wait for the next event, or for the result, and return it. Throw
  /// std::logic_error on the client's own thread, which would wait for itself, and where somebody
  /// waits for the same already. result() throws Error.
  std::optional<CallEvent> next();
  json::object result();

  /// Call `done` once, at once or later on the client's thread. Throw std::logic_error where
  /// somebody waits for the same already.
  void on_next(std::move_only_function<void(std::optional<CallEvent>)> done);
  void on_result(std::move_only_function<void(Outcome)> done);

  bool is_ready() const;
  void cancel();
  void leave();
  const std::shared_ptr<ClientConnection>& connection() const { return connection_; }

 private:
  std::shared_ptr<ClientConnection> connection_;  // lives as long as its calls
  std::shared_ptr<State> state_;                  // null if moved from
};

/// A task of a server, or the answer of a server that has made none. Thread-safe.
class ClientTask {
 public:
  /// `answer`: to a call that could become a task.
  ClientTask(std::shared_ptr<ClientConnection> connection, const json::object& answer);
  ClientTask(std::shared_ptr<ClientConnection> connection, std::string id)
      : connection_(std::move(connection)), id_(std::move(id)) {}

  const std::string& id() const { return id_; }
  ClientCall wait(CallOptions options) const;
  /// Sends a request about the task. Throws Error.
  json::object ask(std::string_view method) const;
  const std::optional<json::object>& answer() const { return answer_; }

 private:
  std::shared_ptr<ClientConnection> connection_;
  std::string id_;
  std::optional<json::object> answer_;
};

}  // namespace sluice::detail
