#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "net/http/http_exchange.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// Starts a reply of server-sent events, which no cache and no proxy may hold back.
void start_events(HttpExchange& exchange);
/// The same for one of lines, each a message.
void start_lines(HttpExchange& exchange);

/// The reply to a GET that reads a stream as server-sent events. Belongs to the exchange's loop.
class EventSink final : public BlockSink {
 public:
  explicit EventSink(HttpExchangePtr exchange) : exchange_(std::move(exchange)) {}

  /// Starts the reply with the subscription that writes to this sink. The exchange keeps it;
  /// letting go of the exchange detaches the reader. `with` goes when the reader does. Does
  /// nothing if the peer has gone meanwhile.
  void open(std::unique_ptr<Subscription> subscription, std::shared_ptr<void> with = {});

  bool write(std::string_view block) override;
  bool write(const Bytes& block) override;
  void finish() override;
  void drop(const Error& error) override;

 private:
  HttpExchangePtr exchange_;
};

}  // namespace sluice
