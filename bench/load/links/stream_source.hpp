#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "loop.hpp"
#include "options.hpp"

namespace sluice::bench {

/// Receives the events of a stream. Views are valid during the call.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  /// The connection is open (a WebSocket has been upgraded) and no stream is running: start() may
  /// follow.
  virtual void on_ready() = 0;
  /// The server has accepted the stream.
  virtual void on_started() = 0;
  virtual void on_chunk(std::string_view text, std::int64_t now) = 0;
  /// The stream ended properly; on_ready() follows.
  virtual void on_end() = 0;
  virtual void on_error(std::string_view what) = 0;
};

/// A connection that carries one stream after another by one of the deliveries. Reports as errors a
/// wrong status, a malformed reply, and a connection that is lost within a stream. Reopens a lost
/// connection.
class StreamSource : public Connection {
 public:
  using Connection::Connection;
  virtual void start() = 0;
  /// The member name of the chunk numbers in this delivery.
  [[nodiscard]] virtual std::string_view label() const = 0;
};

/// `events` must outlive the source.
std::unique_ptr<StreamSource> make_stream_source(Loop& loop, const Options& options,
                                                 StreamEvents& events);

}  // namespace sluice::bench
