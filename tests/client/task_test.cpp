#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/client.hpp"
#include "ways.hpp"

namespace sluice::client_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientTaskTest : public ::testing::TestWithParam<WayAndRevision> {
 protected:
  Client connect(ClientOptions options = {}) {
    options.revision = std::get<1>(GetParam());
    return served.connect(std::get<0>(GetParam()), std::move(options));
  }
  [[nodiscard]] bool has_tasks() const { return std::get<0>(GetParam()) != Way::sse; }
  [[nodiscard]] bool is_legacy() const { return !std::get<1>(GetParam()).empty(); }
  Served served;
};

/// Where calls become tasks: 2024-11-05 has none.
class ClientRealTaskTest : public ClientTaskTest {};
/// Where tasks outlive the connection of their client: a child or a local server ends with it.
class ClientLastingTaskTest : public ClientTaskTest {};

INSTANTIATE_TEST_SUITE_P(All, ClientTaskTest, ::testing::ValuesIn(ways()), name_of_way);
INSTANTIATE_TEST_SUITE_P(All, ClientRealTaskTest, ::testing::ValuesIn(ways({Way::sse})),
                         name_of_way);
INSTANTIATE_TEST_SUITE_P(All, ClientLastingTaskTest,
                         ::testing::ValuesIn(ways({Way::sse, Way::child, Way::local})),
                         name_of_way);

TEST_P(ClientTaskTest, GoesOnAfterItsCall) {
  Client client = connect();
  const auto task = client.start<Total>("count", {{"to", 3}}, {}, 1min).result();
  EXPECT_EQ(task.id().empty(), !has_tasks());
  if (!has_tasks()) return;
  auto waiting = task.wait();
  std::vector<std::string> states;
  while (const auto event = waiting.next()) {
    if (event->params.contains("status"))
      states.emplace_back(event->params.at("status").as_string());
  }
  EXPECT_THAT(states, Contains("completed"));
  EXPECT_EQ(waiting.result().sum, 6);
  const TaskDescription state = task.state();
  EXPECT_EQ(state.id, task.id());
  EXPECT_TRUE(state.has_ended());
}

TEST_P(ClientTaskTest, AServerWithoutTasksAnswersAtOnce) {
  Client client = connect();
  // Nor does a server make tasks of tools that cannot be one; a legacy one refuses to.
  if (has_tasks() && is_legacy()) {
    try {
      client.start("add", {{"a", 1}, {"b", 1}}).result();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, -32601);
    }
    return;
  }
  const auto task = client.start("add", {{"a", 1}, {"b", 1}}).result();
  EXPECT_EQ(task.id(), "");
  EXPECT_THAT(task.wait().result().text(), HasSubstr("2"));
  EXPECT_THAT(task.wait().result().text(), HasSubstr("2"));
  EXPECT_THROW(task.cancel(), Error);
}

TEST_P(ClientLastingTaskTest, IsTakenUpAgainByItsId) {
  std::string asked;
  const ClientOptions options{
      .on_elicitation = [&asked](const json::object& params) -> json::object {
        asked = params.at("message").as_string();
        return {{"action", "accept"}, {"content", {{"name", "Mira"}}}};
      }};
  std::string id;
  {
    Client client = connect(options);
    id = client.start("greet").result().id();
  }
  EXPECT_EQ(asked, "");
  Client client = connect(options);
  EXPECT_EQ(client.task(id).wait().result().text(), "Hello Mira");
  EXPECT_EQ(asked, "Who are you?");
  EXPECT_THROW(client.task("unknown").wait().result(), Error);
}

TEST_P(ClientRealTaskTest, FailsAsTheCallWouldHave) {
  Client client = connect();
  const ToolReply reply = client.start("fail").result().wait().result();
  EXPECT_TRUE(reply.is_error());
  EXPECT_EQ(reply.text(), "out of paper");
}

TEST_P(ClientRealTaskTest, EndsWhenItIsCancelledNotWhenItIsDropped) {
  Client client = connect();
  const auto task = client.start("hang").result();
  {
    auto dropped = task.wait();
  }
  EXPECT_EQ(task.state().status, "working");
  auto waiting = task.wait();
  task.cancel();
  try {
    waiting.result();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, kCancelled);
  }
  EXPECT_EQ(task.state().status, "cancelled");
}

TEST_P(ClientRealTaskTest, AreListedWhereThereIsAList) {
  Client client = connect();
  const auto task = client.start("hang").result();
  const bool has_list =
      is_legacy() && client.about().at("capabilities").at("tasks").as_object().contains("list");
  if (has_list) {
    std::vector<std::string> ids;
    for (const TaskDescription& each : client.tasks()) ids.push_back(each.id);
    EXPECT_THAT(ids, ElementsAre(task.id()));
  } else {
    EXPECT_THROW(client.tasks(), Error);
  }
  task.cancel();
}

}  // namespace
}  // namespace sluice::client_tests
