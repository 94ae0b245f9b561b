#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <vector>

#include "core/bytes.hpp"
#include "net/http_exchange.hpp"
#include "net/http_parser.hpp"
#include "net/ref_ptr.hpp"
#include "net/server_worker.hpp"
#include "net/transport.hpp"

namespace sluice {

class ServerExchange;
class ServerWebSocket;

/// One accepted connection: reads requests one at a time, keeps the output queue, and knows when to
/// give its buffers back and when its peer has had its time. Lives as long as an operation or a
/// handle refers to it. Belongs to its worker's loop.
class Connection final : public RefCounted, private EventLoop::TurnHook {
 public:
  Connection(ServerWorker& worker, ServerWorker::Socket socket, std::shared_ptr<TlsContext> tls);
  ~Connection() override;

  void start();
  /// Breaks the connection off and tells whoever waits on it.
  void drop();
  /// Ends it when nothing is under way; else when that has finished.
  void drain();
  /// Timeouts and parking, every tick.
  void tick(TimePoint now);

  // Output, for the exchange and the WebSocket. All of it leaves at the end of the turn, or at
  // flush().
  std::string& output() { return text_; }
  void output_changed();
  /// Queues shared bytes without copying, from `offset` to `offset + size`.
  void queue(const Bytes& bytes, std::size_t offset, std::size_t size);
  void flush();
  [[nodiscard]] std::size_t queued_bytes() const { return queued_ + text_.size(); }
  /// Whether more may be written; if not, the drain callback follows.
  bool check_room();
  [[nodiscard]] Duration stalled_for() const;
  /// Sends what is queued, then ends the connection.
  void close_after_flush();

  // For the exchange.
  void request_finished(bool keep_alive);
  [[nodiscard]] ServerWorker& worker() const { return *worker_; }
  [[nodiscard]] bool is_open() const { return state_ == State::open; }
  [[nodiscard]] bool is_listed() const { return state_ != State::closed; }
  void become_websocket(RefPtr<ServerWebSocket> session);

 private:
  friend class ServerWorker;
  enum class State : std::uint8_t { open, flushing, lingering, closed };

  /// Shared bytes, or text that had to make way for them.
  struct Block {
    Bytes bytes;
    std::size_t offset;
    std::size_t size;
  };

  void read();
  void wait_readable();
  void on_read(std::size_t bytes);
  void on_readable();
  void on_read_cancelled(bool parking);
  void on_input_end();
  void process();
  bool process_request();
  void dispatch(HttpRequestHead& head, std::string_view body);
  void refuse(const Error& error);
  void reserve_input(std::size_t bytes);
  void consume(std::size_t bytes);
  void wait_writable();
  void on_turn_end() override;
  bool send_some();
  void sent(std::size_t bytes);
  void after_flush();
  void linger();
  void park();
  void unpark();
  void notify_drain();

  [[nodiscard]] std::string_view input() const {
    return {input_.get() + input_begin_, input_end_ - input_begin_};
  }

  ServerWorker* worker_;
  Connection* previous_ = nullptr;
  Connection* next_ = nullptr;
  ServerWorker::Socket socket_;
  std::shared_ptr<TlsContext> tls_;
  Transport transport_;
  PeerAddress peer_;

  std::unique_ptr<char[]> input_;
  std::uint32_t input_begin_ = 0;
  std::uint32_t input_end_ = 0;
  std::uint32_t input_capacity_ = 0;
  std::uint32_t input_needed_ = 0;  // bytes before parsing is worth another try

  std::vector<Block> blocks_;
  std::string text_;        // behind the blocks
  std::size_t queued_ = 0;  // bytes in blocks_
  std::size_t text_sent_ = 0;

  ServerExchange* exchange_ = nullptr;  // unanswered, kept by its handles
  RefPtr<ServerWebSocket> websocket_;
  std::unique_ptr<ChunkedBodyReader> chunked_;
  std::uint32_t head_size_ = 0;  // of the request whose body chunked_ reads

  TimePoint active_at_;    // last byte read or request answered
  TimePoint request_at_;   // first byte of the request being read
  TimePoint progress_at_;  // last byte that the peer took while there was something to send
  State state_ = State::open;
  bool reading_ = false;
  bool writing_ = false;  // waiting for the socket to be writable
  bool parked_ = false;
  bool parking_ = false;
  bool processing_ = false;
  bool request_begun_ = false;
  bool continued_ = false;
  bool full_ = false;  // a write was told to wait
  bool draining_ = false;
  bool input_ended_ = false;
};

}  // namespace sluice
