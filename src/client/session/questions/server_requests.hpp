#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "client/session/questions/questions.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// The requests of a legacy server to its client: each is refused, or becomes a question and gets
/// its answer. Belongs to its session's loop.
class ServerRequests {
 public:
  /// `send` gets the text of each response. `on_turn` is called with a request when its
  /// is_our_turn() may have changed; 0: that of any request. `questions` outlives this, and at most
  /// `most` requests are open.
  ServerRequests(Questions& questions, std::size_t most, std::function<void(std::string text)> send,
                 std::function<void(std::uint64_t request)> on_turn)
      : questions_(&questions), most_(most), send_(std::move(send)), on_turn_(std::move(on_turn)) {}

  /// `request`: the number of the client's request in whose reply it came; 0 if there is none.
  void on_request(const Message& message, std::uint64_t request);
  /// Answers a request of the server with an error.
  void refuse(const RequestId& id, std::string_view why);
  /// The server takes a request back (notifications/cancelled).
  void on_cancelled(const Message& message);
  /// Nobody hears the answers any more.
  void withdraw_all();
  /// Whether the server cannot go on with a request of the client, as far as is known, until it is
  /// answered: a question is open that came in the reply to it, or that may belong to any.
  [[nodiscard]] bool is_our_turn(std::uint64_t request) const;

 private:
  struct Open {
    std::uint64_t question = 0;
    std::uint64_t request = 0;  // as for on_request()
  };
  void reply(const RequestId& id, const json::object& members);

  Questions* questions_;
  const std::size_t most_;
  std::function<void(std::string text)> send_;
  std::function<void(std::uint64_t request)> on_turn_;
  std::map<RequestId, Open> open_;
};

}  // namespace sluice
