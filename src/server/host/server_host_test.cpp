#include "server/host/server_host.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "server/calls/pending_request.hpp"
#include "server/host/peer_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A host with two loops. Its method `run` gives the first stream to the test, and ends the others.
class ServerHostTest : public ::testing::Test {
 protected:
  ServerHostTest() {
    definition.name = "test";
    definition.version = "1";
    definition.metrics = [] { return std::string("of_the_engine 7\n"); };
    definition.stream_methods.push_back(
        {.name = "run",
         .handler = [this](const json::object&, const MethodCaller&,
                           const std::shared_ptr<ChunkStream>& made) -> Result<void> {
           if (is_first.exchange(false)) {
             started.set_value(made.get());
           } else {
             made->finish({});
           }
           return {};
         }});
    definition.tools.push_back(
        {.name = "later",
         .description = "",
         .input_schema = R"({"type":"object"})",
         .handler = Tool::Deferred(
             [this](const json::object&, std::shared_ptr<PendingRequest> made) -> Result<void> {
               called.set_value(std::move(made));
               return {};
             }),
         .task_support = TaskSupport::optional});
    auto result = ServerHost::start(definition, options(0));
    EXPECT_TRUE(result) << result.error().message;
    host = std::move(*result);
  }

  static ServerHostOptions options(std::uint16_t port) {
    ServerHostOptions made;
    made.tcp = {{.at = {"127.0.0.1", port}}};
    made.threads = 2;
    return made;
  }
  [[nodiscard]] std::uint16_t port() const { return host->port(); }

  /// Bytes that the server has read.
  [[nodiscard]] std::uint64_t received() const {
    const std::string metrics = host->metrics();
    static constexpr std::string_view kName = "\nsluice_received_bytes_total ";
    return std::stoull(metrics.substr(metrics.find(kName) + kName.size()));
  }
  /// Starts a stream and returns a peer that reads it.
  std::unique_ptr<Peer> read_a_stream() {
    Peer starter(port());
    starter.post(R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream":true}})");
    EXPECT_THAT(starter.until("}}"), HasSubstr("streaming_started"));
    stream = started.get_future().get();
    on_its_loop([this] { stream->append(ChunkKind::text, "one"); });
    auto reader = std::make_unique<Peer>(port());
    reader->get("/streams/" + std::string(stream->id()));
    EXPECT_THAT(reader->until("\r\n\r\n"), HasSubstr("200 OK"));
    EXPECT_THAT(reader->until("one"), HasSubstr("one"));
    return reader;
  }

