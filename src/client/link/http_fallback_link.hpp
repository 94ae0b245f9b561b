#pragma once

#include <memory>
#include <optional>

#include "client/link/http_link.hpp"
#include "client/session/contract/server_link.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Streamable HTTP; or HTTP with SSE, if the server answers `initialize` with 400, 404 or 405 and
/// no message of MCP (2025-11-25, Transports, Backwards Compatibility). If that fails too,
/// the error has the code of what it said first, and says both.
class HttpFallbackLink final : public ServerLink, private ServerLink::Owner {
 public:
  HttpFallbackLink(EventLoop& loop, HttpLinkOptions options);

  void open(ServerLink::Owner& owner) override;
  Result<void> send(OutgoingMessage message) override;
  bool drop(const RequestId& id) override { return link_->drop(id); }
  void leave_answer(const RequestId& id) override { link_->leave_answer(id); }
  [[nodiscard]] std::string server() const override { return link_->server(); }
  [[nodiscard]] std::unique_ptr<ServerLink> take_up(const StreamPosition& from) override {
    return link_->take_up(from);
  }
  void pause(const RequestId& id, bool is_paused) override { link_->pause(id, is_paused); }
  bool reopen() override { return link_->reopen(); }
  [[nodiscard]] bool carries_headers() const override { return link_->carries_headers(); }
  [[nodiscard]] bool tells_connected() const override { return link_->tells_connected(); }
  [[nodiscard]] bool shares_connection() const override { return link_->shares_connection(); }
  void close(std::function<void()> done) override { link_->close(std::move(done)); }

 private:
  // ServerLink::Owner
  void on_message(std::string_view text) override;
  bool on_reply(const RequestId& id, std::string_view text) override;
  void on_unreadable(std::string_view text, const Error& why) override {
    owner_->on_unreadable(text, why);
  }
  void on_unanswered(const RequestId& id, const Error& why) override;
  void on_broken_off(const RequestId& id, const Error& why) override {
    owner_->on_broken_off(id, why);
  }
  void on_session_over(const RequestId& id) override { owner_->on_session_over(id); }
  void on_old_session_over(const RequestId& id) override { owner_->on_old_session_over(id); }
  void on_connected(const RequestId& id) override { owner_->on_connected(id); }
  void on_session_doubted() override { owner_->on_session_doubted(); }
  void on_listening() override { owner_->on_listening(); }
  void on_position(const RequestId& id, std::string_view session,
                   std::string_view last_event) override {
    owner_->on_position(id, session, last_event);
  }
  [[nodiscard]] bool awaits(const RequestId& id) const override { return owner_->awaits(id); }
  void on_lost(const Error& why) override;

  /// The server has said something, so it speaks by this transport.
  void settle();

  EventLoop* loop_;
  HttpLinkOptions options_;
  ServerLink::Owner* owner_ = nullptr;
  bool is_settled_ = false;
  OutgoingMessage initialize_;    // while its answer is expected, before it is settled
  std::optional<Error> refusal_;  // of `initialize`, until the other transport has said something
  std::unique_ptr<ServerLink> link_;
};

}  // namespace sluice
