// Partial results (draft SEP-2998) as output of an agent's calls, from a server that sends them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/api/client_connection.hpp"
#include "client/session/contract/server_link.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "sluice/agent.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;

/// A server of 2026-07-28 with one tool, `find`, which says the given notifications before its
/// result. In these, `"TOKEN"` is the token that the call has sent, and NUMBER its other one, for
/// progress.
class PartialServer final : public ServerLink {
 public:
  struct Script {
    std::vector<std::string> notifications;
    json::object meta = {};        // of the call
    std::size_t breaks_after = 0;  // so many of these, once; 0: it does not
  };
  PartialServer(EventLoop& loop, std::shared_ptr<Script> script)
      : loop_(&loop), script_(std::move(script)) {}

  void open(Owner& owner) override { *owner_ = &owner; }
  bool drop(const RequestId& /*id*/) override { return true; }
  bool reopen() override { return false; }
  void close(std::function<void()> done) override {
    *owner_ = nullptr;
    done();
  }
  Result<void> send(OutgoingMessage message) override {
    if (message.method == "server/discover") {
      answer(message.id, R"({"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})");
    } else if (message.method == "tools/list") {
      answer(message.id, R"({"tools":[{"name":"find","inputSchema":{"type":"object"},)"
                         R"("annotations":{"readOnlyHint":true}}]})");
    } else if (message.method == "tools/call") {
      script_->meta = parse_json(message.text).value().at("params").at("_meta").as_object();
      std::size_t said = 0;
      const std::string token = to_json(json::value(text_at(script_->meta, "partialResultToken")));
      const std::size_t sent = std::exchange(script_->breaks_after, 0);
      for (std::string each : script_->notifications) {
        if (const auto at = each.find("\"TOKEN\""); at != std::string::npos) {
          each.replace(at, 7, token);
        }
        if (const auto at = each.find("NUMBER"); at != std::string::npos) {
          each.replace(at, 6, message.id);
        }
        say(std::move(each));
        if (++said == sent) return break_off(message.id);
      }
      answer(message.id, R"({"content":[{"type":"text","text":"all of it"}]})");
    }
    return {};
  }

 private:
  void answer(const RequestId& id, std::string_view result) {
    say(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":)" + std::string(result) + "}");
  }
  Result<void> break_off(RequestId id) {
    loop_->post([owner = owner_, id = std::move(id)] {
      if (*owner != nullptr) (*owner)->on_broken_off(id, {502, "broken off", {}});
    });
    return {};
  }
  void say(std::string message) {
    loop_->post([owner = owner_, message = std::move(message)] {
      if (*owner != nullptr) (*owner)->on_message(message);
    });
  }

  EventLoop* loop_;
  std::shared_ptr<Script> script_;
  std::shared_ptr<Owner*> owner_ = std::make_shared<Owner*>(nullptr);
};

std::string part(std::string_view members) {
  return R"({"jsonrpc":"2.0","method":"notifications/tools/partial_result","params":)"
         R"({"partialResultToken":"TOKEN",)" +
         std::string(members) + "}}";
}

std::string progress(std::string_view message) {
  return R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":NUMBER,)"
         R"("progress":1,"message":")" +
         std::string(message) + "\"}}";
}

class AgentPartialResultsTest : public ::testing::Test {
 protected:
  /// Runs an agent whose model calls the tool once. Returns its output: what was dropped, and text
  /// or content.
  std::vector<std::string> output(std::vector<std::string> notifications, bool asks = true) {
    script->notifications = std::move(notifications);
    auto connection = detail::ClientConnection::open(
        [this](EventLoop& loop) -> Result<std::unique_ptr<ServerLink>> {
          return std::make_unique<PartialServer>(loop, script);
        },
        {.revision = "2026-07-28"});
    EXPECT_TRUE(connection);
    const Agent agent(custom_model("script",
                                   [](const ModelRequest& request, ModelAnswer& answer) {
                                     if (request.messages.back().role != "tool") {
                                       answer.call("find", {});
                                     } else {
                                       answer.text(request.messages.back().content);
                                     }
                                   }),
                      {.servers = {{.label = "own", .client = Client(*connection)}},
                       .events = {.overflow = OutputOverflow::block},
                       .partial_results = asks});
    std::vector<std::string> out;
    auto run = agent.run("Find");
    while (const auto event = run.next()) {
      if (event->type != AgentEventType::tool_output_delta) continue;
      out.push_back(std::to_string(event->dropped) + " " +
                    (event->text.empty() ? to_json(event->data) : event->text) +
                    (event->data.contains("restart") ? ", anew" : ""));
    }
    EXPECT_EQ(run.result().text, "all of it");
    return out;
  }

  std::shared_ptr<PartialServer::Script> script = std::make_shared<PartialServer::Script>();
};

TEST_F(AgentPartialResultsTest, TheirBlocksAreOutputOfTheCall) {
  EXPECT_THAT(
      output(
          {part(R"("seq":0,"content":[{"type":"text","text":"one"},{"type":"text","text":""},)"
                R"({"type":"image","data":"AA==","mimeType":"image/png"}])"),
           R"({"jsonrpc":"2.0","method":"notifications/message","params":)"
           R"({"level":"info","data":"for all"}})",
           part(R"("seq":1,"structuredContent":{"hits":2},"content":[])"),
           part(R"("seq":2,"structuredContent":{"hits":3},"content":[{"type":"text","text":"x"}])"),
           part(R"("seq":3,"final":true)")}),
      ElementsAre("0 one", R"(0 {"content":{"type":"image","data":"AA==","mimeType":"image/png"}})",
                  "0 for all", R"(0 {"hits":2})", "0 x"));
  EXPECT_TRUE(script->meta.at("io.modelcontextprotocol/clientCapabilities")
                  .as_object()
                  .contains("partialResults"));
}

TEST_F(AgentPartialResultsTest, WhatIsMissingIsCountedBeforeTheNextOutput) {
  EXPECT_THAT(output({part(R"("seq":2,"content":[])"),
                      part(R"("seq":5,"content":[{"type":"text","text":"six"}])"),
                      part(R"("seq":5,"content":[{"type":"text","text":"again"}])"),
                      part(R"("seq":6,"content":[{"type":"text","text":"seven"}])")}),
              ElementsAre("4 six", "0 seven"));
}

TEST_F(AgentPartialResultsTest, PartsComeOnceIfTheCallIsSentAgain) {
  script->breaks_after = 2;
  EXPECT_THAT(output({part(R"("seq":0,"content":[{"type":"text","text":"one"}])"),
                      part(R"("seq":1,"content":[{"type":"text","text":"two"}])"),
                      part(R"("seq":2,"content":[{"type":"text","text":"three"}])")}),
              ElementsAre("0 one", "0 two", "0 three"));
}

TEST_F(AgentPartialResultsTest, OtherOutputBeginsAnewIfTheCallIsSentAgain) {
  script->breaks_after = 2;
  EXPECT_THAT(output({progress("one"), progress("two"), progress("three")}),
              ElementsAre("0 one", "0 two", "0 one, anew", "0 two", "0 three"));
}

TEST_F(AgentPartialResultsTest, NobodyAsksForThemByDefault) {
  EXPECT_FALSE(AgentOptions().partial_results);
  EXPECT_THAT(output({part(R"("seq":0,"content":[{"type":"text","text":"one"}])")}, false),
              ElementsAre());
  EXPECT_FALSE(script->meta.contains("partialResultToken"));
  EXPECT_FALSE(script->meta.at("io.modelcontextprotocol/clientCapabilities")
                   .as_object()
                   .contains("partialResults"));
}

}  // namespace
}  // namespace sluice
