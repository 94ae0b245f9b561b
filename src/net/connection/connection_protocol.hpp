#pragma once

#include <memory>

#include "core/clock.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/connection/input_buffer.hpp"

namespace sluice {

/// The protocol of a connection: HTTP, WebSocket or lines. A state machine that the connection
/// feeds with input and queries. It sends through the connection; calls to the connection never end
/// it at once. All calls come on the connection's loop.
class ConnectionProtocol {
 public:
  /// Handles one unit of the received bytes (a request, a message, a part of a body) and consumes
  /// it from `input`. Returns false if nothing can be done before more arrives or the output
  /// drains.
  virtual bool on_input(InputBuffer& input) = 0;
  /// Whether it has consumed input that it has not handled yet. Then on_input() may be called with
  /// an empty buffer.
  [[nodiscard]] virtual bool holds_input() const = 0;
  /// Whether to read more now, while `input` has not been handled.
  [[nodiscard]] virtual bool wants_input(const InputBuffer& input) const = 0;
  /// There is no memory for input: what has been received is discarded.
  virtual void on_no_memory() = 0;
  /// The peer sends no more, and all that it sent has been offered to on_input(). May be called
  /// more than once.
  virtual void on_input_end() = 0;
  /// The output has fallen to its low-water mark after it was full.
  virtual void on_drain() = 0;
  /// Whether the connection continues with its input when the peer accepts no more output. What is
  /// sent then is discarded.
  [[nodiscard]] virtual bool outlives_output() const = 0;
  /// Called every tick, to check timeouts, until the connection has told the peer that nothing
  /// follows.
  virtual void on_tick(TimePoint now) = 0;
  /// The server shuts down: begin nothing new.
  virtual void on_shutdown() = 0;
  /// Whether nothing is under way, so that the connection may move to another worker.
  [[nodiscard]] virtual bool is_idle() const = 0;
  /// The connection belongs to `worker` from now on. Also called when it starts.
  virtual void on_worker(ConnectionWorker& worker) = 0;
  /// The connection is over. No call follows but release().
  virtual void on_end() = 0;
  /// The connection gives up its ownership. Not called from within another call.
  virtual void release() = 0;

 protected:
  ~ConnectionProtocol() = default;
};

struct ReleaseProtocol {
  void operator()(ConnectionProtocol* protocol) const { protocol->release(); }
};
using ConnectionProtocolPtr = std::unique_ptr<ConnectionProtocol, ReleaseProtocol>;

}  // namespace sluice
