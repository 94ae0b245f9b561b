#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "auth/kept_key.hpp"
#include "net/http/http_exchange.hpp"
#include "net/lines/line_reader.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/dispatch/service.hpp"
#include "server/dispatch/shared_reply.hpp"
#include "server/transport/http/http_channel.hpp"
#include "server/transport/http/http_fields.hpp"

namespace sluice {

/// A POST whose body is many messages, one per line, which are handled as they arrive
/// (docs/transports.md). The reply carries the answers as soon as they are ready. It ends when the
/// body has ended and all requests are answered. At a shutdown, the body ends with its last whole
/// line. Belongs to the exchange's loop. Kept alive by the connection and by unanswered requests.
class MessageBody final : public BodyHandler,
                          private Caller,
                          public std::enable_shared_from_this<MessageBody> {
 public:
  /// `max_line`: the most bytes of a message.
  MessageBody(Service& service, const HttpRequest& request, HttpExchangePtr exchange,
              Principal principal, HttpChannel::Format format, std::size_t max_line);

  /// Call once, before the body. Returns false if the request has been refused.
  [[nodiscard]] bool open();
  bool on_body(std::string_view bytes) override;
  void on_body_end() override;
  void on_shutdown() override;
  [[nodiscard]] std::uint64_t unfinished() const override {
    return reader_.in_line() ? lines_ + 1 : 0;
  }

  /// With this many unanswered requests, no more are handled. The requests may be waiting for the
  /// client's responses, which may come behind others. So up to kMaxHeld messages are kept for
  /// later, and what follows them is read. While that many are kept, more is read only if the
  /// server waits for a response of the client. Then further requests are refused, and further
  /// notifications are handled before what is kept.
  static constexpr std::size_t kMaxOpen = 64;
  static constexpr std::size_t kMaxHeld = 64;
  /// The most lines that are handled before other tasks of the loop run.
  static constexpr std::size_t kMaxTurn = 60;

 private:
  /// A message that is kept for later.
  struct Held {
    std::string text;
    RequestId id;                          // empty: a notification
    std::unique_ptr<Session::Call> entry;  // for cancellation; may be null
  };

  // Caller
  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override;
  Result<std::shared_ptr<Session>> session() override;
  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override;
  [[nodiscard]] std::optional<std::string> field(std::string_view name) const override {
    return single_field(head_.get(), name);
  }
  RetainedCaller keep() override;

  /// Handles the lines that have arrived. Returns false if it has stopped before the last and goes
  /// on later.
  bool handle_lines();
  [[nodiscard]] bool is_full() const { return reply_->open_channels() >= kMaxOpen; }
  /// Handles a message, at once unless it is a long one.
  void take(std::string_view text);
  void handle(const std::expected<Message, MessageError>& message);
  /// Handles a message that has just come, or keeps it for later, so that it overtakes no other.
  /// Only responses and cancellations do.
  void receive(const std::expected<Message, MessageError>& message, std::string_view text);
  void hold(const Message& message, std::string_view text);
  /// Takes back the kept request that `message` cancels, if it is one of the same session.
  void cancel_held(const Message& message);
  /// Removes the kept request, if there is one with this id that has not been handled.
  void forget_held(const RequestId& id);
  [[nodiscard]] bool awaits_response() const;
  [[nodiscard]] Result<std::shared_ptr<Session>> find_session() const;
  void handle_long();
  void go_on();
  /// Returns false if the request has failed for lack of memory.
  bool draw();
  /// Refuses the request, or aborts its reply if that has begun: it cannot carry a refusal then.
  void break_off(int status, int code, std::string_view message);

  Service* service_;
  HttpExchangePtr exchange_;
  Principal principal_;
  KeptKey key_;
  HttpChannel::Format format_;
  std::size_t max_line_;
  RequestHeadCopy head_;
  RequestFields fields_{head_.get()};
  MirroredHeaders headers_;
  std::shared_ptr<Session> session_;  // of the message that is handled
  std::shared_ptr<SharedReply> reply_;
  LineReader reader_;
  std::unique_ptr<LongMessage> long_;  // is being parsed; comes before what follows
  std::deque<Held> held_;              // they come before what the reader holds
  std::size_t held_bytes_ = 0;
  std::optional<Held> taken_;  // what is handled or in long_, if it was kept
  std::uint64_t lines_ = 0;    // the number of lines read
  std::shared_ptr<MemoryShare> memory_;
  CoarseHold hold_;       // for the head and for messages that are not handled yet
  bool waiting_ = false;  // whether handle_lines() goes on later
  bool stopped_ = false;  // whether no more of the body is read until then
  bool ended_ = false;    // whether the body has ended, or nothing more of it is read
};

}  // namespace sluice
