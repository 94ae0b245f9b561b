#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/crypto/sealer.hpp"
#include "core/error.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// A request to the client while it waits for the result of its own: `elicitation/create`,
/// `sampling/createMessage` or `roots/list`. `key` names it among those of one request.
struct InputRequest {
  std::string key;
  std::string method;
  json::object params;
};

/// Appends the member `inputRequests` that asks for `requests`.
void append_input_requests(std::string& out, const std::vector<const InputRequest*>& requests);

/// Whether a request of `method` may be answered with questions (2026-07-28, Multi Round-Trip
/// Requests, Supported Requests).
bool may_require_input(std::string_view method);

/// What a client has answered in the rounds of one request (2026-07-28, Multi Round-Trip Requests).
/// Between two rounds the server keeps nothing: what was asked and earlier answers travel with the
/// client, sealed for its principal, this very request and a limited time. An answer is bound to
/// the question that it answers: it serves no other of the same key, and what was never asked has
/// none.
class InputRounds {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// Reads `inputResponses` and `requestState` of `message`. -32602 for what is ill-typed, and for
  /// a state that was not sealed here, for somebody or something else, or too long ago.
  static Result<InputRounds> read(const Message& message, const std::string& principal,
                                  const Sealer& sealer, Time now);

  /// The answer to that question, or null.
  [[nodiscard]] const json::value* find(const InputRequest& request) const;

  /// Names all rounds of one request, replayed ones too, and nothing else.
  [[nodiscard]] const std::string& key() const { return key_; }

  /// The members of the InputRequiredResult that asks for `missing`.
  [[nodiscard]] std::string ask(const std::vector<const InputRequest*>& missing,
                                const Sealer& sealer, Time now) const;

  static constexpr std::size_t kKeyLength = 24;  // of key()
  /// How long a client may take for a round.
  static constexpr std::chrono::minutes kLifetime{30};

 private:
  std::string purpose_;  // whom and what the state is sealed for
  std::string key_;
  json::object answers_;  // by the keys of the questions: {"q": their digest, "a": the answer}
};

}  // namespace sluice
