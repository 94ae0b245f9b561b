#pragma once

#include <memory>

#include "core/clock.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/connection/input_buffer.hpp"

namespace sluice {

/// What a connection speaks: HTTP, WebSocket or lines. A state machine that the connection feeds
/// and asks; it sends through the connection, whose calls never end it at once. All calls come on
/// the connection's loop.
class ConnectionProtocol {
 public:
  /// Handles one unit of what has come - a request, a message, a part of a body - and takes its
  /// bytes from `input`. False if nothing can be done before more has come, or before the output
  /// has drained.
  virtual bool on_input(InputBuffer& input) = 0;
  /// Whether it has taken input that it has not handled yet, so that on_input() may be called with
  /// an empty one.
  [[nodiscard]] virtual bool holds_input() const = 0;
  /// Whether more input is of use now, with so much that has not been handled.
  [[nodiscard]] virtual bool wants_input(const InputBuffer& input) const = 0;
  /// The memory for input is used up: what has come is lost.
  virtual void on_no_memory() = 0;
  /// The peer sends no more, and what it has sent has been offered to on_input(). May come again.
  virtual void on_input_end() = 0;
  /// The output has fallen to its low-water mark after it had been full.
  virtual void on_drain() = 0;
  /// Whether the connection goes on with its input when the peer takes nothing any more. What is
  /// sent then is thrown away.
  [[nodiscard]] virtual bool outlives_output() const = 0;
  /// Timeouts, every tick, until the connection has told the peer that nothing follows.
  virtual void on_tick(TimePoint now) = 0;
  /// The server ends: nothing new is begun.
  virtual void on_shutdown() = 0;
  /// Whether nothing is under way, so that the connection may go on with another worker.
  [[nodiscard]] virtual bool is_idle() const = 0;
  /// It does.
  virtual void on_worker(ConnectionWorker& worker) = 0;
  /// The connection is over. The last call but release().
  virtual void on_end() = 0;
  /// The connection lets go of it. Not from within another of its calls.
  virtual void release() = 0;

 protected:
  ~ConnectionProtocol() = default;
};

struct ReleaseProtocol {
  void operator()(ConnectionProtocol* protocol) const { protocol->release(); }
};
using ConnectionProtocolPtr = std::unique_ptr<ConnectionProtocol, ReleaseProtocol>;

}  // namespace sluice
