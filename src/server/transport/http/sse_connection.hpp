#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "core/sharing/client_memory.hpp"
#include "net/http/http_exchange.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/transport/http/sse_sessions.hpp"
#include "server/transport/message/message_connection.hpp"

namespace sluice {

/// One event stream of HTTP with SSE as a connection that carries messages: what its client posts
/// comes in, and what the client is sent goes out as events. The exchange keeps this alive. Belongs
/// to the exchange's loop.
class SseConnection final : public MessageOutput,
                            public ChangeListener,
                            public std::enable_shared_from_this<SseConnection> {
 public:
  /// `request` opens the connection. `service` outlives the connection.
  SseConnection(Service& service, const HttpRequest& request, HttpExchangePtr exchange,
                Principal principal);

  /// Starts the reply with the event that tells where to post messages.
  void open(std::unique_ptr<SseSessions::Entry> entry);
  /// Whether it takes messages.
  [[nodiscard]] bool is_open() const { return entry_ != nullptr; }
  /// Handles a posted message. Call only while is_open(). `handled` runs when the message has been
  /// handled: during the call if it need not wait. It waits while the client does not read its
  /// events. If there is no memory to keep it, the session ends.
  void deliver(std::string_view message, Executor::Task handled);
  /// Ends the session at once.
  void end();

  // MessageOutput
  bool send(std::string message) override;
  bool send_framed(std::string_view messages) override;
  bool send_framed(const Bytes& messages) override { return send_framed(messages.view()); }
  void flush() override;
  bool push_framed(std::string_view messages) override;

  // ChangeListener, only to be told of the end. The session of `connection_` is told of changes.
  [[nodiscard]] bool wants(const Change& /*change*/) const override { return false; }
  void tell(const Change& /*change*/) override {}
  void close() override;

 private:
  /// A message that waits until the client reads.
  struct Waiting {
    std::string message;
    Executor::Task handled;
    MemoryHold memory;
  };

  void on_drain();
  /// The client has gone, or the reply is about to end.
  void over();

  HttpExchangePtr exchange_;
  std::shared_ptr<MemoryShare> memory_;  // of the client; null: there is no limit
  std::list<Waiting> waiting_;           // in the order of their posts
  std::shared_ptr<MessageConnection> connection_;
  std::unique_ptr<SseSessions::Entry> entry_;  // null once it is over
};

}  // namespace sluice
