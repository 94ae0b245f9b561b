#pragma once

#include <string_view>

#include "client/reply.hpp"
#include "client/stream_answer.hpp"
#include "net/http/sse.hpp"

namespace sluice {

/// Receives an answer as an event stream. If the stream breaks, it resumes after the last event
/// received.
class SseAnswer final : public StreamAnswer {
 public:
  using StreamAnswer::StreamAnswer;

  void on_head(int status, std::string_view content_type) override;
  void on_body(std::string_view bytes) override;
  void on_complete() override;
  void on_open() override {}
  void on_message(std::string_view /*text*/) override {}

 protected:
  void begin() override;
  void read_on() override;

 private:
  void take_event(const SseEvent& event);

  ReplyBody body_;
  SseDecoder events_;
  bool is_events_ = false;
};

}  // namespace sluice
