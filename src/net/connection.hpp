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
#include "net/output_queue.hpp"
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
  /// Breaks the connection off and tells whoever waits on it.
  void drop();
  /// Ends it when nothing is under way; else when that has finished.
  void drain();
  /// Timeouts, every tick.
  void tick(TimePoint now);

  // Output, for the exchange and the WebSocket. All of it leaves at the end of the turn, or at
  // flush().
  std::string& output() { return output_.text(); }
  void output_changed();
  /// Queues shared bytes from `offset` to `offset + size`.
  void queue(const Bytes& bytes, std::size_t offset, std::size_t size);
  void flush();
  /// Sends what is queued and these bytes, which are copied only if the socket does not take them.
  /// As check_room(). The connection may be gone afterwards.
  bool send_now(std::string_view bytes);
  [[nodiscard]] std::size_t queued_bytes() const { return output_.size(); }
  /// Whether more may be written; if not, the drain callback follows. Drops a connection that has
  /// more queued than it may.
  bool check_room();
  [[nodiscard]] Duration stalled_for() const;
  /// Sends what is queued, then ends the connection.
  void close_after_flush();

  // For the exchange.
  void read_body(std::shared_ptr<BodyHandler> handler);
  void resume_body();
  void request_finished(bool keep_alive);
  /// Goes on as a connection of that worker, unless there is something to do here first. The
  /// caller's thread may not use it any more.
  void move_to(std::uint16_t worker);
  void become_websocket(RefPtr<ServerWebSocket> session);
  [[nodiscard]] ServerWorker& worker() const { return *worker_; }

  [[nodiscard]] bool is_listed() const { return state_ != State::closed; }

 private:
  friend class ServerWorker;
  /// `flushing` reads nothing more and ends when its output has left. `lingering` has told the peer
  /// so and discards what still comes, so that our last bytes are not lost to a reset (RFC 9112,
  /// section 9.6).
  enum class State : std::uint8_t { open, flushing, lingering, closed };

  /// A body that is handed on while it arrives.
  struct BodyStream {
    std::shared_ptr<BodyHandler> handler;
    std::optional<ChunkedBodyReader> chunked;
    std::size_t remaining = 0;  // bytes, if it is not chunked
    bool paused = true;
  };

  void arrive(ServerWorker& worker);
  void on_ready(std::uint32_t events) override;
  void read_now();
  void took(std::size_t bytes);
  void on_input_end();
  void process();
  bool process_request();
  bool skip_empty_lines();
  bool is_head_there();
  bool process_body(const HttpRequestHead& head, std::string_view& body, std::size_t& total);
  bool begin_body_stream(HttpRequestHead& head);
  bool process_body_stream();
  void dispatch(HttpRequestHead& head, std::string_view body);
  void refuse(const Error& error);
  void resume_later();
  void wait_writable();
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
  OutputQueue output_;

  ServerExchange* exchange_ = nullptr;  // unfinished; kept by its handles
  RefPtr<ServerWebSocket> websocket_;
  std::unique_ptr<ChunkedBodyReader> chunked_;
  std::unique_ptr<BodyStream> body_stream_;
  std::uint32_t head_size_ = 0;     // of the request whose body chunked_ reads
  std::uint32_t head_scanned_ = 0;  // bytes without the end of a head
  std::uint32_t input_needed_ = 0;  // bytes before parsing is worth another try

  TimePoint active_at_;    // last byte read or request finished
  TimePoint request_at_;   // first byte of the request being read
  TimePoint progress_at_;  // last byte that the peer took while there was something to send
  State state_ = State::open;
  bool is_readable_ = false;  // as far as we know
  bool is_at_end_ = false;    // the kernel has said that the peer sends no more
  bool writing_ = false;      // waiting for the socket to be writable
  bool processing_ = false;
  bool resume_ = false;  // go on with the input at the end of the turn
  bool request_begun_ = false;
  bool continued_ = false;
  bool full_ = false;  // a write was told to wait
  bool draining_ = false;
  bool input_ended_ = false;
  bool counted_parked_ = true;  // holds no input memory
};

}  // namespace sluice
