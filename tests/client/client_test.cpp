#include "sluice/client.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include "served.hpp"
#include "ways.hpp"

namespace sluice::client_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Each way in each era.
class ClientTest : public ::testing::TestWithParam<std::tuple<Way, std::string>> {
 protected:
  [[nodiscard]] Client connect(ClientOptions options = {}) {
    options.revision = std::get<1>(GetParam());
    return served.connect(std::get<0>(GetParam()), std::move(options));
  }
  Served served;
};

/// Where servers may ask the user: 2024-11-05 has no elicitation.
class ClientThatIsAskedTest : public ClientTest {};

INSTANTIATE_TEST_SUITE_P(All, ClientTest, ::testing::ValuesIn(ways()), name_of_way);
INSTANTIATE_TEST_SUITE_P(All, ClientThatIsAskedTest, ::testing::ValuesIn(ways({Way::sse})),
                         name_of_way);

TEST_P(ClientTest, CallsATool) {
  Client client = connect();
  EXPECT_EQ(client.instructions(), "Be kind");
  const std::string wanted = std::get<1>(GetParam());
  EXPECT_EQ(client.revision(), wanted.empty() ? "2026-07-28" : wanted);
  const bool has_structured = client.revision() >= "2025-06-18";
  if (has_structured) {
    EXPECT_EQ(client.call<Total>("add", Numbers{.a = 2, .b = 3}).result().sum, 5);
  }
  const ToolReply reply = client.call("add", {{"a", 20}, {"b", 3}}).result();
  EXPECT_FALSE(reply.is_error());
  EXPECT_THAT(reply.text(), HasSubstr("23"));
}

TEST_P(ClientTest, SeesPartialOutput) {
  Client client = connect();
  auto call = client.call("count", {{"to", 5}});
  std::string said;
  double progress = 0;
  while (const auto event = call.next()) {
    said += event->message;
    EXPECT_GT(event->progress, progress);
    EXPECT_EQ(event->dropped, 0);
    progress = event->progress;
  }
  // Progress has had messages since 2025-03-26.
  if (client.revision() >= "2025-03-26") EXPECT_EQ(said, "1 2 3 4 5 ");
  EXPECT_TRUE(call.is_ready());
  EXPECT_THAT(call.result().text(), HasSubstr("15"));
}

TEST_P(ClientThatIsAskedTest, AnswersQuestions) {
  std::vector<std::string> asked;
  Client client = connect({.on_elicitation = [&asked](const json::object& params) -> json::object {
    asked.emplace_back(params.at("message").as_string());
    return {{"action", "accept"}, {"content", {{"name", "Mira"}}}};
  }});
  EXPECT_EQ(client.call("greet").result().text(), "Hello Mira");
  EXPECT_THAT(asked, ElementsAre("Who are you?"));
}

TEST_P(ClientTest, TellsOfFailures) {
  Client client = connect();
  const ToolReply failed = client.call("fail").result();
  EXPECT_TRUE(failed.is_error());
  EXPECT_EQ(failed.text(), "out of paper");
  EXPECT_THROW(client.call<Total>("fail").result(), ToolError);
  try {
    client.call("nothing").result();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, -32602);
    EXPECT_THAT(error.message, HasSubstr("nothing"));
  }
}

TEST_P(ClientTest, ReadsAllPagesOfLists) {
  Client client = connect();
  std::vector<std::string> names;
  for (const Listed& tool : client.tools()) names.push_back(tool.name);
  EXPECT_THAT(names, ElementsAre("add", "count", "greet", "hang", "await_hanging", "fail"));
  ASSERT_EQ(client.resources().size(), 1);
  EXPECT_EQ(client.resources()[0].definition.at("uri"), "text://motto");
  EXPECT_THAT(client.resource_templates(), IsEmpty());
  EXPECT_EQ(client.read_resource("text://motto").at(0).at("text"), "Keep going");
  ASSERT_EQ(client.prompts().size(), 1);
  EXPECT_EQ(client.prompts()[0].description, "Reviews");
  const json::object prompt = client.get_prompt("review", {{"name", "it"}});
  EXPECT_EQ(prompt.at("messages").at(0).at("content").at("text"), "Review it");
  client.ping();
}

