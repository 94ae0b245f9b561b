#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.hpp"
#include "engine/openai/answer_source.hpp"
#include "engine/openai/response_sockets.hpp"
#include "json/json.hpp"

namespace sluice {

/// A request to a Responses API over a WebSocket (OpenAI, WebSocket mode): a message
/// `response.create`, and the events of the answer as a message each. If an idle socket's server
/// remembers the conversation, only the new messages are sent; a server that has forgotten it is
/// sent all of them. A socket whose answer is whole is used again, others are closed, which ends
/// their answers.
class WebSocketSource final : public AnswerSource {
 public:
  /// Makes the body of a request; cannot fail for one whose body was made before.
  using MakeBody = std::function<json::object(const GenerationRequest&)>;
  /// `sockets` must outlive the attempts.
  WebSocketSource(ResponseSockets& sockets, GenerationRequest request, MakeBody make_body);
  ~WebSocketSource() override;

  void send(std::weak_ptr<Owner> owner) override;
  void pause(bool is_paused) override;
  void drop() override;
  void note(const Delta& said) override;
  void finish(const Completion& completion, std::string_view response_id) override;

 private:
  class Turn;
  std::shared_ptr<Turn> turn_;  // the last attempt; null once it is over
  ResponseSockets* sockets_;
  std::shared_ptr<const GenerationRequest> request_;
  MakeBody make_body_;
};

}  // namespace sluice
