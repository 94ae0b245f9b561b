#include "server/transport/message/line_endpoint.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/connection/memory_connection.hpp"
#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const json::value kNoFields = {{"type", "object"}, {"properties", json::object()}};

/// A service over connections in memory.
class LineEndpointTest : public ::testing::Test {
 protected:
  LineEndpointTest() {
    options.max_line = 1000;
    bench.definition.tools[1].task_support = TaskSupport::optional;
    bench.definition.resources.push_back(resource_at("test://a"));
    bench.serve();
    service.emplace(bench.catalog, access, sessions, bench.quota, *bench.changes, *bench.tasks,
                    std::vector<StreamShard>{{&bench.executors[0], bench.managers[0].get()}}, 0);
    endpoint.emplace(*service, options.max_line);
    peer = connect(1000);
  }
  ~LineEndpointTest() override {
    for (const RefPtr<MemoryConnection>& one : peers) one->tear_down();
    bench.calls.clear();
    bench.run_all();
  }

  RefPtr<MemoryConnection> connect(const LinePeer& from) {
    peers.emplace_back(new MemoryConnection(worker, options.output));
    LineProtocol::begin(*peers.back(), *endpoint, from, options);
    return peers.back();
  }
  RefPtr<MemoryConnection> connect(uid_t user) { return connect(LinePeer(user)); }
  /// All that answers `line`.
  std::string ask(MemoryConnection& from, std::string_view line) {
    from.write(std::string(line) + "\n");
    bench.run_all();
    std::string said = from.take();
    expect_valid(line, said);
    return said;
  }
  /// Checks what answers `line` against the schema of the revision that it speaks.
  void expect_valid(std::string_view line, std::string_view said) {
    MessageParser parser;
    const RecordingCaller nobody;
    const std::expected<Message, MessageError> asked = parser.parse(line);
    const SentCheck check = asked ? ServerBench::check_of(*asked, nobody, nullptr)
                                  : SentCheck{&newest_revision(Era::legacy), ""};
    for (std::string_view rest = said; !rest.empty();) {
      const std::string_view each = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), each.size() + 1));
      if (each.starts_with("{")) check.expect_valid(each);
    }
  }
  static std::string request(std::string_view id, std::string_view method,
                             std::string_view params = "") {
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":")" + std::string(method) +
           R"(","params":{)" + std::string(params) + "}}";
  }
  std::string stream_member() const {
    return R"("stream_id":")" + std::string(bench.runs.back()->id()) + "\"";
  }

  ServerBench bench;
  ConnectionWorker worker{bench.executors[0], nullptr, {}};
  AccessPolicy access{{}};
  SteadyClock clock;
  SessionRegistry sessions{{}, clock};
  LineOptions options;
  std::optional<Service> service;
  std::optional<LineEndpoint> endpoint;
  std::vector<RefPtr<MemoryConnection>> peers;
  RefPtr<MemoryConnection> peer;
};