TEST_P(ClientTest, ManyCallsAtOnce) {
  constexpr int kCalls = 1500;
  Client client = connect({.max_requests = kCalls});
  std::vector<PendingCall<ToolReply>> calls;
  for (int i = 0; i < kCalls; ++i) calls.push_back(client.call("add", {{"a", i}, {"b", 10'000}}));
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_THAT(calls[static_cast<std::size_t>(i)].result().text(),
                HasSubstr(std::to_string(10'000 + i)));
  }
}

TEST_P(ClientTest, IsUsedByManyThreads) {
  Client client = connect();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([client, &right, thread]() mutable {
      for (int i = 0; i < 25; ++i) {
        const ToolReply reply = client.call("add", {{"a", i}, {"b", 1000 * thread}}).result();
        if (reply.text().find(std::to_string(1000 * thread + i)) != std::string::npos) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 100);
}

TEST_P(ClientTest, ACallKeepsItsConnection) {
  auto call = connect().call("count", {{"to", 3}});
  EXPECT_THAT(call.result().text(), HasSubstr("6"));
}

TEST(ClientLimitsTest, TheOldestEventsAreDroppedAndCounted) {
  Served served;
  Client client = served.connect(Way::websocket);
  auto call = client.call("count", {{"to", 20}}, {.max_events = 3});
  call.result();
  std::vector<std::string> said;
  std::uint64_t dropped = 0;
  while (const auto event = call.next()) {
    dropped += event->dropped;
    said.push_back(event->message);
  }
  EXPECT_THAT(said, ElementsAre("18 ", "19 ", "20 "));
  EXPECT_EQ(dropped, 17);
}

TEST(ClientLimitsTest, TheClientsIdleTimeoutIsThatOfRequestsWithoutTheirOwn) {
  EXPECT_EQ(ClientOptions().idle_timeout, 60s);
  // A server that says nothing but what it is.
  const ServerCommand silent{
      .arguments = {"sh", "-c",
                    R"(read -r line; echo '{"jsonrpc":"2.0","id":1,"result":)"
                    R"({"protocolVersion":"2025-11-25","capabilities":{}}}'; cat >/dev/null)"}};
  Client client = connect(silent, {.revision = "2025-11-25", .idle_timeout = 10ms});
  EXPECT_THROW(client.tools(), Error);
  EXPECT_THROW(client.call("t").result(), Error);
  auto patient = client.call("t", {}, {.idle_timeout = 0ms});
  EXPECT_THROW(client.call("t", {}, {.idle_timeout = 20ms}).result(), Error);
  EXPECT_FALSE(patient.is_ready());
}

TEST(ClientLimitsTest, TooManyRequestsAreRefused) {
  Served served;
  Client client = served.connect(Way::websocket, {.max_requests = 2});
  auto first = client.call("hang");
  auto second = client.call("hang");
  try {
    client.call("hang").result();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, kLimitReached);
  }
}

TEST(ClientErrorsTest, SayWhatIsWrong) {
  const auto error_of = [](const auto& connect) {
    try {
      connect();
    } catch (const Error& error) {
      return std::to_string(error.code) + " " + error.message;
    }
    return std::string("no error");
  };
  EXPECT_THAT(error_of([] { connect("ftp://example.com"); }), HasSubstr("400 "));
  EXPECT_THAT(error_of([] { connect("unix:"); }), HasSubstr("400 unix: needs the path"));
  EXPECT_THAT(error_of([] { connect("http+unix:#/mcp"); }), HasSubstr("400 http+unix: needs the"));
  EXPECT_THAT(error_of([] { connect("http+unix:/tmp/a#mcp"); }), HasSubstr("begins with a slash"));
  EXPECT_THAT(error_of([] { connect("http+unix:/no/such/socket"); }), HasSubstr("502 "));
  EXPECT_THAT(error_of([] { connect("http://127.0.0.1:1/mcp"); }), HasSubstr("502 "));
  EXPECT_THAT(error_of([] { connect(ServerCommand{}); }), HasSubstr("400 The command"));
  EXPECT_THAT(error_of([] { connect(ServerCommand{.arguments = {"no-such-program-here"}}); }),
              HasSubstr("no-such-program-here"));
  EXPECT_THAT(error_of([] { connect(ServerCommand{.arguments = {"false"}}); }),
              HasSubstr("ended with code 1"));
  EXPECT_THAT(error_of([] { connect("http://127.0.0.1:1", {.headers = {{"A", "b\r\nC: d"}}}); }),
              HasSubstr("400 \"A\" is no header field"));
  for (const std::string name : {"Content-Length", "transfer-encoding", "HOST", "Connection",
                                 "Upgrade", "Sec-WebSocket-Key"}) {
    EXPECT_THAT(error_of([&] { connect("http://127.0.0.1:1", {.headers = {{name, "5"}}}); }),
                HasSubstr("400 \"" + name + "\" is no header field"));
  }
  const Served served;
  EXPECT_THAT(error_of([&] { static_cast<void>(served.connect(Way::http, {.revision = "1999"})); }),
              HasSubstr("1999"));
}

TEST(ClientSkillsTest, AreListedAndReadAsListed) {
  Served served;
  const std::string manifest = "---\nname: pdf\ndescription: Fills forms\n---\nSee logo.bin\n";
  served.server().skill(
      "pdf", {{.path = "SKILL.md", .content = manifest}, {.path = "logo.bin", .content = "\xff"}});
  Client client = served.connect(Way::http);
  const std::vector<Listed> skills = client.skills();
  ASSERT_EQ(skills.size(), 1);
  EXPECT_EQ(skills[0].name, "pdf");
  EXPECT_EQ(skills[0].description, "Fills forms");
  EXPECT_EQ(client.read_skill_file(skills[0], "skill://pdf/SKILL.md"), manifest);
  EXPECT_EQ(client.read_skill_file(skills[0], "skill://pdf/logo.bin"), "\xff");
  EXPECT_THROW(client.read_skill_file(skills[0], "text://motto"), Error);
}

TEST(ClientTransportTest, IsTheOneThatWasNamed) {
  const Served served;
  Client sse = served.connect(Way::sse, {.http_transport = HttpTransport::sse});
  EXPECT_THAT(sse.call("add", {{"a", 1}, {"b", 1}}).result().text(), HasSubstr("2"));
  Client streamable = served.connect(Way::http, {.http_transport = HttpTransport::streamable});
  streamable.ping();
  EXPECT_THROW(
      static_cast<void>(served.connect(Way::sse, {.http_transport = HttpTransport::streamable})),
      Error);
}

TEST(ClientHeadersTest, GoWithEachRequest) {
  Server server("keys", "1", {.request_headers = {"X-Who"}});
  server.tool("who", "Says who calls",
              [](Call& call) { return std::string(call.header("X-Who").value_or("nobody")); });
  auto serving =
      sluice::start(server, http{.port = 0, .keys = {{.name = "me", .key = "0123456789abcdef"}}});
  ASSERT_TRUE(serving);
  Client client = connect(serving->url(), {.headers = {{"Authorization", "Bearer 0123456789abcdef"},
                                                       {"X-Who", "Mira"},
                                                       {"content-type", "text/plain"},
                                                       {"Mcp-Protocol-Version", "1999"}}});
  EXPECT_EQ(client.call("who").result().text(), "Mira");
  try {
    connect(serving->url());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, 401);
  }
}

TEST(ClientProxiesTest, AreThoseOfTheEnvironmentUnlessTheProgramDeclines) {
  const auto code_of_connecting = [](bool uses_environment_proxies) {
    try {
      const Client client =
          connect("http://mcp.invalid/mcp", {.uses_environment_proxies = uses_environment_proxies});
      return 0;
    } catch (const Error& error) {
      return error.code;
    }
  };
  ::setenv("all_proxy", "socks5://127.0.0.1:1", 1);
  EXPECT_EQ(code_of_connecting(true), 400);
  EXPECT_NE(code_of_connecting(false), 400);
  ::unsetenv("all_proxy");
}

TEST(ClientNotificationsTest, AreToldOnAThreadOfTheirOwn) {
  for (const Way way : {Way::http, Way::websocket, Way::unix_socket}) {
    Served served;
    std::atomic<bool> told = false;
    Client client = served.connect(
        way, {.revision = "2025-11-25",
              .on_notification = [&told](std::string_view method, const json::object&) {
                if (method != "notifications/tools/list_changed") return;
                told = true;
                told.notify_all();
              }});
    client.ping();
    // Over HTTP the stream of notifications opens in its own time.
    for (int i = 0; !told; ++i) {
      served.server().tool("new" + std::to_string(i), "New", [] { return 1; });
      client.ping();
    }
    told.wait(false);
  }
}

/// How a process ends that is forked off and does `work`. One that hangs is killed.
int status_of_fork(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(work() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(ClientForkTest, AConnectionStaysWithTheProcessThatHasMadeIt) {
  Served served;
  std::optional<Client> client = served.connect(Way::unix_socket);
  std::optional<PendingCall<ToolReply>> call = client->call("count", {{"to", 3}});
  const auto is_refused = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code == 502;
    }
    return false;
  };
  EXPECT_EQ(status_of_fork([&] {
              const bool refuses = is_refused([&] { client->call("add").cancel(); }) &&
                                   is_refused([&] { client->notify("a/b"); }) &&
                                   is_refused([&] { call->result(); });
              call.reset();
              client.reset();
              return refuses;
            }),
            0);
  EXPECT_THAT(call->result().text(), HasSubstr("6"));
}

#if !defined(__has_feature) || !__has_feature(thread_sanitizer)
TEST(ClientForkTest, AForkedProcessConnectsAnew) {
  Served served;
  const Client client = served.connect(Way::unix_socket);
  EXPECT_EQ(status_of_fork([&] {
              Client own = served.connect(Way::unix_socket);
              return own.call("add", {{"a", 20}, {"b", 3}}).result().text().contains("23");
            }),
            0);
}
#endif

TEST(ClientLocalTest, TheServerOutlivesItsDefinitionAndEndsWithItsClient) {
  const auto kept = std::make_shared<int>(7);
  {
    std::optional<Client> client;
    {
      Server server("local", "1");
      server.tool("seven", "Seven", [kept] { return *kept; });
      client = connect(server);
    }
    EXPECT_EQ(client->call("seven").result().text(), "7");
    EXPECT_GT(kept.use_count(), 1);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(ClientLocalTest, ChangesOfTheServerReachIt) {
  Server server("local", "1");
  Client client = connect(server);
  EXPECT_THAT(client.tools(), IsEmpty());
  server.tool("new", "New", [] { return 1; });
  // Its loop takes the change in its own time.
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (client.tools().empty()) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST(ClientLocalTest, TheLastHandleMayGoInAHandler) {
  Server server("local", "1");
  auto own = std::make_shared<std::optional<Client>>();
  std::atomic<bool> is_gone = false;
  server.tool("leave", "Drops the client of its own server", [own, &is_gone] {
    own->reset();
    is_gone = true;
    is_gone.notify_all();
    return 1;
  });
  own->emplace(connect(server));
  {
    auto call = std::make_unique<PendingCall<ToolReply>>((*own)->call("leave"));
    is_gone.wait(false);
  }
}

TEST(ClientInHandlersTest, WaitsWithoutAThread) {
  Served served;
  Client remote = served.connect(Way::http);
  Server front("front", "1");
  front.tool("twice", "Adds twice", [remote](Numbers in, Call& call) mutable -> Task<Total> {
    auto counting = remote.call("count", {{"to", 3}});
    std::string said;
    while (const auto event = co_await counting.next(call)) said += event->message;
    if (said != "1 2 3 ") throw Error{1, "it said " + said};
    auto adding = remote.call<Total>("add", in);
    const Total total = co_await adding.result(call);
    co_return Total{2 * total.sum};
  });
  front.tool("lost", "Asks for what is not there", [remote](Call& call) mutable -> Task<Total> {
    auto pending = remote.call<Total>("nothing");
    co_return co_await pending.result(call);
  });
  auto serving = sluice::start(front, http{.port = 0});
  ASSERT_TRUE(serving);
  Client client = connect(serving->url());
  EXPECT_EQ(client.call<Total>("twice", Numbers{.a = 1, .b = 2}).result().sum, 6);
  EXPECT_THROW(client.call("lost").result(), Error);
}

}  // namespace
}  // namespace sluice::client_tests
