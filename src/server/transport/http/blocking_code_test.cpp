// Code of the program that blocks an event loop is named in the log, and nothing else is.

#include <expected>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/connection/memory_connection.hpp"
#include "net/server/http_worker.hpp"
#include "net/server/server_http.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/transport/http/http_endpoint.hpp"
#include "sluice/authenticator.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kEcho =
    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}})";

class BlockingCodeTest : public ::testing::Test {
 protected:
  ~BlockingCodeTest() override { bench.run_all(); }

  struct Slow final : Authenticator {
    explicit Slow(ManualExecutor& blocked) : loop(&blocked) {}
    std::expected<Principal, Refusal> authenticate(const RequestHead& /*head*/) override {
      loop->stall(TurnWatch::kLong);
      return Principal{.id = "ann"};
    }
    ManualExecutor* loop;
  };

  /// What is logged while the server answers `requests`, which arrive together.
  std::string logged(std::string_view requests) {
    AccessPolicy::Options policy;
    policy.authenticator = authenticator;
    const AccessPolicy access(policy);
    SessionRegistry sessions({}, loop.clock());
    Service service(bench.catalog, access, sessions, bench.quota, *bench.changes, *bench.tasks,
                    std::vector<StreamShard>{{&loop, bench.managers[0].get()}}, 0);
    HttpEndpoint::Options options;
    options.sse_sessions = std::make_shared<SseSessions>(sessions);
    options.paths.routes = {{.path = "/slow",
                             .answer =
                                 [this](const RouteRequest&) {
                                   loop.stall(TurnWatch::kLong);
                                   return RouteReply{.body = "late"};
                                 }},
                            {.path = "/quick", .answer = [](const RouteRequest&) {
                               return RouteReply{.body = "quick"};
                             }}};
    HttpEndpoint endpoint(service, std::move(options));
    const HttpServerOptions limits;
    HttpWorker worker(loop, nullptr, endpoint, limits);
    const RefPtr<MemoryConnection> peer(new MemoryConnection(worker, limits.output));
    ServerHttp::begin(*peer, worker);
    ::testing::internal::CaptureStderr();
    peer->write(requests);
    loop.run();
    loop.stall(TurnWatch::kLong);
    loop.run();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(peer->take(), HasSubstr("HTTP/1.1 200 OK"));
    peer->tear_down();
    loop.run();
    return log;
  }
  static std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }

  ServerBench bench;
  ManualExecutor& loop = bench.executors[0];
  std::shared_ptr<Authenticator> authenticator;
};

TEST_F(BlockingCodeTest, ARouteIsNamedAndNoToolBeforeIt) {
  const std::string call =
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(kEcho.size()) +
      "\r\n\r\n" + std::string(kEcho);
  EXPECT_THAT(logged(call + get("/slow")),
              AllOf(HasSubstr("route=/slow ms=100"), Not(HasSubstr("tool="))));
  EXPECT_THAT(logged(call + get("/quick")), IsEmpty());
}

TEST_F(BlockingCodeTest, AnAuthenticatorIsNamed) {
  authenticator = std::make_shared<Slow>(loop);
  EXPECT_THAT(logged(get("/quick")), HasSubstr("authenticator=\"\" ms=100"));
}

}  // namespace
}  // namespace sluice
