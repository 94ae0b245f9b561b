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
#include "core/ref_ptr.hpp"
#include "core/sharing/client_memory.hpp"
#include "net/connection/connection_protocol.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/connection/input_buffer.hpp"
#include "net/connection/output_stage.hpp"
#include "net/io/socket_io.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

/// A server's end of a connection. Reads what its protocol wants and sends what is queued, within
/// limits and timeouts. Derived classes move the bytes. Lives as long as an operation or a handle
/// refers to it. Belongs to its worker's loop.
///
/// No call that sends something ends the connection. At most the connection is given up; then the
/// protocol is told, and its objects are destroyed, at the end of the turn.
///
/// Reads into memory that the connections of a loop share. It owns input memory only while part of
/// a request is buffered.
class Connection : public RefCounted, private Executor::TurnHook {
 public:
  void start(ConnectionProtocolPtr protocol);
  /// Ends the connection: nothing more is read or sent. The protocol is told at the end of the
  /// turn.
  void give_up();
  /// The same, at once. Not from within a call to the protocol.
  void tear_down();

  // For the protocol. To send a message, check may_send(), append the message to output() or
  // queue() it, then call added() or send_added(). Queued messages are sent at the end of the turn,
  // or by flush(). If an exception interrupts a message before added(), nothing of it is sent.

