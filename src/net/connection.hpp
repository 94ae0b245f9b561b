#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "net/http_exchange.hpp"
#include "net/http_parser.hpp"
#include "net/input_buffer.hpp"
#include "net/output_stage.hpp"
#include "net/ref_ptr.hpp"
#include "net/server_worker.hpp"
#include "net/transport.hpp"

namespace sluice {

class ServerExchange;
class ServerWebSocket;

/// One accepted connection: reads requests one at a time, sends what is queued, and knows when its
/// peer has had its time. Lives as long as an operation or a handle refers to it. Belongs to its
/// worker's loop.
///
/// No call that sends something ends the connection: at most it is given up, and nothing that
/// depends on it is told, or destroyed, before the end of the turn.
///
/// It reads into memory that it shares with its neighbours, and owns some only while a request is
/// there in part.
class Connection final : public RefCounted,
                         private EventLoop::Watcher,
                         private EventLoop::TurnHook {
 public:
  /// `tls` is null for a plain connection.
  Connection(ServerWorker& worker, Descriptor socket, const PeerAddress& peer, TlsContext* tls);
  ~Connection() override;

  void start();
  /// Sends `reply` to a peer that is not to be served, then ends the connection.
  void turn_away(std::string_view reply);
  /// Breaks the connection off: nothing is read or sent any more. Whoever waits on it is told at
  /// the end of the turn.
  void give_up();
  /// The same, at once. Not from within a call of anything that depends on the connection.
  void tear_down();
  /// Ends it when nothing is under way; else when that has finished.
  void drain();
  /// Timeouts, every tick.
  void tick(TimePoint now);

  // Output, for the exchange and the WebSocket: ask may_send(), append to output() or queue(), say
  // added(). All of it leaves at the end of the turn, or at flush().

  /// Whether anything can still be sent. Gives up a peer that has left more unread than it may.
  [[nodiscard]] bool may_send();
  std::string& output() { return output_.text(); }
  /// Appends shared bytes from `offset` to `offset + size`.
  void queue(const Bytes& bytes, std::size_t offset, std::size_t size);
  /// False: the sender must wait for the drain callback.
  bool added();
  void flush();
  /// Sends what is queued and these bytes, which are copied only if the socket does not take them.
  /// As added().
  bool send_now(std::string_view bytes);
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size(); }
  [[nodiscard]] bool is_output_full() const { return output_.is_full(); }
  [[nodiscard]] Duration stalled_for() const;
  /// Sends what is queued, then ends the connection.
  void close_after_flush();
  /// Goes on with the input at the end of the turn.
  void resume_later();

  // For the exchange.
  void read_body(std::shared_ptr<BodyHandler> handler);
  void resume_body();
  void request_finished(bool keep_alive);
  /// Goes on as a connection of that worker at the end of the turn, unless there is something to do
  /// here first.
  void move_to(std::uint16_t worker);
  void become_websocket(RefPtr<ServerWebSocket> session);
  [[nodiscard]] ServerWorker& worker() const { return *worker_; }

  /// Nothing is read or sent any more.
  [[nodiscard]] bool is_over() const { return state_ >= State::doomed; }

 private:
  friend class ServerWorker;
  /// `flushing` reads nothing more and ends when its output has left. `lingering` has told the peer
  /// so and discards what still comes, so that our last bytes are not lost to a reset (RFC 9112,
  /// section 9.6). `doomed` is torn down at the end of the turn.
  enum class State : std::uint8_t { open, flushing, lingering, doomed, closed };

  /// A body that is handed on while it arrives.
  struct BodyStream {
    std::shared_ptr<BodyHandler> handler;
    std::optional<ChunkedBodyReader> chunked;
    std::size_t remaining = 0;  // bytes, if it is not chunked
    bool paused = true;
  };

  /// A chunked body that is collected.
  struct ChunkedBody {
    explicit ChunkedBody(std::size_t max_body) : reader(max_body) {}
    ChunkedBodyReader reader;
    BudgetShare share;
  };

  bool move();
  void arrive(ServerWorker& worker);
  void on_ready(std::uint32_t events) override;
  void read_now();
  void took(std::size_t bytes);
  void on_input_end();
  void end_when_answered();
  void process();
  bool process_request();
  bool skip_empty_lines();
  bool is_head_there();
  bool process_body(const HttpRequestHead& head, std::string_view& body, std::size_t& total);
  bool begin_body_stream(HttpRequestHead& head);
  bool process_body_stream();
  void dispatch(HttpRequestHead& head, std::string_view body);
  void refuse(const Error& error);
  void settle_input();
  void refuse_for_memory();
  void forget_chunked();
  void give_up_unread();
  void wait_writable();
  [[nodiscard]] bool is_stalled(TimePoint now);
  void on_turn_end() override;
  bool send_some();
  void notify_drain();
  void linger();
  void count_memory();
  [[nodiscard]] bool may_read() const;
  [[nodiscard]] bool is_between_requests() const;

  ServerWorker* worker_;
  Connection* previous_ = nullptr;
  Connection* next_ = nullptr;
  Descriptor socket_;
  Transport transport_;
  PeerAddress peer_;

  InputBuffer input_;
  OutputStage output_;

  ServerExchange* exchange_ = nullptr;  // unfinished; kept by its handles
  RefPtr<ServerWebSocket> websocket_;
  std::unique_ptr<ChunkedBody> chunked_;
  std::unique_ptr<BodyStream> body_stream_;
  std::uint32_t head_size_ = 0;     // of the request whose body chunked_ reads
  std::uint32_t head_scanned_ = 0;  // bytes without the end of a head
  std::size_t input_needed_ = 0;    // bytes before parsing is worth another try

  TimePoint active_at_;    // last byte read or request finished
  TimePoint request_at_;   // first byte of the request being read
  TimePoint progress_at_;  // last byte that the peer took while there was something to send
  std::size_t unacknowledged_ = 0;                   // in the kernel, when last looked at
  std::uint16_t next_worker_ = ServerWorker::kNone;  // to move to at the end of the turn
  State state_ = State::open;
  bool is_readable_ = false;  // as far as we know
  bool is_at_end_ = false;    // the kernel has said that the peer sends no more
  bool writing_ = false;      // waiting for the socket to be writable
  bool processing_ = false;
  bool resume_ = false;  // go on with the input at the end of the turn
  bool request_begun_ = false;
  bool continued_ = false;
  bool draining_ = false;
  bool input_ended_ = false;
  bool counted_parked_ = true;  // holds no input memory
};

}  // namespace sluice
