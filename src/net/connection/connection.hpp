#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <utility>

#include "core/bytes.hpp"
#include "core/client_memory.hpp"
#include "core/ref_ptr.hpp"
#include "net/connection/connection_protocol.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/connection/input_buffer.hpp"
#include "net/connection/output_stage.hpp"
#include "net/loop/peer_address.hpp"
#include "net/transport/transport.hpp"

namespace sluice {

/// A server's end of a connection, whatever moves its bytes: reads what its protocol wants, sends
/// what is queued, within limits, and knows when its peer has had its time. Derived classes move
/// the bytes. Lives as long as an operation or a handle refers to it. Belongs to its worker's loop.
///
/// No call that sends something ends the connection: at most it is given up, and nothing that
/// depends on it is told, or destroyed, before the end of the turn.
///
/// It reads into memory that it shares with its neighbours, and owns some only while a request is
/// there in part.
class Connection : public RefCounted, private Executor::TurnHook {
 public:
  void start(ConnectionProtocolPtr protocol);
  /// Breaks the connection off: nothing is read or sent any more. The protocol is told at the end
  /// of the turn.
  void give_up();
  /// The same, at once. Not from within a call of the protocol.
  void tear_down();

  // For the protocol. Output: ask may_send(), append a message to output() or queue() it, say
  // added() or send_added(). All of it leaves at the end of the turn, or at flush(). Nothing leaves
  // of a message that an exception has kept from being added.

  /// Whether anything can still be sent. Gives up a peer that has left more unread than it may.
  [[nodiscard]] bool may_send();
  std::string& output() { return output_.text(worker_->buffers); }
  /// Appends shared bytes from `offset` to `offset + size`.
  void queue(const Bytes& bytes, std::size_t offset, std::size_t size);
  /// Ends the message that output() has begun with `rest`, which is not copied if it is long.
  void take(std::string&& rest) { output_.take(worker_->buffers, std::move(rest)); }
  /// False: the sender must wait for the protocol's on_drain().
  bool added();
  void flush();
  /// As added() and flush().
  void send_added();
  /// Sends what is queued and these bytes, which are copied only if the peer does not take them
  /// now. As added().
  bool send_now(std::string_view bytes);
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size(); }
  [[nodiscard]] bool is_output_full() const { return output_.is_full(); }
  [[nodiscard]] Duration stalled_for() const;
  /// Sends what is queued, then ends the connection.
  void close_after_flush();

  /// Goes on with the input at the end of the turn, if there is any.
  void resume_later();
  /// Says what handling input has cost beyond its bytes, which count when they are read
  /// (WorkLimits).
  void worked(std::size_t cost);
  /// Whether more may be done with the input in this turn.
  [[nodiscard]] bool may_work() const;
  /// Speaks `protocol` from the next input on.
  void switch_to(ConnectionProtocolPtr protocol);
  /// Goes on as a connection of that worker at the end of the turn, unless there is something to do
  /// here first.
  void move_to(std::uint16_t worker);

  /// Counts what is held for this connection as that client's from now on. Null: there is no limit.
  void charge_to(std::shared_ptr<MemoryShare> client) { memory_ = std::move(client); }
  [[nodiscard]] bool is_charged() const { return memory_ != nullptr; }
  /// The share of the client that it is charged to, or else what connections have that are nobody's
  /// yet; null: there is no limit.
  [[nodiscard]] const std::shared_ptr<MemoryShare>& memory() const {
    return is_charged() ? memory_ : worker_->nobodys_memory;
  }

  [[nodiscard]] ConnectionWorker& worker() const { return *worker_; }
  [[nodiscard]] const PeerAddress& peer() const { return peer_; }
  [[nodiscard]] bool is_tls() const { return is_tls_; }
  /// Whether everything of a TLS handshake has come; true without TLS.
  [[nodiscard]] virtual bool is_established() const { return true; }
  /// Input is read and output taken.
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  /// Nothing is read or sent any more.
  [[nodiscard]] bool is_over() const { return state_ >= State::doomed; }
  [[nodiscard]] bool has_input_ended() const { return input_ended_; }
  /// Whether it is known that the peer sends no more, though not all it has sent may have been
  /// read.
  [[nodiscard]] bool is_at_end() const { return is_at_end_; }
  [[nodiscard]] bool is_output_lost() const { return output_lost_; }
  /// The peer took too long for `what`: counted, and said in the log.
  void note_timeout(std::string_view what);
  /// When the last byte was read.
  [[nodiscard]] TimePoint active_at() const { return active_at_; }
  /// When the peer last took a byte while there was something to send.
  [[nodiscard]] TimePoint progress_at() const { return progress_at_; }