  /// The answer to a request of 2025-11-25.
  std::string request(std::string_view method, std::string_view params) {
    Peer peer(port());
    const std::string message = R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) +
                                R"(","params":{)" + std::string(params) + "}}";
    peer.send(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        "MCP-Protocol-Version: 2025-11-25\r\nContent-Length: " +
        std::to_string(message.size()) + "\r\n\r\n" + message);
    return peer.rest();
  }
  /// Begins a task, whose request is `call`. Returns the member `taskId`.
  std::string begin_a_task() {
    const std::string created = request("tools/call", R"("name":"later","task":{})");
    call = called.get_future().get();
    const std::size_t at = created.find(R"("taskId":")");
    EXPECT_NE(at, std::string::npos) << created;
    return created.substr(at, created.find(',', at) - at);
  }

  void on_its_loop(const std::function<void()>& task) {
    std::promise<void> done;
    stream->executor().post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  std::string ask(const std::string& path) {
    Peer peer(port());
    peer.send("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    return peer.rest();
  }

  ServerDefinition definition;
  std::promise<ChunkStream*> started;
  std::atomic<bool> is_first = true;  // until the first stream
  ChunkStream* stream = nullptr;      // the host's; used only on its loop
  std::promise<std::shared_ptr<PendingRequest>> called;
  std::shared_ptr<PendingRequest> call;
  std::unique_ptr<ServerHost> host;
};

TEST_F(ServerHostTest, ServesOnAPortOfItsOwn) {
  EXPECT_NE(port(), 0);
  EXPECT_THAT(ask("/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(ask("/readyz"), HasSubstr("200 OK"));
}

TEST_F(ServerHostTest, TakesLinesOverTcp) {
  ServerHostOptions made = options(0);
  made.lines = HostPort{.host = "127.0.0.1", .port = 0};
  const auto other = ServerHost::start(definition, std::move(made));
  ASSERT_TRUE(other) << other.error().message;
  const auto place = parse_host_port((*other)->lines());
  ASSERT_TRUE(place) << (*other)->lines();
  EXPECT_NE(place->port, (*other)->port());
  Peer peer(place->port);
  peer.send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  peer.send("\n");
  EXPECT_EQ(peer.until("\n"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
  Peer browser(place->port);
  browser.post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  EXPECT_THAT(browser.rest(), AllOf(HasSubstr("takes JSON-RPC"), Not(HasSubstr("result"))));
  EXPECT_THAT((*other)->metrics(), HasSubstr("\nsluice_line_connections_total 2\n"));
}

TEST_F(ServerHostTest, SaysThatAPortForLinesIsTaken) {
  ServerHostOptions made = options(0);
  made.lines = HostPort{.host = "127.0.0.1", .port = port()};
  const auto other = ServerHost::start(definition, std::move(made));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("the port is taken"));
}

TEST_F(ServerHostTest, SaysThatAPortIsTaken) {
  const auto second = ServerHost::start(definition, options(port()));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(port())));
}

TEST_F(ServerHostTest, ListensInAllPlacesOrInNone) {
  ServerHostOptions two = options(0);
  two.tcp.push_back(two.tcp.front());
  const auto both = ServerHost::start(definition, two);
  ASSERT_TRUE(both) << both.error().message;
  std::vector<std::string> ports;
  for (const std::string& url : (*both)->urls()) {
    EXPECT_TRUE(url.starts_with("http://127.0.0.1:"));
    ports.push_back(url.substr(url.rfind(':') + 1));
    Peer peer(static_cast<std::uint16_t>(std::stoi(ports.back())));
    peer.get("/healthz");
    EXPECT_THAT(peer.until("\r\n\r\n"), HasSubstr("200 OK"));
  }
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_NE(ports[0], ports[1]);
  EXPECT_EQ(std::to_string((*both)->port()), ports[0]);

  two.tcp.back().at.port = port();
  const auto one_is_taken = ServerHost::start(definition, two);
  ASSERT_FALSE(one_is_taken);
  EXPECT_EQ(one_is_taken.error().message,
            "Cannot listen on 127.0.0.1:" + std::to_string(port()) +
                ": the port is taken; stop what listens there, or choose another port");
}

TEST_F(ServerHostTest, WarnsWhereAnybodyMayUseIt) {
  struct Case {
    const char* host;
    bool has_key;
    bool warns;
  };
  for (const auto& [address, has_key, warns] :
       {Case{"0.0.0.0", false, true}, Case{"::", false, true}, Case{"0.0.0.0", true, false},
        Case{"127.0.0.1", false, false}, Case{"localhost", false, false}}) {
    ServerHostOptions made = options(0);
    made.tcp.front().at.host = address;
    if (has_key) {
      made.access.authenticator = std::make_shared<ApiKeys>(
          std::vector{std::pair<std::string, std::string>("alice", "secret")});
    }
    ::testing::internal::CaptureStderr();
    const auto started = ServerHost::start(definition, std::move(made));
    const std::string logged = ::testing::internal::GetCapturedStderr();
    if (std::string_view(address) == "::" && !started) continue;  // a machine without IPv6
    ASSERT_TRUE(started) << started.error().message;
    const std::string warning = "whoever reaches this address may use the server";
    EXPECT_EQ(logged.contains(warning), warns) << address << ": " << logged;
    if (warns) EXPECT_THAT(logged, HasSubstr("address=" + std::string(address)));
  }
}

TEST_F(ServerHostTest, CountsOverAllLoops) {
  const auto reader = read_a_stream();
  EXPECT_THAT(
      ask("/metrics"),
      AllOf(HasSubstr("\nsluice_streams_active 1\n"), HasSubstr("\nsluice_chunks_total 1\n"),
            HasSubstr("\nsluice_streaming_replies 1\n"),
            HasSubstr("\nsluice_responses_total{class=\"2xx\"} "),
            Not(HasSubstr("sluice_stream_memory_bytes 0\n")), HasSubstr("\nof_the_engine 7\n")));
}

TEST_F(ServerHostTest, AShutdownLetsStreamsFinish) {
  const auto reader = read_a_stream();
  auto over = std::async(std::launch::async, [this] { host->shutdown(1min); });
  // Each loop begins to drain by itself. Requests that come before that are served.
  std::string ready;
  while (!ready.contains("503")) ready = ask("/readyz");
  EXPECT_THAT(ready, HasSubstr("shutting down"));
  std::string refused;
  while (!refused.contains("-31000")) {
    Peer late(port());
    late.post(R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream":true}})");
    refused = late.until("}}");
    ASSERT_THAT(refused, AnyOf(HasSubstr("-31000"), HasSubstr("streaming_started")));
  }
  on_its_loop([this] {
    stream->append(ChunkKind::text, "two");
    stream->finish({});
  });
  const std::string rest = reader->rest();
  EXPECT_THAT(rest, AllOf(HasSubstr("two"), HasSubstr(R"("end":true)"), Not(HasSubstr("error"))));
  ASSERT_EQ(over.wait_for(20s), std::future_status::ready) << "it waits for the deadline";
}

TEST_F(ServerHostTest, RefusesMessagesLongerThanItCanCount) {
  ServerHostOptions large = options(0);
  large.max_message = std::size_t{1} << 32U;
  const auto refused = ServerHost::start(definition, std::move(large));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("max_message"));
}

TEST_F(ServerHostTest, AShutdownEndsWhatTheDeadlineCutsOff) {
  const auto reader = read_a_stream();
  auto over = std::async(std::launch::async, [this] { host->shutdown(0s); });
  EXPECT_THAT(reader->rest(),
              AllOf(HasSubstr(R"("end":true)"), HasSubstr("-31000"), HasSubstr("shutting down")));
  ASSERT_EQ(over.wait_for(20s), std::future_status::ready);
}

TEST_F(ServerHostTest, AShutdownHurriesWhenTold) {
  const auto reader = read_a_stream();
  bool asked = false;
  host->shutdown(1h, [&] { return std::exchange(asked, true); });
  EXPECT_THAT(reader->rest(), HasSubstr("shutting down"));
}

TEST_F(ServerHostTest, AShutdownLetsTasksFinish) {
  EXPECT_TRUE(begin_a_task().starts_with(R"("taskId":")"));
  EXPECT_THAT(ask("/metrics"), HasSubstr("\nsluice_tasks_running 1\n"));
  auto over = std::async(std::launch::async, [this] { host->shutdown(1min); });
  while (!ask("/readyz").contains("503")) {
  }
  call->executor().post([this] { call->complete({.text = "done"}); });
  ASSERT_EQ(over.wait_for(20s), std::future_status::ready) << "it waits for the deadline";
}

TEST_F(ServerHostTest, AShutdownLetsCallsFinish) {
  Peer peer(port());
  peer.post(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}})");
  call = called.get_future().get();
  auto over = std::async(std::launch::async, [this] { host->shutdown(1min); });
  while (!ask("/readyz").contains("503")) {
  }
  // The call has sent nothing yet, but the shutdown waits for it.
  EXPECT_EQ(over.wait_for(1s), std::future_status::timeout);
  call->executor().post([this] { call->complete({.text = "done"}); });
  EXPECT_THAT(peer.rest(), HasSubstr("done"));
  ASSERT_EQ(over.wait_for(20s), std::future_status::ready) << "it waits for the deadline";
}

