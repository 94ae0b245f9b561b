#include "client/answer.hpp"

#include <array>
#include <utility>

#include "client/mcp_answer.hpp"
#include "client/poll_answer.hpp"
#include "client/sse_answer.hpp"
#include "client/ws_answer.hpp"

namespace sluice {
namespace {

constexpr std::array<std::pair<AnswerVia, std::string_view>, 4> kNames = {
    {{AnswerVia::poll, "poll"},
     {AnswerVia::sse, "sse"},
     {AnswerVia::ws, "ws"},
     {AnswerVia::mcp, "mcp"}}};

}  // namespace

std::unique_ptr<AnswerMachine> make_answer(AnswerVia via, AnswerRequest request, AnswerPort& port,
                                           AnswerSink& sink) {
  switch (via) {
    case AnswerVia::poll:
      return std::make_unique<PollAnswer>(std::move(request), port, sink);
    case AnswerVia::sse:
      return std::make_unique<SseAnswer>(std::move(request), port, sink);
    case AnswerVia::ws:
      return std::make_unique<WsAnswer>(std::move(request), port, sink);
    case AnswerVia::mcp:
      break;
  }
  return std::make_unique<McpAnswer>(std::move(request), port, sink);
}

std::string_view to_string(AnswerVia via) {
  for (const auto& [value, name] : kNames) {
    if (value == via) return name;
  }
  return {};
}

std::optional<AnswerVia> parse_answer_via(std::string_view text) {
  for (const auto& [value, name] : kNames) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace sluice
