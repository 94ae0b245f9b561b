#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/crypto/sealer.hpp"
#include "core/error.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// A request that the server sends to the client while the client waits for a result:
/// `elicitation/create`, `sampling/createMessage` or `roots/list`. `key` identifies it among those
/// that belong to one request of the client.
struct InputRequest {
  std::string key;
  std::string method;
  json::object params;
};

/// In the `_meta` of a question that is a request of its own (until 2025-11-25): the key that the
/// handler chose for it. A proxy asks its clients of 2026-07-28 under that key.
inline constexpr std::string_view kQuestionKey = "dev.sluice/questionKey";

/// The most values, and names of members, in one answer of the client: a loop checks and copies it.
inline constexpr std::size_t kMaxAnswerValues = 16'384;

/// A digest of what `message` asks for. It does not depend on the order of members, nor on what
/// differs between the rounds of one request. Takes long for a long message.
std::string digest_of(const Message& message);

/// Appends the member `inputRequests` with `requests`.
void append_input_requests(std::string& out, const std::vector<const InputRequest*>& requests);

/// Whether the server may answer a request of `method` with requests for input (2026-07-28, Multi
/// Round-Trip Requests, Supported Requests).
bool may_require_input(std::string_view method);

/// The answers that a client has given in the rounds of one request (2026-07-28, Multi Round-Trip
/// Requests). The server keeps nothing between rounds. The questions and the earlier answers travel
/// with the client, sealed for its principal, for this exact request and for a limited time. Each
/// answer is bound to its question: it does not count for another question with the same key, and
/// answers to questions that were never asked are ignored.
class InputRounds {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// Reads `inputResponses` and `requestState` of `message`, whose `digest` is computed if it is
  /// empty. Error: -32602 for values of the wrong type, for an answer of more than kMaxAnswerValues
  /// values, and for a state that this server did not seal, that belongs to another principal or
  /// request, or that has expired.
  static Result<InputRounds> read(const Message& message, const std::string& principal,
                                  const Sealer& sealer, Time now);

  /// The answer to `request`, or null. The rounds get further if more answers are found than in
  /// the rounds before.
  [[nodiscard]] const json::value* find(const InputRequest& request);
  /// Whether this and the kMaxFruitless - 1 rounds before it got no further.
  [[nodiscard]] bool is_stuck() const { return fruitless() >= kMaxFruitless; }

  /// Identifies all rounds of one request, including replayed ones, and nothing else.
  [[nodiscard]] const std::string& key() const { return key_; }

  /// How many values, and names of members, came in the state.
  [[nodiscard]] std::size_t values() const { return values_; }

  /// The members of the InputRequiredResult that asks for `missing`. Error: kLimitReached if the
  /// answers so far are too long to travel with the client.
  [[nodiscard]] Result<std::string> ask(const std::vector<const InputRequest*>& missing,
                                        const Sealer& sealer, Time now) const;

  static constexpr std::size_t kKeyLength = 24;  // length of key(), in characters
  /// How long a client may take to answer a round.
  static constexpr std::chrono::minutes kLifetime{30};
  static constexpr std::int64_t kMaxFruitless = 10;
  /// The most bytes of a sealed state, and the most values in it. Each round opens it and seals it
  /// again on the loop, in about a millisecond.
  static constexpr std::size_t kMaxState = std::size_t{256} << 10U;
  static constexpr std::size_t kMaxStateValues = 16'384;

 private:
  /// The number of rounds in a row, up to this one, that got no further.
  [[nodiscard]] std::int64_t fruitless() const {
    return found_ > found_before_ ? 0 : fruitless_before_ + 1;
  }

  std::string purpose_;  // the principal and the request that the state is sealed for
  std::string key_;
  json::object answers_;    // question's key -> {"q": the question's digest, "a": the answer}
  std::size_t values_ = 0;  // in the state
  std::int64_t found_ = 0;  // answers found in this round
  std::int64_t found_before_ = -1;  // the most in a round before; -1 if there was none
  std::int64_t fruitless_before_ = 0;
};

}  // namespace sluice
