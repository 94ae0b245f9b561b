#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/sharing/client_memory.hpp"
#include "net/connection/connection.hpp"
#include "net/http/compression.hpp"
#include "net/http/http_exchange.hpp"
#include "net/http/http_parser.hpp"
#include "net/server/http_worker.hpp"

namespace sluice {

class ServerExchange;
class ServerWebSocket;

/// The server's side of HTTP/1.1 on a connection, as a state machine: finds requests and their
/// bodies in the input (RFC 9112), passes them to the worker's handler one at a time, and gives
/// each an exchange to answer with. Belongs to its connection.
class ServerHttp final : private ConnectionProtocol {
 public:
  /// Starts `connection` and lets the worker's handler serve it.
  static void begin(Connection& connection, HttpWorker& worker);
  /// Sends `reply` to a peer that is not to be served, then ends the connection.
  static void reject(Connection& connection, HttpWorker& worker, std::string_view reply);

  // For the exchange.
  [[nodiscard]] HttpWorker& worker() const { return *worker_; }
  /// 100 (Continue) is sent only if `is_unanswered`: within a reply it would be taken for part of
  /// it.
  void read_body(std::shared_ptr<BodyHandler> handler, bool is_unanswered);
  void resume_body();
  /// Compresses and sends `body`, that of the reply that is about to finish, in parts on later
  /// turns. Returns false if there is no memory for that.
  [[nodiscard]] bool compress_later(std::string_view body);
  /// Drops what has not been sent of that body.
  void forget_reply() { long_reply_ = nullptr; }
  void request_finished(bool keep_alive);
  /// The exchange ends without having finished.
  void forget_exchange() { exchange_ = nullptr; }
  void become_websocket(const RefPtr<ServerWebSocket>& session);

 private:
  /// A body that is passed on while it arrives.
  struct BodyStream {
    std::shared_ptr<BodyHandler> handler;
    std::optional<BodyReader> chunked;
    std::size_t remaining = 0;     // bytes, if it is not chunked
    std::uint64_t unfinished = 0;  // as the handler last returned
    TimePoint unfinished_at{};     // since when
    bool expects_continue = false;
    bool paused = true;
  };

  /// A body that is collected in a buffer of its own.
  struct CollectedBody {
    explicit CollectedBody(BodyReader of) : reader(std::move(of)) {}
    BodyReader reader;
    std::size_t used = 0;  // bytes after the head in the input, when complete
    CoarseHold hold;
  };

  /// A complete body whose content coding is being decoded.
  struct CodedBody {
    explicit CodedBody(std::size_t max_body) : decoder(max_body) {}
    ContentDecoder decoder;
    std::string text;  // when it is decoded
    CoarseHold hold;
  };

  /// A request whose body the handler prepares.
  struct Preparation {
    std::unique_ptr<PreparedBody> body;
    std::size_t size = 0;  // bytes after the head that are still in the input
  };

  /// State that few requests have before they are handled.
  struct Unhandled {
    std::unique_ptr<HeadVerdict> verdict;
    std::string head_lines;  // of a refusal
    std::unique_ptr<CollectedBody> collected;
    std::unique_ptr<CodedBody> coded;
    std::unique_ptr<Preparation> preparation;
  };

  /// The rest of a reply whose head has been sent.
  struct LongReply {
    Gzip gzip;
    std::string body;
    std::size_t sent = 0;  // of the body
    CoarseHold hold;
    bool keep_alive = true;
  };

  ServerHttp(Connection& connection, HttpWorker& worker);

  bool on_input(InputBuffer& input) override;
  [[nodiscard]] bool holds_input() const override { return long_reply_ != nullptr; }
  [[nodiscard]] bool wants_input(const InputBuffer& input) const override;
  void on_no_memory() override;
  void on_input_end() override;
  void on_drain() override;
  [[nodiscard]] bool outlives_output() const override { return false; }
  void on_tick(TimePoint now) override;
  void on_shutdown() override;
  [[nodiscard]] bool is_idle() const override;
  void on_worker(ConnectionWorker& worker) override;
  void on_end() override;
  void release() override { delete this; }

  Unhandled& unhandled() {
    if (unhandled_ == nullptr) unhandled_ = std::make_unique<Unhandled>();
    return *unhandled_;
  }
  [[nodiscard]] CollectedBody* collected() const {
    return unhandled_ == nullptr ? nullptr : unhandled_->collected.get();
  }
  [[nodiscard]] CodedBody* coded() const {
    return unhandled_ == nullptr ? nullptr : unhandled_->coded.get();
  }
  [[nodiscard]] Preparation* preparation() const {
    return unhandled_ == nullptr ? nullptr : unhandled_->preparation.get();
  }
  bool send_some();
  bool take_request(InputBuffer& input);
  [[nodiscard]] bool is_head_there(const InputBuffer& input);
  /// Has the handler judge the request by its head, and charges the connection to its client.
  void judge(const HttpRequest& head);
  [[nodiscard]] bool collects_body(const HttpRequestHead& head, const InputBuffer& input);
  bool take_body(const HttpRequestHead& head, InputBuffer& input, std::string_view& body,
                 std::size_t& total);
  bool decode_body(std::string_view coding, std::string_view& body);
  void begin_body_stream(HttpRequestHead& head, InputBuffer& input);
  bool take_body_piece(InputBuffer& input);
  [[nodiscard]] bool is_body_late(TimePoint now) const;
  [[nodiscard]] bool awaits_rest() const;
  void dispatch(HttpRequestHead& head, std::string_view body);
  bool prepare(const HttpRequestHead& head, InputBuffer& input, std::string_view body,
               std::size_t total);
  void refuse(const Error& error);
  void refuse_for_memory();

  Connection& connection_;
  HttpWorker* worker_;
  ServerExchange* exchange_ = nullptr;    // the unfinished one; kept by its handles
  std::unique_ptr<Unhandled> unhandled_;  // null while not needed
  std::unique_ptr<BodyStream> body_stream_;
  std::unique_ptr<LongReply> long_reply_;
  std::size_t input_needed_ = 0;    // bytes of input before the next try to parse
  std::uint32_t head_size_ = 0;     // of the request whose body is collected
  std::uint32_t head_scanned_ = 0;  // bytes that have no end of a head
  TimePoint since_;                 // the request being read began, or the last one was
                                    // finished, or the body resumed
  const bool is_shared_;            // its requests are of several clients
  bool request_begun_ = false;
  bool is_head_ = false;  // whether the request that has begun is HEAD, as far as known
  bool continued_ = false;
  bool draining_ = false;
  bool has_probed_ = false;  // whether the peer still reads, after the end of its input
};

}  // namespace sluice