TEST_F(ServerHostTest, AShutdownAnswersLongMessagesThatAreThere) {
  // Numbers take long to parse, and messages are parsed one after another.
  std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[1)";
  while (ping.size() < 4'000'000) ping += ",1.2345678901234567e-7";
  ping += "]}}";
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 12; ++i) {
    peers.push_back(std::make_unique<Peer>(port()));
    peers.back()->post(ping);
  }
  while (received() < peers.size() * ping.size()) std::this_thread::yield();
  host->shutdown(1min);
  for (const auto& peer : peers) EXPECT_THAT(peer->rest(), HasSubstr("200 OK"));
}

TEST_F(ServerHostTest, AShutdownAnswersWhatWaitsForItsTurn) {
  const std::unique_ptr<Peer> reader = read_a_stream();
  std::string batch;
  for (int i = 0; i < 90; ++i) {
    batch += (batch.empty() ? "[" : ",") + std::string(R"({"jsonrpc":"2.0","id":)") +
             std::to_string(i) + R"(,"method":"run","params":{"stream_id":")" +
             std::string(stream->id()) + R"("}})";
  }
  batch += "]";
  // The stream has ended, but there is much of it to read.
  on_its_loop([this] {
    for (int i = 0; i < 8; ++i) stream->append(ChunkKind::text, std::string(30'000, 'x'));
    stream->finish({});
  });
  while (!reader->until("\"end\":true").contains("\"end\":true")) {
  }
  Peer peer(port());
  peer.send(
      "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  const auto send = [&](const std::string& text) {
    // One frame, masked with zeros.
    peer.send(std::string("\x81\xfe") + static_cast<char>(text.size() >> 8U) +
              static_cast<char>(text.size() & 0xffU) + std::string(4, '\0') + text);
  };
  send(R"({"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"capabilities":{},)"
       R"("protocolVersion":"2025-03-26","clientInfo":{"name":"test","version":"1"}}})");
  EXPECT_TRUE(peer.until(R"("id":"begin")").contains(R"("id":"begin")"));
  const std::uint64_t before = received();
  send(batch);
  while (received() < before + batch.size()) std::this_thread::yield();
  auto over = std::async(std::launch::async, [this] { host->shutdown(1min); });
  EXPECT_TRUE(peer.until(R"("id":89,)").contains(R"("id":89,)"));
  peer.rest();
  ASSERT_EQ(over.wait_for(20s), std::future_status::ready) << "it waits for the deadline";
}

