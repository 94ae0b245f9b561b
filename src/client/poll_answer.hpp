#pragma once

#include <string_view>

#include "client/reply.hpp"
#include "client/stream_answer.hpp"

namespace sluice {

/// Receives an answer by long polls. Each poll asks for the chunks after those received, and so
/// acknowledges them. A poll whose reply is lost is repeated.
class PollAnswer final : public StreamAnswer {
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
  ReplyBody body_;
};

}  // namespace sluice
