#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/http/http_exchange.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/transport/http/http_refusal.hpp"

namespace sluice {

/// The reply to one POST: a JSON body, or an event stream once something precedes the response.
class HttpChannel final : public ReplyChannel, public std::enable_shared_from_this<HttpChannel> {
 public:
  /// How messages are framed.
  enum class Format : std::uint8_t { events, lines };
  /// `stream`: how the request accepts `format`.
  HttpChannel(HttpExchangePtr exchange, Acceptance stream, Format format = Format::events)
      : exchange_(std::move(exchange)), stream_(stream), format_(format) {}

  /// Lets the client of `session` cancel this request. Errors as Session::add_call().
  Result<void> make_cancellable(const std::shared_ptr<Session>& session, const RequestId& id);

  /// Makes the reply name this session, which its request has begun, unless it has ended by then.
  void set_begun(std::shared_ptr<Session> session) { in_session().begun = std::move(session); }

  /// The caller has cancelled: no response follows (2025-11-25, Cancellation). The reply ends as an
  /// event stream without one, or without a body if the caller takes no stream.
  void cancel();

  void reply(int http_status, std::string message) override;
  bool write(std::string_view block) override;
  bool write(const Bytes& block) override { return write(block.view()); }
  bool take(std::string& block) override;
  /// Ends the reply. If nothing was written, there was nothing to answer: status 202.
  void finish() override;
  void drop(const Error& error) override;
  [[nodiscard]] const Framing& framing() const override {
    return format_ == Format::events ? sse_framing() : line_framing();
  }
  [[nodiscard]] bool can_stream() const override { return stream_ != Acceptance::no; }
  void may_take_long() override;
  void on_close(CloseTask task) override;
  void on_drain(Executor::Task task) override;
  std::unique_ptr<Session::Call> give_entry() override {
    return in_session_ == nullptr ? nullptr : std::move(in_session_->cancellable);
  }

 private:
  struct InSession {
    std::shared_ptr<Session> begun;  // if the reply is to name it, or null
    std::unique_ptr<Session::Call> cancellable;
  };

  InSession& in_session() {
    if (in_session_ == nullptr) in_session_ = std::make_unique<InSession>();
    return *in_session_;
  }
  /// From now on the session's client cannot cancel the request.
  void leave_session() {
    if (in_session_ != nullptr) in_session_->cancellable = nullptr;
  }
  void start();
  /// Whether the reply is a stream of messages, even if only because it was silent for long.
  [[nodiscard]] bool is_stream() const { return started_ || exchange_->is_streaming(); }

  HttpExchangePtr exchange_;
  CloseTask close_task_;
  std::unique_ptr<InSession> in_session_;  // null without a session
  Acceptance stream_;
  Format format_;
  bool started_ = false;
};

}  // namespace sluice
