#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/log_limit.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

/// Sockets that listen on every address of `host`, on the same port; that is written to `port` if
/// it was 0. The first address must do, others may be missing. The error says what is in the way.
Result<std::vector<Descriptor>> listen_on(const std::string& host, std::uint16_t& port);

/// Accepts connections from a listening socket. Belongs to its loop.
class Acceptor final : private EventLoop::Watcher {
 public:
  using Sink = std::function<void(Descriptor, const PeerAddress&)>;

  /// `errors` counts what goes wrong.
  Acceptor(EventLoop& loop, Descriptor socket, Sink sink, std::atomic<std::uint64_t>& errors);
  ~Acceptor() override;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  void on_ready(std::uint32_t events) override;
  void go_on_at(TimePoint when);

  EventLoop* loop_;
  Descriptor socket_;
  Sink sink_;
  std::atomic<std::uint64_t>* errors_;
  Executor::TimerId timer_ = 0;
  LogLimit shortage_;
};

}  // namespace sluice
