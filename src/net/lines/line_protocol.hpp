#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <sys/types.h>

#include "core/bytes.hpp"
#include "core/client_memory.hpp"
#include "core/clock.hpp"
#include "core/ref_ptr.hpp"
#include "net/connection/connection.hpp"
#include "net/connection/connection_protocol.hpp"
#include "net/connection/output_stage.hpp"
#include "net/lines/line_reader.hpp"

namespace sluice {

struct LineOptions {
  std::size_t max_line = 4U << 20U;  // bytes of a line; longer ones are refused and skipped
  OutputLimits output;

  // Zero: for ever.
  Duration line_timeout{};  // a line's last byte after its first
  Duration end_timeout{};   // what is under way after the end of the input
};

/// What happens on a connection of lines. Called on its loop; owned by the session, destroyed after
/// on_close.
class LineHandler {
 public:
  virtual ~LineHandler() = default;
  /// One line without its end, not empty, valid during the call. False: taken, but no more before
  /// LineProtocol::resume_input().
  virtual bool on_line(std::string_view line) = 0;
  /// A line was longer than it may be; its bytes are gone.
  virtual void on_long_line() = 0;
  /// The output queue has fallen below its low-water mark after send() had returned false.
  virtual void on_drain() = 0;
  /// No line follows: the peer has said its last, or the server shuts down. close() the session
  /// when all is answered.
  virtual void on_input_end() = 0;
  /// The connection is over, once.
  virtual void on_close() = 0;
};

class LineService;

/// One connection of lines, as a state machine: what its peer has sent goes to the handler as long
/// as the peer takes the answers, and what is sent waits in a bounded queue. Only on its loop's
/// thread; after the connection has closed every call does nothing.
class LineProtocol final : public RefCounted, private ConnectionProtocol {
 public:
  /// Lets `service` serve `connection`, which starts with it. `options` outlive the connection.
  static void begin(Connection& connection, LineService& service, uid_t user,
                    const LineOptions& options);

  /// As of the connection.
  void charge_to(std::shared_ptr<MemoryShare> client);
  /// Queues lines, with their ends. False when the output queue is above its high-water mark: they
  /// are queued, but the caller should wait for on_drain.
  bool send(std::string_view lines);
  /// The same; what is long is not copied.
  bool take(std::string lines);
  /// The same, shared, not copied.
  bool send(const Bytes& lines);
  /// Sends what is queued now instead of at the turn's end.
  void flush();
  /// The handler takes more lines.
  void resume_input();
  /// Ends the connection as soon as what is queued has left.
  void close();
  [[nodiscard]] bool is_open() const { return connection_ && connection_->is_open(); }
  [[nodiscard]] std::size_t queued_bytes() const;

 private:
  LineProtocol(Connection& connection, const LineOptions& options);

  bool on_input(InputBuffer& input) override;
  [[nodiscard]] bool holds_input() const override { return has_lines_; }
  [[nodiscard]] bool wants_input(const InputBuffer& input) const override;
  void on_no_memory() override;
  void on_input_end() override;
  void on_drain() override;
  [[nodiscard]] bool outlives_output() const override { return !end_told_; }
  void on_tick(TimePoint now) override;
  void on_shutdown() override;
  [[nodiscard]] bool is_idle() const override { return false; }
  void on_worker(ConnectionWorker& /*worker*/) override {}
  void on_end() override;
  void release() override { release_reference(); }

  bool take_line();
  void tell_end();

  RefPtr<Connection> connection_;  // null once it is over
  const LineOptions* options_;
  LineReader reader_;
  CoarseHold hold_;                       // of what the reader holds
  std::unique_ptr<LineHandler> handler_;  // null once told of the end
  TimePoint line_at_{};                   // since when a line is there in part
  TimePoint ended_at_{};                  // the end of the input
  bool has_lines_ = false;                // in the reader, as far as we know
  bool input_paused_ = false;
  bool input_ended_ = false;
  bool end_told_ = false;
};
using LineProtocolPtr = RefPtr<LineProtocol>;

/// What serves connections of lines, on one loop.
class LineService {
 public:
  virtual ~LineService() = default;
  /// A connection of the system's user `user` has begun.
  virtual std::unique_ptr<LineHandler> open(LineProtocolPtr session, uid_t user) = 0;
};

}  // namespace sluice