TEST_F(LineEndpointTest, AnswersEachLineWithALine) {
  EXPECT_EQ(ask(*peer, request("1", "ping") + "\n\r\n" + request("2", "ping") + "\r"),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
  EXPECT_EQ(ask(*peer, R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), "");
}

TEST_F(LineEndpointTest, RefusesWhatIsNoMessage) {
  EXPECT_THAT(ask(*peer, "{"), HasSubstr(R"("code":-32700)"));
  EXPECT_THAT(ask(*peer, "{\"\xFF\":1}"), HasSubstr(R"("code":-32700)"));
  EXPECT_THAT(ask(*peer, "[]"), HasSubstr(R"("code":-32600)"));
  EXPECT_EQ(ask(*peer, std::string(1001, ' ')),
            R"({"jsonrpc":"2.0","error":{"code":-32600,"message":)"
            "\"Invalid Request: the message is longer than 1000 bytes\"}}\n");
  EXPECT_THAT(ask(*peer, request("1", "ping")), HasSubstr(R"("result":{})"));
}

TEST_F(LineEndpointTest, TheRevisionOfInitializeHoldsForItsConnection) {
  // Its progress notifications have no message before 2025-03-26.
  const std::string call =
      request("2", "tools/call", R"("name":"later","_meta":{"progressToken":"p"})");
  const auto progress = [&](MemoryConnection& from) {
    EXPECT_EQ(ask(from, call), "");
    bench.calls.back()->emit("text");
    bench.calls.back()->flush();
    bench.calls.back()->complete({.text = "done"});
    bench.run_all();
    return from.take();
  };
  EXPECT_THAT(ask(*peer, request("1", "initialize", R"("protocolVersion":"2024-11-05")")),
              HasSubstr(R"("protocolVersion":"2024-11-05")"));
  EXPECT_THAT(progress(*peer), Not(HasSubstr(R"("message")")));
  EXPECT_THAT(progress(*connect(1000)), HasSubstr(R"("message":"text")"));
  // A request that names its revision is not bound by that.
  EXPECT_THAT(
      ask(*peer, request("3", "server/discover",
                         R"("_meta":{"io.modelcontextprotocol/protocolVersion":)"
                         R"("2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})")),
      HasSubstr(R"("resultType":"complete")"));
}

TEST_F(LineEndpointTest, ABatchIsAnsweredWithOneLineInItsRevision) {
  const std::string batch = "[" + request("7", "ping") + "," +
                            request("8", "tools/call", R"("name":"later")") + "," +
                            request("9", "run", R"("stream":true)") + "]";
  EXPECT_THAT(ask(*peer, batch), HasSubstr("batches are not part of this protocol revision"));
  ask(*peer, request("1", "initialize", R"("protocolVersion":"2025-03-26")"));
  EXPECT_EQ(ask(*peer, batch), "");
  EXPECT_THAT(ask(*peer, request("2", "ping")), HasSubstr(R"("id":2)"));
  bench.calls.back()->complete({.text = "done"});
  bench.run_all();
  const std::string line = peer->take();
  EXPECT_THAT(line, StartsWith(R"([{"jsonrpc":"2.0","id":7,"result":{}},)"));
  EXPECT_THAT(line, HasSubstr("\"done\""));
  EXPECT_THAT(line, HasSubstr("what pushes a stream cannot be part of a batch"));
  EXPECT_THAT(line, EndsWith("]\n"));

  // Requests of a batch are cancelled by their ids, even from within another batch.
  ask(*peer, "[" + request("8", "tools/call", R"("name":"later")") + "]");
  EXPECT_EQ(ask(*peer, R"([{"jsonrpc":"2.0","method":"notifications/cancelled",)"
                       R"("params":{"requestId":8}}])"),
            "");
  EXPECT_TRUE(bench.calls.back()->over());
  ask(*peer, "[" + request("8", "tools/call", R"("name":"later")") + "]");
  peer->tear_down();
  bench.run_all();
  EXPECT_TRUE(bench.calls.back()->over());
}

TEST_F(LineEndpointTest, ProgressComesBeforeTheResult) {
  ask(*peer, request("1", "tools/call", R"("name":"later","_meta":{"progressToken":7})"));
  bench.calls[0]->emit("a");
  bench.calls[0]->complete({.text = "done"});
  bench.run_all();
  const std::string out = peer->take();
  EXPECT_THAT(out, StartsWith(R"({"jsonrpc":"2.0","method":"notifications/progress",)"
                              R"("params":{"progressToken":7,"progress":1,"message":"a"}})"
                              "\n{\"jsonrpc\":\"2.0\",\"id\":1,"));
  EXPECT_THAT(out, EndsWith("\n"));
}

TEST_F(LineEndpointTest, TheConnectionIsTheSession) {
  ask(*peer, request("1", "initialize",
                     R"("protocolVersion":"2025-06-18","capabilities":{"elicitation":{}})"));
  bench.changes->publish({Change::Kind::resource, "test://a"});
  ask(*peer, request("2", "resources/subscribe", R"("uri":"test://a")"));
  EXPECT_EQ(peer->take(), "");
  bench.changes->publish({Change::Kind::resource, "test://a"});
  bench.changes->publish({Change::Kind::resource, "test://b"});
  bench.run_all();
  bench.changes->publish({Change::Kind::tools});
  bench.run_all();
  EXPECT_EQ(peer->take(), R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":)"
                          R"({"uri":"test://a"}})"
                          "\n"
                          R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})"
                          "\n");
  // A call may also ask its client.
  ask(*peer, request("3", "tools/call", R"("name":"later")"));
  std::string heard;
  bench.calls[0]->ask(
      {{"name", "elicitation/create", {{"message", "Who?"}, {"requestedSchema", kNoFields}}}},
      [&](Result<std::vector<json::value>> answers) {
        ASSERT_TRUE(answers);
        heard = to_json((*answers)[0]);
      });
  bench.run_all();
  const std::string asked = peer->take();
  EXPECT_THAT(
      asked,
      HasSubstr(R"("method":"elicitation/create","params":{"message":"Who?","requestedSchema":)"));
  const std::size_t at = asked.find("\"id\":") + 5;
  EXPECT_EQ(ask(*peer, R"({"jsonrpc":"2.0","id":)" + asked.substr(at, asked.find(',', at) - at) +
                           R"(,"result":{"action":"cancel"}})"),
            "");
  EXPECT_EQ(heard, R"({"action":"cancel"})");
}

TEST_F(LineEndpointTest, ATaskSpeaksOnItsConnectionAndSurvivesIt) {
  ask(*peer, request("1", "initialize",
                     R"("protocolVersion":"2025-11-25","capabilities":{"elicitation":{}})"));
  const std::string created =
      ask(*peer,
          request("2", "tools/call", R"("name":"later","task":{},"_meta":{"progressToken":"p"})"));
  EXPECT_TRUE(created.starts_with(R"({"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":")"));
  const std::string named =
      R"("taskId":")" +
      std::string(parse_json(created).value().at("result").at("task").at("taskId").as_string()) +
      "\"";
  bench.calls.back()->emit("text");
  bench.run_all();
  EXPECT_THAT(peer->take(), HasSubstr(R"("progressToken":"p","progress":1,"message":"text")"));
  std::string heard;
  bench.calls.back()->ask(
      {{"a", "elicitation/create", {{"message", "A?"}, {"requestedSchema", kNoFields}}}},
      [&](const Result<std::vector<json::value>>& answers) {
        heard = to_json(answers.value().front());
      });
  bench.run_all();
  EXPECT_THAT(peer->take(), HasSubstr(R"("status":"input_required")"));
  EXPECT_THAT(ask(*peer, request("3", "tasks/result", named)),
              HasSubstr(R"("method":"elicitation/create")"));
  ask(*peer, R"({"jsonrpc":"2.0","id":1,"result":{"action":"decline"}})");
  EXPECT_EQ(heard, R"({"action":"decline"})");
  peer->tear_down();
  bench.run_all();
  EXPECT_FALSE(bench.calls.back()->over());
  bench.calls.back()->complete({.text = "done"});
  bench.run_all();
  EXPECT_THAT(ask(*connect(1000), request("1", "tasks/result", named)), HasSubstr("done"));
  EXPECT_THAT(ask(*connect(1001), request("1", "tasks/result", named)),
              HasSubstr("Task not found"));
}

TEST_F(LineEndpointTest, PushesAStreamBehindItsReply) {
  EXPECT_THAT(ask(*peer, request("1", "run", R"("stream":true)")),
              EndsWith("\"status\":\"streaming_started\"}}\n"));
  bench.runs[0]->append(ChunkKind::text, "a");
  bench.run_all();
  EXPECT_EQ(peer->take(), R"({"jsonrpc":"2.0","method":"run","params":{)" + stream_member() +
                              R"(,"seq":0,"delta":"a","end":false}})" + "\n");
}

TEST_F(LineEndpointTest, HoldsToTheWindowAndGoesOnElsewhere) {
  ask(*peer, request("1", "run", R"("stream":true,"window":2)"));
  for (int i = 0; i < 4; ++i) bench.runs[0]->append(ChunkKind::text, "x");
  bench.run_all();
  EXPECT_THAT(peer->take(), Not(HasSubstr(R"("seq":2)")));
  EXPECT_THAT(ask(*peer, request("2", "ack", stream_member() + R"(,"seq":2)")),
              HasSubstr(R"("seq":3)"));
  peer->tear_down();
  bench.run_all();
  const RefPtr<MemoryConnection> next = connect(1000);
  EXPECT_THAT(ask(*next, request("3", "subscribe", stream_member() + R"(,"from_seq":2)")),
              ::testing::AllOf(HasSubstr(R"("status":"subscribed")"), HasSubstr(R"("seq":2)"),
                               HasSubstr(R"("seq":3)")));
}

TEST_F(LineEndpointTest, NotificationsOfStreamMethodsAct) {
  const auto notify = [&](std::string_view method, std::string_view more = "") {
    return ask(*peer, R"({"jsonrpc":"2.0","method":")" + std::string(method) + R"(","params":{)" +
                          stream_member() + std::string(more) + "}}");
  };
  ask(*peer, request("1", "run", R"("stream":true,"window":2)"));
  for (int i = 0; i < 4; ++i) bench.runs[0]->append(ChunkKind::text, "x");
  bench.run_all();
  EXPECT_THAT(peer->take(), Not(HasSubstr(R"("seq":2)")));
  const std::string more = notify("ack", R"(,"seq":2)");
  EXPECT_THAT(more, HasSubstr(R"("seq":3)"));
  EXPECT_THAT(more, Not(HasSubstr("acknowledged")));
  EXPECT_EQ(notify("ack", R"(,"seq":9)"), "");
  EXPECT_EQ(notify("ack", R"(,"seq":"x")"), "");
  EXPECT_EQ(notify("unsubscribe"), "");
  bench.runs[0]->append(ChunkKind::text, "y");
  bench.run_all();
  EXPECT_EQ(peer->take(), "");
  // Methods that serve only to get an answer do nothing as notifications.
  EXPECT_EQ(notify("subscribe"), "");
  EXPECT_EQ(notify("is_running"), "");
}

TEST_F(LineEndpointTest, AStreamIsItsUsersOnly) {
  ask(*peer, request("1", "run", R"("stream":true)"));
  EXPECT_THAT(ask(*connect(65534), request("2", "run", stream_member() + R"(,"from_seq":0)")),
              HasSubstr(R"("code":-32001)"));
  EXPECT_THAT(ask(*connect(1000), request("2", "is_running", stream_member())),
              HasSubstr(R"("status":"running")"));
}

TEST_F(LineEndpointTest, OverTcpAClientIsItsAddress) {
  const PeerAddress here = PeerAddress::parse("127.0.0.1").value();
  ask(*connect(LinePeer(here)), request("1", "run", R"("stream":true)"));
  EXPECT_THAT(ask(*peer, request("2", "is_running", stream_member())), HasSubstr("-32001"));
  const PeerAddress there = PeerAddress::parse("192.0.2.1").value();
  EXPECT_THAT(ask(*connect(LinePeer(there)), request("2", "is_running", stream_member())),
              HasSubstr("-32001"));
  EXPECT_THAT(ask(*connect(LinePeer(here)), request("2", "is_running", stream_member())),
              HasSubstr(R"("status":"running")"));
}

TEST_F(LineEndpointTest, ABrowserIsTurnedAway) {
  options.begins_with_json = true;
  const RefPtr<MemoryConnection> page = connect(LinePeer(PeerAddress{}));
  const std::string run = request("1", "run", R"("stream":true)");
  const std::string said = ask(*page, "POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n" + run);
  EXPECT_THAT(said, ::testing::AllOf(HasSubstr("-32700"), HasSubstr("takes JSON-RPC")));
  EXPECT_TRUE(bench.runs.empty());
  EXPECT_TRUE(page->is_over());
}

TEST_F(LineEndpointTest, ASlowReaderPausesItsStreamNotItsProducersMemory) {
  options.output.high_water = 2000;
  options.output.low_water = 500;
  ask(*peer, request("1", "run", R"("stream":true)"));
  const std::string text(1000, 'x');
  std::size_t appended = 0;
  for (; appended < 50; ++appended) {
    bench.runs[0]->append(ChunkKind::text, text);
    bench.run_all();
  }
  EXPECT_LT(peer->queued_bytes(), options.output.high_water + 4000);
  bench.runs[0]->finish();
  std::string all;
  for (int turn = 0; turn < 100; ++turn) {
    all += peer->take();
    bench.run_all();
  }
  EXPECT_THAT(all, HasSubstr(R"("seq":49,)"));
  EXPECT_THAT(all, EndsWith("\"end\":true}}\n"));
}

TEST_F(LineEndpointTest, WhatABusyReaderMissedItHearsOnce) {
  options.output.high_water = 2000;
  options.output.low_water = 500;
  peer = connect(1000);
  ask(*peer, request("0", "initialize", R"("protocolVersion":"2025-06-18","capabilities":{})"));
  ask(*peer, request("1", "run", R"("stream":true)"));
  for (int i = 0; i < 100; ++i) {
    bench.runs[0]->append(ChunkKind::text, std::string(100, 'x'));
    bench.run_all();
  }
  for (int i = 0; i < 3; ++i) bench.changes->publish({Change::Kind::tools});
  bench.run_all();
  constexpr std::string_view kChanged = "notifications/tools/list_changed";
  std::string said;
  for (std::string more = "x"; !more.empty(); said += more) {
    bench.run_all();
    more = peer->take();
  }
  const std::size_t at = said.find(kChanged);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(said.find(kChanged, at + 1), std::string::npos);
}

TEST_F(LineEndpointTest, WhatATaskAsksABusyReaderItHearsWhenItReads) {
  options.output.high_water = 2000;
  options.output.low_water = 500;
  peer = connect(1000);
  ask(*peer, request("0", "initialize",
                     R"("protocolVersion":"2025-11-25","capabilities":{"elicitation":{}})"));
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    const std::string created =
        ask(*peer, request("\"" + std::to_string(i) + "\"", "tools/call",
                           R"("name":"later","task":{},"_meta":{"progressToken":"p"})"));
    names.emplace_back(
        parse_json(created).value().at("result").at("task").at("taskId").as_string());
  }
  ask(*peer, request("1", "tasks/result", R"("taskId":")" + names[1] + "\""));
  ask(*peer, request("2", "run", R"("stream":true)"));
  for (int i = 0; i < 100; ++i) {
    bench.runs[0]->append(ChunkKind::text, std::string(100, 'x'));
    bench.run_all();
  }
  for (int i = 0; i < 1000; ++i) bench.calls[0]->emit("how far");
  for (const auto& call : bench.calls) {
    call->ask({{"a", "elicitation/create", {{"message", "A?"}, {"requestedSchema", kNoFields}}}},
              [](const Result<std::vector<json::value>>&) {});
  }
  bench.run_all();
  EXPECT_LT(peer->queued_bytes(), options.output.high_water + 4000);
  std::string said;
  for (std::string more = "x"; !more.empty(); said += more) {
    bench.run_all();
    more = peer->take();
  }
  // Each state comes once, and so does the question of the task that is waited for.
  for (const std::string& name : names) {
    const std::string state = R"("taskId":")" + name + R"(","status":"input_required")";
    const std::size_t at = said.find(state);
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(said.find(state, at + 1), std::string::npos);
  }
  const std::size_t at = said.find("elicitation/create");
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(said.find("elicitation/create", at + 1), std::string::npos);
}

