#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"
#include "net/loop/host_port.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

/// Opens sockets that listen on every address of `place.host`, all on the same port. If
/// `place.port` is 0, the kernel chooses the port, which is written to it. The first address must
/// work; others may fail. The error names the place and says why.
Result<std::vector<Descriptor>> listen_on(HostPort& place);

/// Accepts connections from a listening socket. Belongs to its loop.
class Acceptor final : private EventLoop::Watcher {
 public:
  using Sink = std::function<void(Descriptor, const PeerAddress&)>;

  /// `errors` counts failures to accept a connection.
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
