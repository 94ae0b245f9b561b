#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/recycling.hpp"
#include "net/connection/connection.hpp"
#include "net/http/http_exchange.hpp"
#include "net/server/server_http.hpp"

namespace sluice {

/// The content of a reply's head.
struct ReplyHead {
  int status = 200;
  std::string_view content_type;
  std::size_t content_length = 0;  // kChunked, kUntilClose, or the body's
  bool keep_alive = true;
  int minor_version = 1;
  bool gzip = false;
  std::string_view date;  // the whole line
  HeaderFields extra;
  std::string_view lines = {};  // further header lines, each with its CRLF

  static constexpr std::size_t kChunked = ~std::size_t{0};
  static constexpr std::size_t kUntilClose = kChunked - 1;
};
void append_reply_head(std::string& out, const ReplyHead& head);

/// The reply side of the request that a connection handles.
class ServerExchange final : public HttpExchange, public Recycled {
 public:
  void open(Connection& connection, ServerHttp& http, const HttpRequest& request, bool keep_alive);
  /// The connection has gone.
  void on_connection_lost();
  /// The output queue is below its low-water mark again.
  void drained();
  /// Sends something harmless to find out whether a peer that has ended its side still reads.
  /// Returns false if the reply has no place for it.
  [[nodiscard]] bool probe();
  /// Nothing has been sent for a while: an event stream sends a comment.
  void keep_alive();
  /// Nothing has been received or sent for a while: begins an event stream, if the reply may become
  /// one.
  void break_silence();

  void read_body(std::shared_ptr<BodyHandler> handler) override;
  void resume_body() override;
  void set_head_lines(std::string lines) override {
    head_lines_ = std::make_unique<const std::string>(std::move(lines));
  }
  void reply(int status, std::string_view content_type, std::string_view body,
             HeaderFields extra) override {
    reply(status, content_type, body, nullptr, extra);
  }
  void reply_with(int status, std::string_view content_type, std::string body,
                  HeaderFields extra) override {
    reply(status, content_type, body, &body, extra);
  }
  void start(int status, std::string_view content_type, HeaderFields extra) override;
  bool write(std::string_view body) override;
  bool write(const ChunkBlock& block) override;
  bool take(std::string& body) override;
  void flush() override;
  void stream_if_silent() override { breaks_silence_ = state_ == State::unanswered; }
  [[nodiscard]] bool is_streaming() const override { return state_ == State::streaming; }
  void finish() override;
  void abort() override;
  void on_drain(Executor::Task callback) override;
  void on_close(Executor::Task callback) override;
  void continue_on(const Executor& loop) override;
  WebSocketSessionPtr upgrade_websocket(const HttpRequest& request, const WebSocketOptions& options,
                                        std::unique_ptr<WebSocketHandler> handler) override;
  [[nodiscard]] bool is_open() const override { return state_ != State::closed; }
  [[nodiscard]] std::size_t queued_bytes() const override;
  [[nodiscard]] Duration stalled_for() const override;
  [[nodiscard]] Executor& executor() override { return *executor_; }
  void charge_to(std::shared_ptr<MemoryShare> client) override {
    if (connection_ != nullptr) connection_->charge_to(std::move(client));
  }
  [[nodiscard]] bool is_charged() const override {
    return connection_ != nullptr && connection_->is_charged();
  }
  [[nodiscard]] std::shared_ptr<MemoryShare> memory() const override {
    return connection_->memory();
  }

 private:
  class Keep;

  enum class State : std::uint8_t { unanswered, streaming, closed };

  struct Forgotten {
    void operator()(ServerExchange* exchange) const { exchange->forgotten(); }
  };

  [[nodiscard]] std::string_view head_lines() const {
    return head_lines_ == nullptr ? std::string_view() : *head_lines_;
  }
  /// `owned`: `body` as a string that may be moved from, or null.
  void reply(int status, std::string_view content_type, std::string_view body, std::string* owned,
             HeaderFields extra);
  void set(Executor::Task& callback, Executor::Task next);
  void on_unreferenced() override;
  void forgotten() noexcept;
  void done();
  void reject_upgrade(int status, std::string_view why, HeaderFields extra);

  // First the members that fit into the padding after the reference count.
  std::uint16_t next_worker_ = ConnectionWorker::kNone;  // where the connection continues
  State state_ = State::closed;
  std::uint8_t minor_version_ = 1;
  RefPtr<Connection> connection_;  // null once closed
  ServerHttp* http_ = nullptr;     // valid while connection_ is set
  Executor* executor_ = nullptr;
  Executor::Task drain_callback_;
  Executor::Task close_callback_;
  std::unique_ptr<const std::string> head_lines_;  // null: none
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool is_event_stream_ = false;
  bool accepts_gzip_ = false;
  bool breaks_silence_ = false;
};

}  // namespace sluice
