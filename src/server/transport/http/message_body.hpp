#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/http_exchange.hpp"
#include "net/lines/line_reader.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/dispatch/service.hpp"
#include "server/dispatch/shared_reply.hpp"
#include "server/transport/http/http_channel.hpp"
#include "server/transport/http/http_fields.hpp"

namespace sluice {

/// A POST whose body is many messages, one a line, handled as they arrive (docs/transports.md).
/// The reply carries what answers them, as it is there, and ends when the body has ended and all is
/// answered. At a shutdown the body ends with its last whole line. Belongs to the exchange's loop;
/// kept by the connection and by what is unanswered.
class MessageBody final : public BodyHandler,
                          private Caller,
                          public std::enable_shared_from_this<MessageBody> {
 public:
  /// `max_line`: bytes of a message.
  MessageBody(Service& service, const HttpRequest& request, HttpExchangePtr exchange,
              Principal principal, HttpChannel::Format format, std::size_t max_line);

  /// Once, before the body.
  void open();
  bool on_body(std::string_view bytes) override;
  void on_body_end() override;
  void on_shutdown() override;
  [[nodiscard]] std::uint64_t unfinished() const override {
    return reader_.in_line() ? lines_ + 1 : 0;
  }

  /// Requests that may be unanswered while the body is read on.
  static constexpr std::size_t kMaxOpen = 64;
  /// Lines that are handled before others on the loop have their turn.
  static constexpr std::size_t kMaxTurn = 60;

 private:
  // Caller
  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override;
  Result<std::shared_ptr<Session>> session() override;
  Result<void> begin_session(const Revision& revision,
                             const ClientCapabilities& capabilities) override;
  RetainedCaller keep() override;

  /// Handles the lines that are there. False: what is unanswered has to be answered, or read,
  /// first.
  bool handle_lines();
  void handle(const std::expected<Message, MessageError>& message);
  void handle_long();
  void go_on();
  bool draw();

  Service* service_;
  HttpExchangePtr exchange_;
  Principal principal_;
  HttpChannel::Format format_;
  std::size_t max_line_;
  RequestHeadCopy head_;
  RequestFields fields_{head_.get()};
  MirroredHeaders headers_;
  std::shared_ptr<Session> session_;  // of the message that is handled
  std::shared_ptr<SharedReply> reply_;
  LineReader reader_;
  std::unique_ptr<LongMessage> long_;  // comes before what the reader holds
  std::uint64_t lines_ = 0;            // that were read
  std::shared_ptr<MemoryShare> memory_;
  CoarseHold hold_;       // of what the reader holds
  bool waiting_ = false;  // for handle_lines() to go on
  bool ended_ = false;    // the body has, or nothing more of it is read
};

}  // namespace sluice
