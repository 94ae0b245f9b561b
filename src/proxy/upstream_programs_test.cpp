#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>

#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

UpstreamOptions program_of(FakeServer& server) {
  UpstreamOptions options = server.upstream();
  options.starts_program = true;
  return options;
}

TEST(UpstreamProgramsTest, AClientHasSoManyUntilOneHasEnded) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({program_of(server)}, {.programs_per_client = 2});
  std::optional<FakeClient> first(std::in_place, *proxy.server, FakeClient::Kind::session);
  FakeClient second(*proxy.server, FakeClient::Kind::connection);
  FakeClient third(*proxy.server, FakeClient::Kind::request);
  FakeClient fourth(*proxy.server, FakeClient::Kind::session);
  FakeClient other(*proxy.server, FakeClient::Kind::session, {.id = "bob"});
  first->initialize();
  second.request("tools/call", {{"name", "tool"}});
  proxy.run();
  const auto refused = third.request("tools/call", {{"name", "tool"}});
  const auto also_refused = fourth.initialize();
  const auto begun = other.initialize();
  proxy.run();
  EXPECT_THAT(third.result_of(refused), HasSubstr("runs 2 programs for you"));
  EXPECT_THAT(fourth.result_of(also_refused), HasSubstr("--programs-per-client"));
  EXPECT_THAT(other.result_of(begun), HasSubstr("serverInfo"));
  EXPECT_THAT(server.links, SizeIs(3));
  EXPECT_EQ(server.opened, 3U);
  first.reset();
  proxy.run();
  EXPECT_THAT(server.links, SizeIs(2));
  const auto again = fourth.initialize();
  proxy.run();
  EXPECT_THAT(fourth.result_of(again), HasSubstr("serverInfo"));
}

TEST(UpstreamProgramsTest, AProgramThatDiesAsItIsStartedAgainIsStartedOnceMore) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({program_of(server)});
  FakeClient client(*proxy.server, FakeClient::Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return id;
  };
  EXPECT_THAT(client.result_of(call()), HasSubstr("behind tool 1"));
  server.links.front()->die();
  proxy.run();
  server.is_silent = true;
  const auto next = call();
  server.is_silent = false;
  server.links.front()->die();
  proxy.run();
  EXPECT_THAT(client.result_of(next), HasSubstr("behind tool 3"));
  EXPECT_THAT(client.result_of(call()), HasSubstr("behind tool 3"));
}

TEST(UpstreamProgramsTest, AProgramThatDiesOrIsNotThereGivesItsPlaceBack) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({program_of(server)}, {.programs_per_client = 1});
  FakeClient client(*proxy.server, FakeClient::Kind::session);
  client.initialize();
  proxy.run();
  for (int round = 0; round < 2; ++round) {
    server.links.front()->die();
    proxy.run();
    const auto call = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    EXPECT_THAT(client.result_of(call), HasSubstr("behind tool")) << round;
  }
  server.links.front()->die();
  proxy.run();
  server.absent = true;
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  server.absent = false;
  proxy.advance(std::chrono::seconds(31));
  const auto call = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(call), HasSubstr("behind tool"));
}

TEST(UpstreamProgramsTest, AConnectionKeepsOneForEachClientThatItsRequestsNameAndRefusesTooMany) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({program_of(server)});
  FakeClient client(*proxy.server, FakeClient::Kind::connection);
  const auto call_as = [&](std::size_t number) {
    client.name = "client " + std::to_string(number);
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return client.result_of(id);
  };
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < Proxy::kMaxClientsOfConnection; ++i) {
      EXPECT_THAT(call_as(i), HasSubstr("behind tool"));
    }
    EXPECT_THAT(call_as(Proxy::kMaxClientsOfConnection), HasSubstr("have named 8 clients"));
  }
  EXPECT_EQ(server.opened, Proxy::kMaxClientsOfConnection);
}

TEST(UpstreamProgramsTest, OtherServersAndASharedProgramAreNotCounted) {
  FakeServer server("behind", false);
  answer_calls(server);
  for (const bool is_shared : {false, true}) {
    FakeProxy proxy({is_shared ? program_of(server) : server.upstream()},
                    {.programs_per_client = 1, .has_one_session = is_shared});
    FakeClient one(*proxy.server, FakeClient::Kind::session);
    FakeClient two(*proxy.server, FakeClient::Kind::session);
    one.initialize();
    const auto begun = two.initialize();
    proxy.run();
    EXPECT_THAT(two.result_of(begun), HasSubstr("serverInfo")) << is_shared;
  }
}

}  // namespace
}  // namespace sluice