TEST_F(LineEndpointTest, RequestsAreCancelledByTheirIdsAndByTheEnd) {
  ask(*peer, request("12345678901234567890123", "tools/call", R"("name":"later")"));
  EXPECT_EQ(ask(*peer, R"({"jsonrpc":"2.0","method":"notifications/cancelled",)"
                       R"("params":{"requestId":12345678901234567890123}})"),
            "");
  EXPECT_TRUE(bench.calls[0]->over());
  ask(*peer, request("2", "tools/call", R"("name":"later")"));
  peer->tear_down();
  EXPECT_TRUE(bench.calls[1]->over());
}

TEST_F(LineEndpointTest, AtTheEndOfTheInputWhatIsUnderWayIsAnsweredFirst) {
  ask(*peer, request("1", "tools/call", R"("name":"later")"));
  ask(*peer, request("2", "run", R"("stream":true)"));
  peer->end();
  bench.run_all();
  EXPECT_FALSE(peer->is_over());
  bench.calls[0]->complete({.text = "done"});
  bench.run_all();
  EXPECT_THAT(peer->take(), HasSubstr(R"("id":1,"result")"));
  EXPECT_FALSE(peer->is_over());
  bench.runs[0]->finish();
  bench.run_all();
  EXPECT_THAT(peer->take(), HasSubstr(R"("end":true)"));
  bench.run_all();
  EXPECT_TRUE(peer->is_over());
}

