#pragma once

#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// What has been said, as the `messages` of a request. Each question is followed by its answer, or
/// taken back.
class Conversation {
 public:
  /// `params` are the other parameters of every request; `system` may be empty.
  Conversation(std::string system, json::object params);

  void ask(std::string_view question);
  /// The answer to the last question. An empty one takes the question back, so that it can be asked
  /// again.
  void answer(std::string_view text);
  /// Forgets everything but the system message.
  void reset();

  /// The parameters of the next request.
  [[nodiscard]] json::object params() const;

 private:
  std::string system_;
  json::object params_;
  json::array messages_;
};

}  // namespace sluice
