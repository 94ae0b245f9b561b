#include "client/answer_client.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cli/serve/serve.hpp"
#include "client/server_address.hpp"
#include "client/shared_websocket.hpp"
#include "core/log/log.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// A TCP proxy that cuts connections. Once armed, it resets a connection as soon as the server has
/// sent more than `after_bytes` through it. It does so for the first `cuts` such connections. One
/// thread serves all connections.
class CuttingProxy {
 public:
  CuttingProxy(std::uint16_t server_port, int cuts, std::size_t after_bytes)
      : server_port_(server_port),
        cuts_(cuts),
        after_bytes_(after_bytes),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      ADD_FAILURE() << "no proxy";
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~CuttingProxy() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
    for (const Pair& pair : pairs_) end(pair);
    ::close(listener_);
    ::close(stop_fd_);
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void arm() { armed_ = true; }
  [[nodiscard]] int cut() const { return cut_; }

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    std::size_t from_server = 0;
  };

  static void end(const Pair& pair) {
    const linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ::close(pair.client);
    ::close(pair.server);
  }

  void run() {
    for (;;) {
      std::vector<pollfd> waits{{stop_fd_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        waits.push_back({pair.client, POLLIN, 0});
        waits.push_back({pair.server, POLLIN, 0});
      }
      if (::poll(waits.data(), waits.size(), -1) < 0 || waits[0].revents != 0) return;
      std::vector<Pair> going;
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        Pair& pair = pairs_[i];
        const bool open =
            (waits[2 + 2 * i].revents == 0 || forward(pair, pair.client, pair.server)) &&
            (waits[3 + 2 * i].revents == 0 || forward(pair, pair.server, pair.client));
        if (open) {
          going.push_back(pair);
        } else {
          end(pair);
        }
      }
      pairs_ = std::move(going);
      if (waits[1].revents != 0) accept();
    }
  }

  void accept() {
    Pair pair;
    pair.client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    pair.server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    if (::connect(pair.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      pairs_.push_back(pair);
    } else {
      end(pair);
    }
  }

  /// Returns false when the connection is over.
  bool forward(Pair& pair, int from, int to) {
    std::array<char, 4096> piece{};
    ssize_t got = ::recv(from, piece.data(), piece.size(), 0);
    if (got <= 0) return false;
    bool cuts = false;
    if (from == pair.server && armed_ && cut_ < cuts_) {
      const std::size_t room = after_bytes_ - pair.from_server;
      cuts = static_cast<std::size_t>(got) > room;
      got = std::min(got, static_cast<ssize_t>(room));
      pair.from_server += static_cast<std::size_t>(got);
    }
    if (got > 0 && ::send(to, piece.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) {
      return false;
    }
    if (cuts) ++cut_;
    return !cuts;
  }

  std::uint16_t server_port_;
  int cuts_;
  std::size_t after_bytes_;
  int listener_;
  std::uint16_t port_ = 0;
  int stop_fd_;
  std::vector<Pair> pairs_;  // used by the thread only
  std::atomic<bool> armed_ = false;
  std::atomic<int> cut_ = 0;
  std::thread thread_;
};

/// Keeps what it receives, and lets another thread wait for it.
class Collector final : public AnswerSink {
 public:
  /// `on_text` is called with each delta.
  explicit Collector(std::function<void()> on_text = {}) : on_text_(std::move(on_text)) {}

  void on_delta(const AnswerDelta& delta) override {
    if (on_text_) on_text_();
    const std::lock_guard lock(mutex_);
    text_ += delta.text;
    changed_.notify_all();
  }
  void on_retry(const Error& /*why*/, Duration /*wait*/) override {
    const std::lock_guard lock(mutex_);
    ++retries_;
  }
  void on_end(const AnswerEnd& end) override {
    const std::lock_guard lock(mutex_);
    end_ = end;
    changed_.notify_all();
  }

  AnswerEnd wait_for_end() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return end_.has_value(); }));
    return end_.value_or(AnswerEnd{});
  }
  void wait_for_text() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return !text_.empty(); }));
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  [[nodiscard]] int retries() const {
    const std::lock_guard lock(mutex_);
    return retries_;
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(30);
  std::function<void()> on_text_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  int retries_ = 0;
  std::optional<AnswerEnd> end_;
};

