#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http_exchange.hpp"
#include "server/pending_calls.hpp"
#include "server/reply_channel.hpp"

namespace sluice {

/// Header fields of every event stream: no cache and no proxy may hold events back.
HeaderFields event_stream_headers();

/// The reply to one POST: a JSON body, or an event stream once something precedes the response.
class HttpChannel final : public ReplyChannel, public std::enable_shared_from_this<HttpChannel> {
 public:
  /// `can_stream`: the request accepts text/event-stream. `cors_origin` is echoed, or empty.
  HttpChannel(HttpExchangePtr exchange, bool can_stream, std::string cors_origin);

  /// Lets a cancellation under `key` find this request.
  void make_cancellable(PendingCalls& calls, std::string key);

  void reply(int http_status, std::string_view message) override;
  bool write(std::string_view block) override;
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override;
  void drop(const Error& error) override;
  [[nodiscard]] const Framing& framing() const override { return sse_framing(); }
  [[nodiscard]] bool can_stream() const override { return can_stream_; }
  void on_close(Executor::Task task) override;
  void on_drain(Executor::Task task) override;

 private:
  /// The caller has cancelled: no response follows (2025-11-25, Cancellation), so the reply ends
  /// as an event stream without one.
  void cancel();
  void start();

  HttpExchangePtr exchange_;
  std::string cors_origin_;
  Executor::Task close_task_;
  std::unique_ptr<PendingCalls::Entry> cancellable_;
  bool can_stream_;
  bool started_ = false;
};

}  // namespace sluice
