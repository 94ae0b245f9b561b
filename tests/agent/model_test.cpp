#include "sluice/model.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Type = AgentEventType;

RunResult answer_of(const ScriptedModel::Answer& answer) {
  const ScriptedModel model({answer});
  auto run = Agent(model.model()).run("Go");
  return run.result();
}

TEST(CustomModelTest, HasANameAndUsage) {
  const ScriptedModel model({[](const ModelRequest&, ModelAnswer& answer) {
    EXPECT_TRUE(answer.reasoning("Hm."));
    EXPECT_TRUE(answer.text("It "));
    EXPECT_TRUE(answer.text("is."));
    answer.usage(7, 3);
  }});
  EXPECT_EQ(model.model().name(), "script");
  auto run = Agent(model.model(), {.max_tokens = 12}).run("Go");
  const RunResult result = run.result();
  EXPECT_EQ(result.text, "It is.");
  EXPECT_EQ(result.usage.at("input_tokens"), 7);
  EXPECT_EQ(result.usage.at("output_tokens"), 3);
  EXPECT_EQ(model.asked(0).max_tokens, 12);
}

TEST(CustomModelTest, IsShownImagesOfToolsIfItIsToSeeThem) {
  Server server("camera", "1");
  server.tool("look", "Looks",
              [] { return ToolResult{.content = {Content::image("GIF89a", "image/gif")}}; });
  const ScriptedModel model(
      {[](const ModelRequest&, ModelAnswer& answer) { answer.call("look", {}); },
       [](const ModelRequest&, ModelAnswer& answer) { answer.text("I see."); }});
  auto run = Agent(model.model(),
                   {.servers = {{.label = "own", .client = connect(server)}}, .max_images = 4})
                 .run("Look");
  EXPECT_EQ(run.result().status, "completed");
  const ChatMessage shown = model.asked(1).messages.back();
  EXPECT_EQ(shown.content, "[image: image/gif]");
  ASSERT_EQ(shown.images.size(), 1U);
  EXPECT_EQ(shown.images[0].mime_type, "image/gif");
  EXPECT_EQ(*shown.images[0].base64, "R0lGODlh");
}

TEST(CustomModelTest, MayFail) {
  const RunResult error =
      answer_of([](const ModelRequest&, ModelAnswer&) { throw Error{1, "There is no GPU"}; });
  EXPECT_EQ(error.status, "failed");
  EXPECT_EQ(error.reason, "There is no GPU");
  const RunResult other =
      answer_of([](const ModelRequest&, ModelAnswer&) { throw std::runtime_error("secret"); });
  EXPECT_EQ(other.reason, "The model failed");
}

TEST(CustomModelTest, MayBeCut) {
  const RunResult result = answer_of([](const ModelRequest&, ModelAnswer& answer) {
    answer.text("It is");
    answer.cut();
  });
  EXPECT_EQ(result.status, "incomplete");
  EXPECT_EQ(result.text, "It is");
}

