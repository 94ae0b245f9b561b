#pragma once

#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// The conversation so far, as the `messages` of a request. Each question is followed by its answer
/// or is removed again.
class Conversation {
 public:
  /// `system` is the system message and may be empty. `params` are the other parameters of every
  /// request.
  Conversation(std::string system, json::object params);

  void ask(std::string_view question);
  /// Adds the answer to the last question. An empty answer removes the question, so that it can be
  /// asked again.
  void answer(std::string_view text);
  /// Forgets everything except the system message.
  void reset();

  /// The parameters of the next request.
  [[nodiscard]] json::object params() const;

 private:
  std::string system_;
  json::object params_;
  json::array messages_;
};

}  // namespace sluice
