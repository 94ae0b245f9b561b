#include "engine/engine.hpp"

#include "rpc/error_codes.hpp"

namespace sluice {

void Engine::change(ModelChange /*change*/, ChangeDone then) {
  then(fail(kMethodNotFound, "not with this engine (" + info().engine + ")"));
}

std::size_t text_bytes(const ChatMessage& message) {
  std::size_t bytes = message.role.size() + message.content.size() + message.tool_call_id.size() +
                      message.tool_name.size() + message.server_data.size();
  for (const ChatToolCall& call : message.tool_calls) {
    bytes += call.id.size() + call.name.size() + call.arguments.size();
  }
  for (const ChatImage& image : message.images) bytes += image.base64->size();
  return bytes;
}

std::string_view to_string(Completion::Reason reason) {
  switch (reason) {
    case Completion::Reason::stop:
      return "stop";
    case Completion::Reason::length:
      return "length";
    case Completion::Reason::tool_calls:
      return "tool_calls";
    case Completion::Reason::cancelled:
      return "cancelled";
    case Completion::Reason::error:
      return "error";
  }
  return "error";
}

}  // namespace sluice
