#pragma once

#include "net/connection/connection.hpp"
#include "net/connection/connection_ticket.hpp"
#include "net/io/descriptor_io.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// A connection over descriptors of any kind: a Unix socket, or one descriptor to read from and
/// another to write to. What epoll does not support (files, /dev/null) counts as always ready. The
/// worker must have a loop for sockets.
class DescriptorConnection final : public Connection {
 public:
  /// `limits` must outlive the connection. `output` is empty if `input` is a socket for both
  /// directions. `ended`, if any, is posted when the connection has been closed.
  DescriptorConnection(ConnectionWorker& worker, const OutputLimits& limits, Descriptor input,
                       Descriptor output, ConnectionTicket ticket, Executor::Task ended);

 private:
  /// Tells the connection when one of its descriptors is ready.
  class Side final : public EventLoop::Watcher {
   public:
    Side(DescriptorConnection& connection, bool reads, bool writes)
        : connection_(&connection), reads_(reads), writes_(writes) {}
    void on_ready(std::uint32_t events) override { connection_->on_side(events, reads_, writes_); }

   private:
    DescriptorConnection* connection_;
    bool reads_;
    bool writes_;
  };

  void on_side(std::uint32_t events, bool reads, bool writes);
  void watch(const Descriptor& descriptor, Side& side);
  IoResult read_some(std::span<char> buffer) override { return source_.read(buffer); }
  IoResult write_some(std::span<const iovec> parts) override;
  [[nodiscard]] std::uint32_t unacknowledged() const override { return sink_.unacknowledged(); }
  /// After the descriptors are closed, the peer can still read what was written.
  bool end_output() override { return false; }
  bool attach() override;
  void detach() override;
  void close() override;

  Descriptor in_;
  Descriptor out_;
  DescriptorIo source_;
  DescriptorIo sink_;
  Side input_side_;
  Side output_side_;
  ConnectionTicket ticket_;
  Executor::Task ended_;
};

}  // namespace sluice