TEST_F(ServerHostTest, AShutdownLetsALongAnswerLeaveUntilTheDeadline) {
  static constexpr std::size_t kLong = std::size_t{32} << 20U;
  Peer peer(port());
  peer.post(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}})");
  call = called.get_future().get();
  call->executor().post([this] { call->complete({.text = std::string(kLong, 'x')}); });
  EXPECT_THAT(peer.until("200 OK"), HasSubstr("200 OK"));
  auto over = std::async(std::launch::async, [this] { host->shutdown(1min); });
  // Nothing is under way any more, but the peer has not read its answer.
  EXPECT_EQ(over.wait_for(1s), std::future_status::timeout);
  EXPECT_GT(peer.rest().size(), kLong);
  ASSERT_EQ(over.wait_for(20s), std::future_status::ready) << "it waits for the deadline";
}

TEST_F(ServerHostTest, AShutdownAnswersTheCallsThatTheDeadlineCutsOff) {
  Peer peer(port());
  peer.post(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}})");
  call = called.get_future().get();
  host->shutdown(0s);
  EXPECT_THAT(peer.rest(), HasSubstr(R"("error":{"code":-31000)"));
  EXPECT_TRUE(call->over());
}

TEST_F(ServerHostTest, AShutdownAnswersWhatWaitsInTheMiddleware) {
  std::promise<void> waits;
  std::promise<void> destroyed;
  definition.middleware.push_back([&](Request& request) -> Task<> {
    struct Guard {
      explicit Guard(std::promise<void>& told) : end(&told) {}
      ~Guard() { end->set_value(); }
      Guard(const Guard&) = delete;
      Guard& operator=(const Guard&) = delete;
      std::promise<void>* end;
    };
    const Guard guard(destroyed);
    waits.set_value();
    co_await request.sleep(1h);
    co_await request.next();
  });
  host = ServerHost::start(definition, options(0)).value();
  Peer peer(port());
  peer.post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  waits.get_future().wait();
  host->shutdown(0s);
  EXPECT_THAT(peer.rest(), HasSubstr(R"("error":{"code":-31000)"));
  EXPECT_EQ(destroyed.get_future().wait_for(0s), std::future_status::ready);
}

TEST_F(ServerHostTest, AShutdownEndsTheTasksThatTheDeadlineCutsOff) {
  begin_a_task();
  host->shutdown(0s);
  EXPECT_TRUE(call->over());
}

TEST_F(ServerHostTest, TheEndOfTheHostEndsItsTasks) {
  begin_a_task();
  host.reset();
  EXPECT_TRUE(call->over());
}

}  // namespace
}  // namespace sluice
