#pragma once

#include <cstdint>
#include <string_view>

#include "client/stream_answer.hpp"

namespace sluice {

/// An answer pushed over a WebSocket. What has been received is acknowledged now and then, so that
/// the server keeps what a lost connection may have swallowed.
class WsAnswer final : public StreamAnswer {
 public:
  using StreamAnswer::StreamAnswer;

  void on_head(int /*status*/, std::string_view /*content_type*/) override {}
  void on_body(std::string_view /*bytes*/) override {}
  void on_complete() override {}
  void on_open() override;
  void on_message(std::string_view text) override;
  void on_lost(const Error& why) override;

 protected:
  void begin() override;
  void read_on() override;
  void abort() override;

 private:
  void take_response(const json::object& message);
  void acknowledge();

  bool open_ = false;
  std::int64_t awaited_ = 0;        // id of the run or subscribe under way
  std::uint64_t acknowledged_ = 0;  // the seq of the last ack sent
};

}  // namespace sluice