  /// Whether anything can still be sent. Gives the connection up if the peer has left more unread
  /// than it may.
  [[nodiscard]] bool may_send();
  std::string& output() { return output_.text(worker_->buffers); }
  /// Queues shared bytes from `offset` to `offset + size`.
  void queue(const Bytes& bytes, std::size_t offset, std::size_t size);
  /// Appends `rest`, the end of the message that output() has begun. A long `rest` is not copied.
  void take(std::string&& rest) { output_.take(worker_->buffers, std::move(rest)); }
  /// Ends a message. Returns false if the sender must wait for the protocol's on_drain().
  bool added();
  void flush();
  /// Ends a message as added() does, then calls flush().
  void send_added();
  /// Sends what is queued, then `bytes`, which are copied only if the peer does not accept them
  /// now. Returns what added() returns, and false if the connection is over.
  bool send_now(std::string_view bytes);
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size(); }
  [[nodiscard]] bool is_output_full() const { return output_.is_full(); }
  [[nodiscard]] Duration stalled_for() const;
  /// Sends what is queued, then ends the connection.
  void close_after_flush();

  /// Continues with the input at the end of the turn, if there is any.
  void resume_later();
  /// Continues with the input when it is the turn of its client. A protocol that calls this in
  /// on_input() must then return.
  void wait_for_turn();
  /// Counts the cost of handling input, apart from its bytes, which are counted when they are read
  /// (WorkLimits).
  void worked(std::size_t cost);
  /// Call between the parts of one input. Counts the time that the part took, if it was long.
  void end_step();
  /// Whether more work on the input may be done in this turn.
  [[nodiscard]] bool may_work() const;
  /// Uses `protocol` from the next input on.
  void switch_to(ConnectionProtocolPtr protocol);
  /// Moves the connection to the worker with that number at the end of the turn. Does nothing if
  /// the connection is busy then.
  void move_to(std::uint16_t worker);

  /// Charges the memory of this connection to that client from now on. Null: to no client.
  void charge_to(std::shared_ptr<MemoryShare> client) {
    memory_ = std::move(client);
    awaits_client_ = false;
  }
  /// Says that several clients use this connection, and that it is not known whose input is next.
  /// Until the next charge_to() it waits for turns as a client of its own. What it still has to
  /// send is charged as before.
  void await_client() { awaits_client_ = true; }
  [[nodiscard]] bool awaits_client() const { return awaits_client_; }
  [[nodiscard]] bool is_charged() const { return memory_ != nullptr; }
  /// The share that the memory of this connection is counted in: its client's, or that of all
  /// connections that are not charged to a client. Null: there is no limit.
  [[nodiscard]] const std::shared_ptr<MemoryShare>& memory() const {
    return is_charged() ? memory_ : worker_->nobodys_memory;
  }

  [[nodiscard]] ConnectionWorker& worker() const { return *worker_; }
  [[nodiscard]] const PeerAddress& peer() const { return peer_; }
  [[nodiscard]] bool is_tls() const { return is_tls_; }
  /// Whether the TLS handshake is over; true without TLS.
  [[nodiscard]] virtual bool is_established() const { return true; }
  /// Input is read and output accepted.
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  /// Nothing more is read or sent.
  [[nodiscard]] bool is_over() const { return state_ >= State::doomed; }
  [[nodiscard]] bool has_input_ended() const { return input_ended_; }
  /// Whether the peer is known to send no more, although not all that it sent may have been read.
  [[nodiscard]] bool is_at_end() const { return is_at_end_; }
  [[nodiscard]] bool is_output_lost() const { return output_lost_; }
  /// Counts and logs that the peer took too long for `what`.
  void note_timeout(std::string_view what);
  /// When the last byte was read.
  [[nodiscard]] TimePoint active_at() const { return active_at_; }
  /// When the peer last accepted a byte while there was something to send.
  [[nodiscard]] TimePoint progress_at() const { return progress_at_; }

 protected:
  Connection(ConnectionWorker& worker, const PeerAddress& peer, const OutputLimits& limits,
             bool is_tls);
  ~Connection() override = default;

  // What a derived class reports.
  enum Readiness : std::uint8_t {
    kReadable = 1,
    kWritable = 2,
    kInputEnd = 4,  // the peer sends no more
    kGone = 8,      // the peer no longer reads either
  };
  void on_ready(unsigned readiness);

  /// Marks the connection as readable before any event.
  void begin_readable() { is_readable_ = true; }

  // What a derived class implements. A transfer that has moved bytes may return want_read or
  // want_write if no more can be moved now. A read may return `ok` with 0 bytes, and another read
  // may then bring some.
  virtual IoResult read_some(std::span<char> buffer) = 0;
  virtual IoResult write_some(std::span<const iovec> parts) = 0;
  /// Bytes that have been written and that the peer has not received yet.
  [[nodiscard]] virtual std::uint32_t unacknowledged() const = 0;
  /// Tells the peer that nothing follows. Returns whether what it still sends must be read for a
  /// while, because a reset could destroy our last bytes (RFC 9112, section 9.6).
  virtual bool end_output() = 0;
  /// Registers with the worker's loop for readiness. Returns false if that fails.
  virtual bool attach() = 0;
  virtual void detach() = 0;
  /// Closes the connection to the peer, after detach().
  virtual void close() = 0;

 private:
  friend class ConnectionWorker;
  /// `flushing` reads nothing more and ends when its output has been sent. `lingering` has told the
  /// peer that nothing follows, and discards what still arrives. `doomed` is torn down at the end
  /// of the turn.
  enum class State : std::uint8_t { open, flushing, lingering, doomed, closed };

  /// Runs `step`. If it throws (user code, or no memory), only this connection is given up.
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
  void settle_input();
  void lose_input();
  void end_input(bool has_failed);
  void lose_output();
  bool send_some();
  void wait_writable();
  void send_more();
  void notify_drain();
  void linger();
  /// `why` is for the log.
  void give_up_unread(std::string_view why = "a peer does not read what it is sent");
  [[nodiscard]] bool is_stalled(TimePoint now);
  void count_memory();
  [[nodiscard]] BufferSource source() const { return {worker_->buffers, memory()}; }

  ConnectionWorker* worker_;
  Connection* previous_ = nullptr;
  Connection* next_ = nullptr;
  ConnectionProtocolPtr protocol_;
  ConnectionProtocolPtr protocol_before_;  // may still be on the stack
  std::shared_ptr<MemoryShare> memory_;    // of its client, once that is known
  InputBuffer input_;
  OutputStage output_;

  TimePoint active_at_;
  TimePoint progress_at_;
  std::uint32_t unacknowledged_ = 0;  // at the last check
  std::uint32_t worked_ = 0;          // since its turn began; saturates
  PeerAddress peer_;
  std::uint16_t next_worker_ = ConnectionWorker::kNone;  // to move to at the end of the turn
  State state_ = State::open;
  bool is_tls_;               // then reads may wait for writes, and vice versa
  bool is_readable_ = false;  // as far as we know
  bool is_at_end_ = false;    // we were told that the peer sends no more
  bool has_gone_ = false;     // we were told that it does not read either
  bool writing_ = false;      // waiting for the peer to take more
  bool processing_ = false;
  bool input_first_ = true;  // input, not the senders, went first when the output last drained
  bool resume_ = false;      // continue with the input at the end of the turn
  bool waiting_ = false;     // for its turn to continue with the input
  bool awaits_client_ = false;
  bool input_ended_ = false;
  bool output_lost_ = false;
  bool counted_parked_ = false;  // holds no input memory
};

}  // namespace sluice
