#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "net/http/http_exchange.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// Starts a reply of server-sent events that tells caches and proxies not to hold it back.
void start_events(HttpExchange& exchange);
/// The same for a reply of lines, each of which is a message.
void start_lines(HttpExchange& exchange);

/// The reply to a GET that reads a stream as server-sent events. Belongs to the exchange's loop.
class EventSink final : public BlockSink {
 public:
  explicit EventSink(HttpExchangePtr exchange) : exchange_(std::move(exchange)) {}

  /// Starts the reply and the subscription that writes to this sink. The exchange keeps the
  /// subscription. When the exchange ends, the reader is detached and `with` is released. Does
  /// nothing if the peer has gone.
  void open(std::unique_ptr<Subscription> subscription, std::shared_ptr<void> with = {});

  bool write(std::string_view block) override;
  bool write(const Bytes& block) override;
  bool take(std::string& block) override;
  void finish() override;
  void drop(const Error& error) override;

 private:
  HttpExchangePtr exchange_;
};

}  // namespace sluice
