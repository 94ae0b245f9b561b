#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "client/session/questions.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// The requests of a legacy server to its client: each is refused, or becomes a question and gets
/// its answer. Belongs to its session's loop.
class ServerRequests {
 public:
  /// `send` gets the text of each response. `questions` outlives this, and at most `most` requests
  /// are open.
  ServerRequests(Questions& questions, std::size_t most, std::function<void(std::string text)> send)
      : questions_(&questions), most_(most), send_(std::move(send)) {}

  /// `request`: the number of the client's request in whose reply it came; 0 if there is none.
  void on_request(const Message& message, std::uint64_t request);
  /// The server takes a request back (notifications/cancelled).
  void on_cancelled(const Message& message);
  /// Nobody hears the answers any more.
  void withdraw_all();

 private:
  void reply(const RequestId& id, const json::object& members);

  Questions* questions_;
  const std::size_t most_;
  std::function<void(std::string text)> send_;
  std::map<RequestId, std::uint64_t> open_;  // their questions
};

}  // namespace sluice
