#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "net/http_exchange.hpp"
#include "server/reply_channel.hpp"

namespace sluice {

/// The reply to one POST: a JSON body, or an event stream once something precedes the response.
class HttpChannel final : public ReplyChannel, public std::enable_shared_from_this<HttpChannel> {
 public:
  /// `can_stream`: the request accepts text/event-stream.
  HttpChannel(HttpExchangePtr exchange, bool can_stream)
      : exchange_(std::move(exchange)), can_stream_(can_stream) {}

  /// Lets a cancellation in `session` find this request. Errors as Session::add_call().
  Result<void> make_cancellable(const std::shared_ptr<Session>& session, const RequestId& id);

  void reply(int http_status, std::string_view message) override;
  bool write(std::string_view block) override;
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override;
  void drop(const Error& error) override;
  [[nodiscard]] const Framing& framing() const override { return sse_framing(); }
  [[nodiscard]] bool can_stream() const override { return can_stream_; }
  void on_close(CloseTask task) override;
  void on_drain(Executor::Task task) override;

 private:
  /// The caller has cancelled: no response follows (2025-11-25, Cancellation), so the reply ends
  /// as an event stream without one.
  void cancel();
  void start();

  HttpExchangePtr exchange_;
  CloseTask close_task_;
  std::unique_ptr<Session::Call> cancellable_;
  bool can_stream_;
  bool started_ = false;
};

}  // namespace sluice