TEST(CustomModelTest, IsHeldUpWhileNobodyTakesItsWords) {
  std::atomic<int> said = 0;
  std::promise<void> many;
  std::atomic<bool> is_told = false;
  const ScriptedModel model({[&](const ModelRequest&, ModelAnswer& answer) {
    for (int i = 0; i < 100'000; ++i) {
      if (!answer.text("x")) return;
      if (++said == 1000 && !is_told.exchange(true)) many.set_value();
    }
  }});
  auto run = Agent(model.model(), {.events = {.max_model_events = 1000}}).run("Go");
  many.get_future().wait();
  // What waits between the model's thread and the events is bounded, too.
  int taken = 0;
  while (auto event = run.next()) {
    if (event->type != Type::output_text_delta) continue;
    taken += static_cast<int>(event->text.size());
    EXPECT_LE(said - taken, 3000);
  }
  EXPECT_EQ(taken, 100'000);
}

TEST(CustomModelTest, WhoeverIsHeldUpIsFreedByTheEndOfTheRun) {
  std::promise<bool> wanted;
  const ScriptedModel model({[&](const ModelRequest&, ModelAnswer& answer) {
    while (answer.text("x")) {
    }
    wanted.set_value(!answer.stop().stop_requested());
  }});
  {
    auto run = Agent(model.model()).run("Go");
    (void)model.asked(0);
  }
  EXPECT_FALSE(wanted.get_future().get());
}

TEST(CustomModelTest, FurtherRequestsWaitForTheirTurn) {
  constexpr int kRuns = 100;
  std::promise<void> opened;
  const std::shared_future<void> open = opened.get_future().share();
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  const Model model = custom_model("slow", [&](const ModelRequest&, ModelAnswer& answer) {
    const int now = ++at_once;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    open.wait();
    answer.text("done");
    --at_once;
  });
  const Agent agent(model);
  std::vector<sluice::Run> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(agent.run("Go"));
  // Whether it has begun or waits, it can be cancelled.
  runs.front().cancel();
  runs.back().cancel();
  EXPECT_EQ(runs.front().result().status, "cancelled");
  EXPECT_EQ(runs.back().result().status, "cancelled");
  while (at_once < 64) std::this_thread::yield();
  opened.set_value();
  for (int i = 1; i + 1 < kRuns; ++i)
    EXPECT_EQ(runs[static_cast<std::size_t>(i)].result().text, "done");
  EXPECT_EQ(most, 64);
}

TEST(CustomModelTest, MayOutliveItsAgents) {
  std::promise<void> begun;
  std::promise<void> gone;
  const ScriptedModel script({[&](const ModelRequest&, ModelAnswer& answer) {
    begun.set_value();
    gone.get_future().wait();
    EXPECT_FALSE(answer.text("Too late."));
  }});
  const Model model = script.model();
  {
    auto run = Agent(model).run("Go");
    begun.get_future().wait();
  }
  gone.set_value();
}

struct Unit {};

TEST(CustomModelTest, ItsFunctionMayEndIt) {
  Server server("keeps", "1");
  const Client keeps = connect(server);  // the loop of all clients, whatever ends
  std::optional<sluice::Run> run;
  std::promise<void> begun;
  std::promise<void> ended;
  {
    const Agent agent(custom_model("ends itself", [&](const ModelRequest&, ModelAnswer& answer) {
      begun.get_future().wait();
      run.reset();
      EXPECT_TRUE(answer.stop().stop_requested());
      ended.set_value();
    }));
    run.emplace(agent.run("Go"));
  }
  begun.set_value();
  ended.get_future().wait();
}

TEST(CustomModelTest, MayEndInACallbackOfAClientThatItWaitsFor) {
  Server server("tools", "1");
  std::promise<void> asked;
  std::promise<void> opened;
  const std::shared_future<void> open = opened.get_future().share();
  server.tool("wait", "Waits", [&](Unit, Call& call) -> Task<std::string> {
    asked.set_value();
    co_await call.in_background([open] { open.wait(); });
    co_return "waited";
  });
  std::promise<void> heard;
  const std::shared_future<void> hears = heard.get_future().share();
  server.tool("answer", "Answers once somebody hears of it",
              [hears](Unit, Call& call) -> Task<std::string> {
                co_await call.in_background([hears] { hears.wait(); });
                co_return "heard";
              });
  Client client = connect(server);
  std::promise<std::string> waited;
  std::optional<Agent> agent(custom_model("waits", [&](const ModelRequest&, ModelAnswer&) {
    try {
      waited.set_value(client.call("wait").result().text());
    } catch (const std::exception& error) {
      waited.set_value(error.what());
    }
  }));
  {
    auto run = agent->run("Go");
    asked.get_future().wait();
  }
  auto call = client.call("answer");
  call.on_answer([&](const auto&) {
    agent.reset();
    opened.set_value();
  });
  // Not before, or the callback would be called on this thread.
  heard.set_value();
  EXPECT_EQ(waited.get_future().get(), "waited");
}

TEST(RemoteModelTest, NeedsAUrl) {
  for (const char* url : {"", "model.gguf", "ws://127.0.0.1/v1"}) {
    try {
      remote_model({.url = url});
      FAIL() << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, 400);
      EXPECT_THAT(error.message, HasSubstr("https://host/v1"));
    }
  }
}

int code_of(const std::string& url) {
  try {
    remote_model({.url = url});
  } catch (const Error& error) {
    return error.code;
  }
  return 0;
}

TEST(RemoteModelTest, WhoCannotBeReachedIsAnError) {
  EXPECT_EQ(code_of("http://127.0.0.1:1/v1"), 502);
}

TEST(RemoteModelTest, WhoRedirectsIsAnError) {
  const int listens = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  ASSERT_EQ(::bind(listens, address, size), 0);
  ASSERT_EQ(::listen(listens, 1), 0);
  ASSERT_EQ(::getsockname(listens, address, &size), 0);
  std::thread server([listens] {
    const int peer = ::accept(listens, nullptr, nullptr);
    std::string request(4096, '\0');
    EXPECT_GT(::read(peer, request.data(), request.size()), 0);
    const std::string reply =
        "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    EXPECT_EQ(::write(peer, reply.data(), reply.size()), static_cast<ssize_t>(reply.size()));
    ::close(peer);
  });
  EXPECT_EQ(code_of("http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/v1"), 502);
  server.join();
  ::close(listens);
}

}  // namespace
}  // namespace sluice