TEST_F(LineEndpointTest, WhatListensEndsWithTheInput) {
  ask(*peer, request("1", "subscriptions/listen",
                     R"("notifications":{},"_meta":{"io.modelcontextprotocol/protocolVersion":)"
                     R"("2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})"));
  peer->end();
  bench.run_all();
  EXPECT_THAT(peer->take(), HasSubstr(R"("id":1,"result":{)"));
  EXPECT_TRUE(peer->is_over());
}

TEST_F(LineEndpointTest, AnIdleConnectionEndsWithItsInput) {
  ask(*peer, request("1", "ping"));
  peer->end();
  bench.run_all();
  EXPECT_TRUE(peer->is_over());
}

TEST_F(LineEndpointTest, RequestsWaitInTheMiddleware) {
  std::vector<std::string> ends;
  bench.definition.middleware.push_back([&](Request& request) -> Task<> {
    const RequestEnd end = co_await request.next();
    ends.push_back(request.method() + (end.cancelled ? " cancelled" : ""));
  });
  bench.definition.middleware.push_back([](Request& request) -> Task<> {
    co_await request.sleep(std::chrono::seconds(1));
    if (request.method() == "streams") throw Error{403, "Not for you"};
    co_await request.next();
  });
  bench.serve();
  service->dispatcher.take(bench.catalog);
  EXPECT_EQ(ask(*peer, request("1", "ping") + "\n" + request("2", "streams") + "\n" +
                           request("3", "ping") + "\n" +
                           R"({"jsonrpc":"2.0","method":"notifications/cancelled",)"
                           R"("params":{"requestId":3}})"),
            "");
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_EQ(peer->take(),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":403,"
            "\"message\":\"Not for you\"}}\n");
  // What follows an initialize waits with it.
  ask(*peer, request("4", "initialize", R"("protocolVersion":"2024-11-05","capabilities":{})") +
                 "\n" + request("5", "ping"));
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_THAT(peer->take(), HasSubstr(R"({"jsonrpc":"2.0","id":4,"result":)"));
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_THAT(peer->take(), HasSubstr(R"({"jsonrpc":"2.0","id":5,"result":)"));
  ask(*peer, request("6", "ping"));
  peer->tear_down();
  bench.run_all();
  EXPECT_EQ(ends, (std::vector<std::string>{"ping cancelled", "ping", "streams", "initialize",
                                            "ping", "ping cancelled"}));
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

}  // namespace
}  // namespace sluice
