#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <sys/types.h>

#include "core/bytes.hpp"
#include "core/clock.hpp"
#include "core/memory_budget.hpp"
#include "net/input_buffer.hpp"
#include "net/line_reader.hpp"
#include "net/output_stage.hpp"
#include "net/ref_ptr.hpp"

namespace sluice {

struct LineOptions {
  std::size_t max_line = 4U << 20U;  // bytes of a line; longer ones are refused and skipped
  OutputLimits output;

  // Zero: for ever.
  Duration line_timeout{};   // a line's last byte after its first
  Duration stall_timeout{};  // a peer that takes nothing is dropped
  Duration end_timeout{};    // what is under way after the end of the input
};

/// What happens on a connection of lines. Called on its loop; owned by the session, destroyed after
/// on_close.
class LineHandler {
 public:
  virtual ~LineHandler() = default;
  /// One line without its end, not empty, valid during the call.
  virtual void on_line(std::string_view line) = 0;
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

/// One connection of lines, as a state machine: what its peer has sent goes to the handler as long
/// as the peer takes the answers, and what is sent waits in a bounded queue. Derived classes move
/// the bytes. Only on its loop's thread; after the connection has closed every call does nothing.
class LineSession : public RefCounted {
 public:
  /// Queues lines, with their ends. False when the output queue is above its high-water mark: they
  /// are queued, but the caller should wait for on_drain.
  bool send(std::string_view lines);
  /// The same, shared, not copied.
  bool send(const Bytes& lines);
  /// Sends what is queued now instead of at the turn's end.
  virtual void flush() = 0;
  /// Ends the connection as soon as what is queued has left.
  void close();
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size(); }

 protected:
  /// `pool` and `options` outlive the session.
  LineSession(BufferPool& pool, const LineOptions& options);

  void open(std::unique_ptr<LineHandler> handler) { handler_ = std::move(handler); }

  [[nodiscard]] bool wants_input() const {
    return state_ == State::open && !input_ended_ && !output_.is_full();
  }
  void feed(std::string_view bytes);
  /// The peer sends no more.
  void end_input();
  /// Nothing more of the peer is handled, not even what has come.
  void refuse_input();
  /// Hands out the lines that are there.
  void process();

  [[nodiscard]] OutputStage& output() { return output_; }
  /// Some output has left. At the end of a turn, like tear_down().
  void output_left();
  /// The peer takes nothing any more: what is for it is thrown away.
  void lose_output();
  /// Nothing is handled or sent any more; output_changed() asks for tear_down().
  void give_up();
  [[nodiscard]] bool is_doomed() const { return state_ == State::doomed; }
  /// The end. Not from within a call of the handler.
  void tear_down();

  [[nodiscard]] const LineOptions& options() const { return *options_; }
  /// Nothing is handled or sent any more.
  [[nodiscard]] bool is_over() const { return state_ >= State::doomed; }
  [[nodiscard]] bool in_line() const { return reader_.in_line() && !output_.is_full(); }
  [[nodiscard]] bool end_told() const { return end_told_; }
  /// Lines handed out so far.
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

  /// There is output to be moved, or the session is doomed.
  virtual void output_changed() = 0;
  /// process() is to be called, and input is wanted again.
  virtual void input_wanted() = 0;
  /// The session is over; the handler hears of it next.
  virtual void dropped() = 0;

 private:
  /// `closing` ends when its output has left, `doomed` at the end of the turn.
  enum class State : std::uint8_t { open, closing, doomed, closed };

  void take_lines();
  bool may_send();
  bool queued();

  const LineOptions* options_;
  LineReader reader_;
  OutputStage output_;
  BufferPool* pool_;
  BudgetShare share_;                     // of what the reader holds
  std::unique_ptr<LineHandler> handler_;  // null once told of the end
  std::uint64_t lines_ = 0;
  State state_ = State::open;
  bool input_ended_ = false;
  bool end_told_ = false;
  bool output_lost_ = false;
};
using LineSessionPtr = RefPtr<LineSession>;

/// What serves connections of lines, on one loop.
class LineService {
 public:
  virtual ~LineService() = default;
  /// A connection of the system's user `user` has begun.
  virtual std::unique_ptr<LineHandler> open(LineSessionPtr session, uid_t user) = 0;
};

}  // namespace sluice