 protected:
  Connection(ConnectionWorker& worker, const PeerAddress& peer, const OutputLimits& limits,
             bool is_tls);
  ~Connection() override = default;

  // What a derived class tells.
  enum Readiness : std::uint8_t {
    kReadable = 1,
    kWritable = 2,
    kInputEnd = 4,  // the peer sends no more
    kGone = 8,      // the peer does not read either
  };
  void on_ready(unsigned readiness);

  /// Something can be read from the start.
  void begin_readable() { is_readable_ = true; }

  // What a derived class does. A transfer may have moved bytes and say at once that there are no
  // more, with want_read or want_write. A read may also bring none and be worth another one.
  virtual IoResult read_some(std::span<char> buffer) = 0;
  virtual IoResult write_some(std::span<const iovec> parts) = 0;
  /// Bytes that have been written and that the peer has not taken yet.
  [[nodiscard]] virtual std::uint32_t unacknowledged() const = 0;
  /// Tells the peer that nothing follows. Whether what it still sends must be read for a while, so
  /// that our last bytes are not lost to a reset (RFC 9112, section 9.6).
  virtual bool end_output() = 0;
  /// Asks the worker's loop to be told of readiness. False if it cannot.
  virtual bool attach() = 0;
  virtual void detach() = 0;
  /// Lets go of the peer, after detach().
  virtual void close() = 0;

 private:
  friend class ConnectionWorker;
  /// `flushing` reads nothing more and ends when its output has left. `lingering` has told the peer
  /// so and discards what still comes. `doomed` is torn down at the end of the turn.
  enum class State : std::uint8_t { open, flushing, lingering, doomed, closed };

  /// Runs `step`. What user code throws in it, or a lack of memory, costs this connection.
  template <class Step>
  void guarded(const Step& step) noexcept;
  void on_turn_end() override;
  bool end_turn();
  void tick(TimePoint now);
  void drain();
  void go_on();
  bool move();
  void arrive(ConnectionWorker& worker);
  void be_ready(unsigned readiness);
  void read_now();
  [[nodiscard]] bool may_read() const;
  void on_bytes_read(std::size_t bytes);
  [[nodiscard]] bool has_input() const;
  void process();
  void take_input();
  void wait_for_turn();
  void settle_input();
  void lose_input();
  void end_input(bool has_failed);
  void lose_output();
  bool send_some();
  void wait_writable();
  void notify_drain();
  void linger();
  void give_up_unread();
  [[nodiscard]] bool is_stalled(TimePoint now);
  void count_memory();
  [[nodiscard]] BufferSource source() const { return {worker_->buffers, memory()}; }

  ConnectionWorker* worker_;
  Connection* previous_ = nullptr;
  Connection* next_ = nullptr;
  ConnectionProtocolPtr protocol_;
  ConnectionProtocolPtr protocol_before_;  // may be on the stack
  std::shared_ptr<MemoryShare> memory_;    // of its client, once that is known
  InputBuffer input_;
  OutputStage output_;

  TimePoint active_at_;
  TimePoint progress_at_;
  std::uint32_t unacknowledged_ = 0;  // when last looked at
  std::uint32_t worked_ = 0;          // since its turn began, or the most that fits
  PeerAddress peer_;
  std::uint16_t next_worker_ = ConnectionWorker::kNone;  // to move to at the end of the turn
  State state_ = State::open;
  bool is_tls_;               // then reads may wait for writes, and the other way round
  bool is_readable_ = false;  // as far as we know
  bool is_at_end_ = false;    // we were told that the peer sends no more
  bool has_gone_ = false;     // we were told that it does not read either
  bool writing_ = false;      // waiting for the peer to take more
  bool processing_ = false;
  bool input_first_ = true;  // it, not the senders, when the output last had room again
  bool resume_ = false;      // go on with the input at the end of the turn
  bool waiting_ = false;     // for its turn to go on with the input
  bool input_ended_ = false;
  bool output_lost_ = false;
  bool counted_parked_ = false;  // holds no input memory
};

}  // namespace sluice
