#pragma once

#include <string>
#include <string_view>

#include "client/answer.hpp"
#include "client/reply.hpp"
#include "net/http/sse.hpp"

namespace sluice {

/// Receives an answer from the tool `generate` (MCP 2026-07-28, Streamable HTTP). Its deltas are
/// the messages of progress notifications, its end is the tool's result. Closing or losing the
/// reply cancels the answer.
class McpAnswer final : public AnswerMachine {
 public:
  McpAnswer(AnswerRequest request, AnswerPort& port, AnswerSink& sink);

  void start() override;
  void cancel() override;
  void on_head(int status, std::string_view content_type) override;
  void on_body(std::string_view bytes) override;
  void on_complete() override;
  void on_open() override {}
  void on_message(std::string_view /*text*/) override {}
  void on_lost(const Error& why) override;
  void on_timer() override {}

 private:
  void take_message(std::string_view text);
  void take_progress(const json::object& params);
  void take_result(const json::object& result);
  void finish(const AnswerEnd& end);
  void fail(AnswerEnd::Outcome outcome, const Error& error);

  AnswerRequest request_;
  AnswerPort* port_;
  AnswerSink* sink_;
  ReplyBody body_;
  SseDecoder events_;
  bool is_events_ = false;
  bool any_progress_ = false;
  bool ended_ = false;
};

}  // namespace sluice
