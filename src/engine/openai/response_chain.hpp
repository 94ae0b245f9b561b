#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"

namespace sluice {

/// A conversation up to its last answer, which a server remembers under the id of a response
/// (OpenAI, Responses, previous_response_id). A request that goes on from there needs only the new
/// messages. Bounded: a conversation of more than kMaxBytes is not remembered.
class ResponseChain {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

  /// Begins an answer to `request`; what was remembered is forgotten.
  void begin(const GenerationRequest& request);
  /// What the answer says.
  void note(const Delta& said);
  /// The answer is whole. From now on is_set(), unless it is too long.
  void finish(std::string_view response_id);
  void forget();

  [[nodiscard]] bool is_set() const { return !response_id_.empty(); }
  [[nodiscard]] const std::string& response_id() const { return response_id_; }
  /// The messages of `request` behind the answer, at least one, if its conversation begins with the
  /// one that is remembered and if the same client asks. The server's ids of calls stand in place
  /// of the client's.
  [[nodiscard]] std::optional<std::vector<ChatMessage>> continuation(
      const GenerationRequest& request) const;

 private:
  [[nodiscard]] bool is_answer(const ChatMessage& message) const;

  std::string principal_;
  std::vector<ChatMessage> messages_;
  ChatMessage answer_;
  std::size_t bytes_ = 0;
  bool is_too_long_ = false;
  std::string response_id_;  // empty: nothing is remembered
};

}  // namespace sluice
