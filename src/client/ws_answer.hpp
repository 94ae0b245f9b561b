#pragma once

#include <cstdint>
#include <string_view>

#include "client/stream_answer.hpp"

namespace sluice {

/// Receives an answer that is pushed over a WebSocket. It acknowledges received chunks from time to
/// time and in pauses; the server keeps the others, in case a lost connection swallowed them. After
/// a pause it acknowledges more often, because the server may have no room for more chunks.
class WsAnswer final : public StreamAnswer {
 public:
  using StreamAnswer::StreamAnswer;

  void on_head(int /*status*/, std::string_view /*content_type*/) override {}
  void on_body(std::string_view /*bytes*/) override {}
  void on_complete() override {}
  void on_open() override;
  void on_message(std::string_view text) override;
  void on_lost(const Error& why) override;
  void on_timer() override;

 protected:
  void begin() override;
  void read_on() override;
  void abort() override;

 private:
  /// How many chunks may be unacknowledged.
  static constexpr std::uint64_t kWindow = 1024;

  void take_response(const json::object& message);
  void acknowledge();
  void await_pause();

  bool open_ = false;
  bool awaits_pause_ = false;       // the timer runs
  std::int64_t awaited_ = 0;        // id of the run or subscribe request in progress
  std::uint64_t acknowledged_ = 0;  // the seq of the last ack sent
  std::uint64_t acknowledge_every_ = kWindow / 4;
  std::uint64_t next_before_pause_ = 0;  // next_seq() when the timer was set
};

}  // namespace sluice
