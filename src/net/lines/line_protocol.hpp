#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <sys/types.h>
#include <variant>

#include "core/bytes.hpp"
#include "core/clock.hpp"
#include "core/ref_ptr.hpp"
#include "core/sharing/client_memory.hpp"
#include "net/connection/connection.hpp"
#include "net/connection/connection_protocol.hpp"
#include "net/connection/output_stage.hpp"
#include "net/lines/line_reader.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

struct LineOptions {
  std::size_t max_line = 4U << 20U;  // bytes of a line; longer ones are refused and skipped
  OutputLimits output;
  /// Whether a connection ends that begins with anything but a JSON object or array, after blanks.
  /// So a page in a browser, whose requests begin otherwise, cannot hide lines in one.
  bool begins_with_json = false;

  // Timeouts; 0: none.
  Duration line_timeout{};  // from a line's first byte to its last
  Duration end_timeout{};   // for what is under way at the end of the input
};

/// The other end of a connection of lines: a user of this machine, or an address.
using LinePeer = std::variant<uid_t, PeerAddress>;

/// Receives what happens on a connection of lines. Called on its loop. Owned by the connection,
/// destroyed after on_close().
class LineHandler {
 public:
  virtual ~LineHandler() = default;
  /// A line without its end, not empty, valid during the call. Return false to receive no more
  /// before LineProtocol::resume_input(); this line has been received.
  virtual bool on_line(std::string_view line) = 0;
  /// A line was longer than allowed. Its bytes have been discarded.
  virtual void on_long_line() = 0;
  /// The peer speaks something else (LineOptions::begins_with_json). Nothing that it sends is
  /// received: say so, and call LineProtocol::close().
  virtual void on_other_protocol() = 0;
  /// The output queue has fallen to its low-water mark after send() returned false.
  virtual void on_drain() = 0;
  /// No line follows: the peer sends no more, or the server shuts down. Call LineProtocol::close()
  /// when everything has been answered.
  virtual void on_input_end() = 0;
  /// The connection is over. Called once.
  virtual void on_close() = 0;
};

class LineService;

/// One connection of lines, as a state machine. Passes received lines to the handler as long as the
/// peer reads the answers. What is sent waits in a bounded queue. Use only on its loop's thread.
/// After the connection has closed, every call does nothing.
class LineProtocol final : public RefCounted, private ConnectionProtocol {
 public:
  /// Starts `connection` and lets `service` serve it. `options` must outlive the connection.
  static void begin(Connection& connection, LineService& service, const LinePeer& peer,
                    const LineOptions& options);

  /// As Connection::charge_to().
  void charge_to(std::shared_ptr<MemoryShare> client);
  /// Queues lines, which include their ends. Returns false if the output queue is above its
  /// high-water mark: they are queued, but the caller should wait for on_drain(). Also returns
  /// false if the connection is over and the handler has not been told yet.
  bool send(std::string_view lines);
  /// The same; long text is not copied.
  bool take(std::string lines);
  /// The same with shared bytes, which are not copied.
  bool send(const Bytes& lines);
  /// Sends what is queued now instead of at the turn's end.
  void flush();
  /// The handler can take more lines.
  void resume_input();
  /// Ends the connection when what is queued has been sent.
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
  [[nodiscard]] bool is_other_protocol(std::string_view input);
  void tell_end();
  void end_input();

  RefPtr<Connection> connection_;  // null once it is over
  const LineOptions* options_;
  LineReader reader_;
  CoarseHold hold_;                       // of what the reader holds
  std::unique_ptr<LineHandler> handler_;  // null once told of the end
  TimePoint line_at_{};                   // when the incomplete line began
  TimePoint ended_at_{};                  // the end of the input
  bool has_begun_ = false;                // with JSON
  bool has_lines_ = false;                // the reader may have some
  bool input_paused_ = false;
  bool input_ended_ = false;
  bool end_told_ = false;
};
using LineProtocolPtr = RefPtr<LineProtocol>;

/// Serves connections of lines on one loop.
class LineService {
 public:
  virtual ~LineService() = default;
  /// A connection has begun.
  virtual std::unique_ptr<LineHandler> open(LineProtocolPtr connection, const LinePeer& peer) = 0;
};

}  // namespace sluice
