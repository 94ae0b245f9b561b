// The server's connections (HTTP, WebSocket and lines) as state machines on the manual executor.
// Peers split, pipeline, read slowly or never, half-close and disappear. Handlers answer at once,
// late, in pieces or never, and allocations fail. No object may be used after its destruction,
// memory stays within the budget - as it is counted and as it is allocated -, each request is
// answered or its connection closed, and all memory is returned.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "choices.hpp"
#include "core/log/log.hpp"
#include "core/manual_executor.hpp"
#include "net/connection/memory_connection.hpp"
#include "net/http/compression.hpp"
#include "net/lines/line_protocol.hpp"
#include "net/server/http_worker.hpp"
#include "net/server/server_http.hpp"
#include "net/websocket/websocket.hpp"
#include "require.hpp"

namespace {

/// How many allocations succeed before one fails; 0: none fails.
std::size_t allocations_left = 0;
/// Bytes that are allocated now.
std::size_t allocated = 0;

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  if (allocations_left > 0 && --allocations_left == 0) return nullptr;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  allocated += ::malloc_usable_size(memory);
  return memory;
}
void* operator new(std::size_t size) {
  if (void* const memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) {
  return operator new(size);
}
void operator delete(void* memory) noexcept {
  allocated -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  operator delete(memory);
}

namespace {

using namespace sluice;
using namespace std::chrono_literals;

constexpr std::size_t kPeers = 3;
constexpr std::size_t kBudget = std::size_t{1} << 20U;
/// What a few connections take beside the budget: their objects, the first 16 KiB of each buffer,
/// and the buffers that the workers keep for the next connection.
constexpr std::size_t kBesideBudget = std::size_t{1} << 20U;
constexpr std::string_view kStatusLine = "HTTP/1.1 ";
constexpr std::string_view kContinue = "HTTP/1.1 100";

/// The server, its handlers and its peers.
class World final : private HttpHandler, private LineService {
 public:
  explicit World(Choices& choices) : choices_(choices) {
    options_.memory = &budget_;
    options_.max_body = 100'000;
    options_.output = {.high_water = 2000, .low_water = 500, .max_queued = 20'000};
    options_.work = {.turn = 20'000, .connection = 8'000};
    for (std::uint16_t i = 0; i < 2; ++i) {
      HttpHandler& handler = *this;
      workers_.push_back(std::make_unique<HttpWorker>(executors_[i], nullptr, handler, options_));
      workers_.back()->join(workers_, i);
    }
    lines_.max_line = 1000;
    lines_.output = options_.output;
    lines_.line_timeout = 10s;
    lines_.end_timeout = 10s;
    for (std::size_t i = 0; i < kPeers; ++i) connect(i);
  }

  ~World() {
    allocations_left = 0;
    settle();
    for (const Peer& peer : peers_) check_answers(peer);
    exchanges_.clear();
    sockets_.clear();
    sessions_.clear();
    settle();
    for (const auto& worker : workers_) worker->drop_all();
    settle();
    for (const Peer& peer : peers_) require(peer.connection->is_over());
    for (Peer& peer : peers_) peer = {};
    require(handlers_ == 0);
    workers_.clear();
    require(budget_.used() == 0);
  }

  /// Takes one step.
  void step() {
    try {
      choose();
    } catch (const std::bad_alloc&) {
      // An allocation failed in a handler's own call, outside any call of a connection, so its
      // answer may be incomplete.
      has_failed_ = true;
    }
    allocations_left = 0;
    require(budget_.used() <= kBudget);
    std::size_t of_peers = 0;
    for (const Peer& peer : peers_) {
      of_peers += peer.received.capacity() + peer.connection->in_flight();
    }
    require(allocated <= at_start_ + of_peers + kBudget + kBesideBudget);
  }

 private:
  void choose() {
    Peer& peer = peers_[choices_.below(kPeers)];
    switch (choices_.below(20)) {
      case 0:
      case 1:
      case 2:
        send(peer, request());
        break;
      case 3:
        send(peer, pipeline());
        break;
      case 4:
        send(peer, std::string(choices_.bytes(choices_.next())));
        break;
      case 5:
        send(peer, frames());
        break;
      case 6:
        take(peer, std::size_t{choices_.next()} * choices_.next());
        break;
      case 7:
        take(peer, MemoryConnection::kAll);
        break;
      case 8:
        peer.connection->end();
        break;
      case 9:
        peer.connection->vanish();
        break;
      case 10:
        if (peer.connection->is_over()) connect(static_cast<std::size_t>(&peer - peers_));
        break;
      case 11:
        advance(std::chrono::seconds(choices_.next()));
        break;
      case 12:
        run();
        break;
      case 13:
        mode_ = choices_.next();
        break;
      case 14:
        allocations_left = choices_.next();
        choose();
        break;
      case 15:
        if (choices_.next() > 250) {
          for (const auto& worker : workers_) worker->drain();
        }
        break;
      default:
        handle();
    }
  }

  struct Peer {
    RefPtr<MemoryConnection> connection;
    bool is_http = true;
    bool keeps = false;  // an exchange is kept alive by its own callback
    std::string received;
    std::size_t asked = 0;
  };
  struct Held {
    HttpExchangePtr exchange;
    bool has_body = false;
  };

  /// Receives bodies while they arrive.
  struct Body final : BodyHandler {
    explicit Body(World& in) : world(&in) {}
    bool on_body(std::string_view bytes) override { return bytes.size() % 3 != 0; }
    void on_body_end() override {}
    World* world;
  };
  /// A body that becomes ready when the schedule says so.
  class Prepared final : public PreparedBody {
   public:
    Prepared(World& world, std::string text, Executor::Task ready)
        : world_(&world), text_(std::move(text)), ready_(std::move(ready)) {
      world.prepared_.push_back(this);
    }
    ~Prepared() override { std::erase(world_->prepared_, this); }
    [[nodiscard]] bool is_ready() const override { return is_ready_; }
    [[nodiscard]] std::string_view text() const override { return text_; }
    void make_ready() {
      is_ready_ = true;
      ready_();
    }

   private:
    World* world_;
    std::string text_;
    Executor::Task ready_;
    bool is_ready_ = false;
  };
  class Socket final : public WebSocketHandler {
   public:
    explicit Socket(World& world) : world_(&world) { ++world.handlers_; }
    ~Socket() override { --world_->handlers_; }
    bool on_message(std::string_view text) override {
      if (text.size() % 2 == 0) world_->say(text);
      return !world_->is_slow();
    }
    void on_drain() override { world_->say("drained"); }
    void on_close(int /*code*/) override {
      require(!closed_);
      closed_ = true;
    }

   private:
    World* world_;
    bool closed_ = false;
  };
  class Lines final : public LineHandler {
   public:
    Lines(World& world, LineProtocolPtr session) : world_(&world), session_(std::move(session)) {
      ++world.handlers_;
    }
    ~Lines() override {
      require(closed_);
      --world_->handlers_;
    }
    bool on_line(std::string_view line) override {
      session_->send(std::string(line.size() * (world_->mode_ % 64U), 'x') + "\n");
      if (world_->mode_ == 255) session_->close();
      return !world_->is_slow();
    }
    void on_long_line() override { session_->send("long\n"); }
    void on_other_protocol() override { session_->close(); }
    void on_drain() override { session_->send("drained\n"); }
    void on_input_end() override {
      if (world_->mode_ % 2 == 0) session_->close();
    }
    void on_close() override {
      require(!std::exchange(closed_, true));
      require(!session_->is_open());
    }

   private:
    World* world_;
    LineProtocolPtr session_;
    bool closed_ = false;
  };

  void connect(std::size_t index) {
    Peer& peer = peers_[index];
    HttpWorker& worker = static_cast<HttpWorker&>(*workers_[index % 2]);
    peer = {};
    peer.is_http = index + 1 < kPeers;
    const std::size_t failing = std::exchange(allocations_left, 0);
    PeerAddress address;
    address.port = static_cast<std::uint16_t>(index);
    peer.connection = RefPtr(new MemoryConnection(worker, options_.output, address));
    if (peer.is_http) {
      ServerHttp::begin(*peer.connection, worker);
    } else {
      LineProtocol::begin(*peer.connection, *this, uid_t{0}, lines_);
    }
    allocations_left = failing;
  }

  // --- the peers' side

  std::string request() {
    static constexpr std::string_view kPaths[] = {"/",       "/hold", "/stream",
                                                  "/events", "/ws",   "/body"};
    const std::string_view path = kPaths[choices_.below(std::size(kPaths))];
    const std::string host =
        " HTTP/1." + std::string(choices_.next() < 230 ? "1" : "0") + "\r\nHost: test\r\n";
    if (path == "/ws") {
      return "GET /ws" + host +
             "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    }
    switch (choices_.below(6)) {
      case 0:
        return "GET " + std::string(path) + host + "\r\n";
      case 1:
        return "HEAD " + std::string(path) + host + "\r\n";
      case 2: {
        const std::string body(choices_.next() * 8U, 'b');
        return "POST " + std::string(path) + host +
               "Content-Length: " + std::to_string(body.size()) +
               "\r\nExpect: 100-continue\r\n\r\n" + body;
      }
      case 3: {
        std::string body;
        gzip(std::string(std::size_t{choices_.next()} * 1000, 'z'), body);
        return "POST " + std::string(path) + host +
               "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body;
      }
      case 4:
        return "POST " + std::string(path) + host +
               "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
      default:
        return "GET " + std::string(path) + host + "Connection: close\r\n\r\n";
    }
  }
  std::string pipeline() {
    std::string many;
    const std::string one = request();
    for (std::size_t count = choices_.below(40); count > 0; --count) many += one;
    return many;
  }
  std::string frames() {
    std::string all;
    for (std::size_t count = choices_.below(40); count > 0; --count) {
      const std::size_t size = choices_.next();
      const std::uint8_t opcode = choices_.below(4) == 0 ? choices_.next() : 0x81;
      all.push_back(static_cast<char>(opcode));
      all.push_back(static_cast<char>(0x80U | std::min<std::size_t>(size, 125)));
      all.append("\0\0\0\0", 4);
      all.append(std::min<std::size_t>(size, 125), 'm');
    }
    return all;
  }
  void send(Peer& peer, const std::string& bytes) {
    if (peer.connection->is_over()) return;
    const std::size_t cut = choices_.next();
    const std::string_view all(bytes);
    const std::size_t first = cut < 200 ? all.size() : std::min<std::size_t>(cut - 200, all.size());
    peer.connection->write(all.substr(0, first));
    if (first < all.size()) {
      run();
      if (!peer.connection->is_over()) peer.connection->write(all.substr(first));
    }
  }
  static void take(Peer& peer, std::size_t most) { peer.received += peer.connection->take(most); }

  // --- the server's side

  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
    Peer& peer = peers_[request.peer.port];
    ++peer.asked;
    if (request.path == "/ws") {
      const WebSocketSessionPtr socket =
          exchange->upgrade_websocket(request, {.max_message = 3000, .deflate_threshold = 100},
                                      std::make_unique<Socket>(*this));
      if (socket) sockets_.push_back(socket);
      return;
    }
    if (request.body_follows) {
      if (request.path != "/body") {
        exchange->reply(413, "text/plain", "no");
        return;
      }
      exchange->read_body(std::make_shared<Body>(*this));
    } else if (request.path == "/" || exchanges_.size() >= 8) {
      exchange->reply(200, "text/plain", std::string(mode_ * 100U, 'r'));
      return;
    }
    if (request.path == "/stream" || request.path == "/events") {
      exchange->start(200, request.path == "/stream" ? "text/plain" : "text/event-stream");
    }
    if (mode_ % 3 == 0) exchange->on_drain([this] { ++drains_; });
    if (mode_ % 5 == 0) {
      exchange->on_close([this, exchange] { ++closes_; });
      peer.keeps = true;
    }
    if (mode_ % 7 == 0) exchange->continue_on(executors_[mode_ % 2]);
    if (mode_ != 13) exchanges_.push_back({std::move(exchange), request.body_follows});
  }
  [[nodiscard]] bool streams_body(const HttpRequest& head) const override {
    return head.path == "/body";
  }
  std::unique_ptr<HeadVerdict> judge(const HttpRequest& head) override {
    return std::make_unique<HeadVerdict>(head.path != "/events");
  }
  [[nodiscard]] bool prepares_body(const HttpRequest& /*head*/,
                                   std::size_t /*size*/) const override {
    return is_slow();
  }
  std::unique_ptr<PreparedBody> prepare(const HttpRequest& /*head*/, std::string body,
                                        Executor::Task ready) override {
    return std::make_unique<Prepared>(*this, std::move(body), std::move(ready));
  }
  std::unique_ptr<LineHandler> open(LineProtocolPtr session, const LinePeer& /*peer*/) override {
    sessions_.push_back(session);
    return std::make_unique<Lines>(*this, std::move(session));
  }

  /// Performs one step of a handler that answers later.
  void handle() {
    const std::size_t choice = choices_.next();
    const std::size_t size = std::size_t{choices_.next()} * (choices_.next() % 32U);
    if (choice >= 200) {
      say(std::string(size, 's'));
      return;
    }
    if (exchanges_.empty()) return;
    const std::size_t index = choice % exchanges_.size();
    HttpExchange& exchange = *exchanges_[index].exchange;
    switch (choice % 9) {
      case 0:
        exchange.reply(200, "text/plain", std::string(size, 'r'));
        break;
      case 1:
        exchange.start(200, "text/event-stream");
        break;
      case 2:
        exchange.write(std::string_view(std::string(size + 1, 'w')));
        break;
      case 3:
        exchange.write(ChunkBlock(std::string(size + 1, 'w')));
        break;
      case 4:
        exchange.finish();
        break;
      case 5:
        exchange.abort();
        break;
      case 6:
        exchange.resume_body();
        break;
      case 7:
        exchange.on_close({});
        exchange.flush();
        break;
      default:
        exchanges_.erase(exchanges_.begin() + static_cast<std::ptrdiff_t>(index));
        return;
    }
    if (!exchanges_[index].exchange->is_open()) {
      exchanges_.erase(exchanges_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  void say(std::string_view text) {
    for (const WebSocketSessionPtr& socket : sockets_) {
      socket->send_text(text);
      if (text.size() > 4000) socket->close(1000, "enough");
    }
    std::erase_if(sockets_, [](const WebSocketSessionPtr& socket) { return !socket->is_open(); });
    for (const LineProtocolPtr& session : sessions_) session->send(text);
    resume_all();
    std::erase_if(sessions_, [](const LineProtocolPtr& session) { return !session->is_open(); });
  }

  /// Whether handlers accept everything but need time for it.
  [[nodiscard]] bool is_slow() const { return mode_ % 4 == 3; }
  void resume_all() {
    for (const WebSocketSessionPtr& socket : sockets_) socket->resume_input();
    for (const LineProtocolPtr& session : sessions_) session->resume_input();
    for (Prepared* const prepared : std::exchange(prepared_, {})) prepared->make_ready();
  }
  void run() {
    for (ManualExecutor& executor : executors_) executor.run();
    for (ManualExecutor& executor : executors_) executor.run();
  }
  void advance(Duration by) {
    for (ManualExecutor& executor : executors_) executor.advance(std::min<Duration>(by, 3s));
  }
  /// Ends the exchanges that are held, and lets the peers read everything.
  void settle() {
    for (bool has_moved = true; has_moved;) {
      has_moved = !exchanges_.empty() || !prepared_.empty();
      resume_all();
      for (const Held& held : std::exchange(exchanges_, {})) held.exchange->finish();
      run();
      for (Peer& peer : peers_) {
        const std::size_t before = peer.received.size();
        if (peer.connection) take(peer, MemoryConnection::kAll);
        has_moved = has_moved || peer.received.size() != before;
      }
      has_moved = has_moved || !exchanges_.empty() || !prepared_.empty();
    }
  }
  /// A peer that is still connected must have an answer to each request.
  void check_answers(const Peer& peer) const {
    if (!peer.is_http || !peer.connection->is_open() || has_failed_) return;
    std::size_t answers = 0;
    for (std::size_t at = peer.received.find(kStatusLine); at != std::string::npos;
         at = peer.received.find(kStatusLine, at + 1)) {
      // Bodies contain the version too.
      const std::string_view status = std::string_view(peer.received).substr(at);
      const bool has_code =
          status.size() > kStatusLine.size() &&
          std::isdigit(static_cast<unsigned char>(status[kStatusLine.size()])) != 0;
      if (has_code && !status.starts_with(kContinue)) ++answers;
    }
    require(answers == peer.asked || (peer.keeps && answers + 1 == peer.asked));
  }

  const std::size_t at_start_ = allocated;
  Choices& choices_;
  MemoryBudget budget_{kBudget};
  HttpServerOptions options_;
  LineOptions lines_;
  ManualExecutor executors_[2];
  ConnectionWorker::Workers workers_;
  Peer peers_[kPeers];
  std::vector<Held> exchanges_;
  std::vector<WebSocketSessionPtr> sockets_;
  std::vector<LineProtocolPtr> sessions_;
  std::vector<Prepared*> prepared_;
  std::size_t handlers_ = 0;
  std::size_t drains_ = 0;
  std::size_t closes_ = 0;
  std::uint8_t mode_ = 1;
  bool has_failed_ = false;  // whether an allocation of a handler has failed
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  set_logging(LogLevel::off, LogFormat::text, false);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  World world(choices);
  while (!choices.empty()) world.step();
  return 0;
}