/// The numbers in the text of synthetic chunks, {"n":17,"t_ns":...}, in order.
std::vector<int> numbers_in(const std::string& text) {
  std::vector<int> numbers;
  constexpr std::string_view kName = "{\"n\":";
  for (auto at = text.find(kName); at != std::string::npos; at = text.find(kName, at + 1)) {
    numbers.push_back(std::atoi(text.c_str() + at + kName.size()));
  }
  return numbers;
}

std::vector<int> counted_to(int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

class AnswerClientTest : public ::testing::TestWithParam<AnswerVia> {
 protected:
  void SetUp() override {
    set_logging(LogLevel::off, LogFormat::text, false);
    config_.engine.kind = EngineKind::synthetic;
    config_.port = 0;
    config_.threads = 2;
    config_.shutdown_deadline = std::chrono::milliseconds(1);
    auto started = LocalServer::start(config_, [](const std::string&) {});
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }

  [[nodiscard]] std::uint16_t port() const {
    const std::string url = server_->url();
    return static_cast<std::uint16_t>(std::atoi(url.c_str() + url.rfind(':') + 1));
  }

  static AnswerRequest request(int count, int interval_us) {
    AnswerRequest out;
    out.params = {{"prompt", "count"}, {"count", count}, {"interval_us", interval_us}};
    out.backoff.first = std::chrono::milliseconds(1);
    return out;
  }

  static std::unique_ptr<AnswerClient> client_of(const std::string& url) {
    auto address = make_server_address(url, "", {});
    if (!address) {
      ADD_FAILURE() << address.error().message;
      return nullptr;
    }
    return std::make_unique<AnswerClient>(*std::move(address));
  }

  ServeConfig config_;
  std::unique_ptr<LocalServer> server_;
};

TEST_P(AnswerClientTest, ReceivesTheWholeAnswer) {
  Collector sink;
  const auto client = client_of(server_->url() + "/mcp");
  const auto pending = client->ask(GetParam(), request(500, 0), sink);
  const AnswerEnd end = sink.wait_for_end();
  EXPECT_EQ(end.outcome, AnswerEnd::Outcome::complete) << end.error.message;
  EXPECT_EQ(end.finish_reason, "stop");
  EXPECT_EQ(end.completion_tokens, 500);
  EXPECT_EQ(numbers_in(sink.text()), counted_to(500));
}

TEST_P(AnswerClientTest, CancelStopsTheServerToo) {
  Collector sink;
  const auto client = client_of(server_->url());
  const auto pending = client->ask(GetParam(), request(1'000'000, 1000), sink);
  sink.wait_for_text();
  pending->cancel();
  EXPECT_EQ(sink.wait_for_end().outcome, AnswerEnd::Outcome::cancelled);
}

TEST_P(AnswerClientTest, AnAnswerCanBeDroppedAtAnyTime) {
  Collector sink;
  const auto client = client_of(server_->url());
  for (int i = 0; i < 20; ++i) {
    const auto pending = client->ask(GetParam(), request(1000, i), sink);
  }
  Collector last;
  const auto pending = client->ask(GetParam(), request(3, 0), last);
  EXPECT_EQ(last.wait_for_end().outcome, AnswerEnd::Outcome::complete);
}

TEST_P(AnswerClientTest, ReportsAServerThatIsNotThere) {
  server_->stop();
  const std::string url = server_->url();
  server_ = nullptr;
  Collector sink;
  const auto client = client_of(url);
  const auto pending = client->ask(GetParam(), request(1, 0), sink);
  const AnswerEnd end = sink.wait_for_end();
  EXPECT_EQ(end.outcome, AnswerEnd::Outcome::unreachable);
  EXPECT_THAT(end.error.message, HasSubstr("refused"));
}

TEST_P(AnswerClientTest, ReportsTheServersRefusal) {
  Collector sink;
  const auto client = client_of(server_->url());
  AnswerRequest wrong = request(1, 0);
  wrong.params["temperature"] = "hot";
  const auto pending = client->ask(GetParam(), std::move(wrong), sink);
  const AnswerEnd end = sink.wait_for_end();
  EXPECT_EQ(end.outcome, AnswerEnd::Outcome::failed);
  // Over MCP, a refusal by a tool is a result and has no code of its own.
  EXPECT_EQ(end.error.code, GetParam() == AnswerVia::mcp ? -32603 : -32602);
  EXPECT_THAT(end.error.message, HasSubstr("temperature"));
}

TEST_P(AnswerClientTest, ResumesWhereTheConnectionBroke) {
  constexpr int kCuts = 5;
  constexpr std::size_t kCutAfter = 3000;
  constexpr int kChunks = 1000;
  CuttingProxy proxy(port(), kCuts, kCutAfter);
  Collector sink([&] { proxy.arm(); });
  const auto client = client_of(proxy.url());
  const auto pending = client->ask(GetParam(), request(kChunks, 100), sink);
  const AnswerEnd end = sink.wait_for_end();
  if (GetParam() == AnswerVia::mcp) {  // MCP has no way to resume
    EXPECT_EQ(end.outcome, AnswerEnd::Outcome::unreachable);
    EXPECT_EQ(proxy.cut(), 1);
    return;
  }
  EXPECT_EQ(end.outcome, AnswerEnd::Outcome::complete) << end.error.message;
  EXPECT_EQ(numbers_in(sink.text()), counted_to(kChunks));
  EXPECT_EQ(proxy.cut(), kCuts);
  EXPECT_GE(sink.retries(), kCuts);
}

/// Keeps an answer, and reports its first piece and its end.
class CollectedAnswer final : public AnswerSink {
 public:
  CollectedAnswer(std::function<void()> on_first, std::function<void()> on_whole)
      : on_first_(std::move(on_first)), on_whole_(std::move(on_whole)) {}
  void on_delta(const AnswerDelta& delta) override {
    if (text.empty()) on_first_();
    text += delta.text;
  }
  void on_end(const AnswerEnd& got) override {
    end = got;
    on_whole_();
  }
  std::string text;
  AnswerEnd end;

 private:
  std::function<void()> on_first_;
  std::function<void()> on_whole_;
};

class SharedWebSocketTest : public AnswerClientTest {};

TEST_P(SharedWebSocketTest, ManyAnswersShareAConnectionThatBreaks) {
  constexpr int kAnswers = 8;
  constexpr int kCuts = 3;
  constexpr int kChunks = 1200;  // many, so that a busy machine does not end before the cuts
  constexpr std::size_t kCutAfter = 20'000;
  CuttingProxy proxy(port(), kCuts, kCutAfter);
  auto address = make_server_address(proxy.url(), "", {});
  ASSERT_TRUE(address);

  EventLoop loop;
  SharedWebSocket socket(loop, *address);
  int silent = kAnswers;
  int missing = kAnswers;
  std::vector<std::unique_ptr<CollectedAnswer>> sinks;
  std::vector<std::unique_ptr<SharedWebSocket::Port>> ports;
  std::vector<std::unique_ptr<AnswerMachine>> machines;
  loop.post([&] {
    for (int i = 0; i < kAnswers; ++i) {
      sinks.push_back(std::make_unique<CollectedAnswer>(
          [&] {
            if (--silent == 0) proxy.arm();
          },
          [&] {
            if (--missing == 0) loop.stop();
          }));
      ports.push_back(socket.make_port());
      AnswerRequest own = request(kChunks + i, 200);
      own.first_id = ports.back()->next_answer();
      machines.push_back(make_answer(AnswerVia::ws, std::move(own), *ports.back(), *sinks.back()));
      ports.back()->set_machine(machines.back().get());
      machines.back()->start();
    }
  });
  loop.schedule_at(loop.clock().now() + std::chrono::seconds(30), [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(proxy.cut(), kCuts);
  for (int i = 0; i < kAnswers; ++i) {
    const CollectedAnswer& answer = *sinks[static_cast<std::size_t>(i)];
    EXPECT_EQ(answer.end.outcome, AnswerEnd::Outcome::complete) << answer.end.error.message;
    EXPECT_EQ(numbers_in(answer.text), counted_to(kChunks + i));
  }
  machines.clear();
}

INSTANTIATE_TEST_SUITE_P(Ws, SharedWebSocketTest, ::testing::Values(AnswerVia::ws));

INSTANTIATE_TEST_SUITE_P(EveryWay, AnswerClientTest,
                         ::testing::Values(AnswerVia::poll, AnswerVia::sse, AnswerVia::ws,
                                           AnswerVia::mcp),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

}  // namespace
}  // namespace sluice
