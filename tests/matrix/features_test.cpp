// Tests each feature over each transport in each revision. If a revision lacks a feature according
// to the table of revisions, the test expects that it is missing.

#include <array>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "client.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/revision.hpp"
#include "rpc/error_codes.hpp"
#include "served.hpp"

namespace sluice::matrix {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A cell of the matrix: its own server, and the client that talks to it.
struct Cell {
  Served& served;
  const Transport& transport;
  const Revision& revision;
  Client& client;
};

std::string text_of(const json::object& result, std::size_t index = 0) {
  return std::string(result.at("content").at(index).at("text").as_string());
}

/// Checks the members that every result has, and those that results of list methods have.
void expect_form(const Revision& revision, const json::object& result, bool is_list) {
  EXPECT_EQ(result.contains("resultType"), revision.result_type);
  EXPECT_EQ(result.contains("ttlMs"), is_list && revision.cache_hints);
  EXPECT_EQ(result.contains("cacheScope"), is_list && revision.cache_hints);
  const json::value* const meta = result.if_contains("_meta");
  EXPECT_EQ(meta != nullptr && meta->as_object().contains("io.modelcontextprotocol/serverInfo"),
            revision.server_info_in_meta);
}

void negotiation(const Cell& cell) {
  json::object agreed = cell.client.agreed();
  if (cell.client.modern()) {
    agreed = cell.client.result("server/discover");
    EXPECT_THAT(to_json(agreed.at("supportedVersions")), HasSubstr(cell.revision.name));
  } else {
    EXPECT_EQ(agreed.at("protocolVersion").as_string(), cell.revision.name);
    EXPECT_EQ(agreed.at("serverInfo").at("name"), "matrix");
  }
  EXPECT_EQ(agreed.at("instructions"), "Be kind");
  const json::object& can = agreed.at("capabilities").as_object();
  for (const std::string_view capability : {"tools", "resources", "prompts", "logging"}) {
    EXPECT_TRUE(can.contains(capability)) << capability;
  }
  EXPECT_EQ(can.contains("completions"), cell.revision.completions);
  EXPECT_EQ(can.contains("tasks"), cell.revision.tasks == TaskModel::requested);
}

void ping(const Cell& cell) {
  EXPECT_EQ(cell.client.error("ping"), cell.client.has("PingRequest") ? 0 : kMethodNotFound);
}

void unknown_method(const Cell& cell) {
  EXPECT_EQ(cell.client.error("no/such/method"), kMethodNotFound);
  EXPECT_EQ(cell.client.error("tools/call", {{"name", "no such tool"}}), kInvalidParams);
}

void tools(const Cell& cell) {
  const json::object listed = cell.client.result("tools/list");
  expect_form(cell.revision, listed, true);
  EXPECT_EQ(listed, cell.client.result("tools/list")) << "lists have an order";
  const json::object& add = listed.at("tools").at(0).as_object();
  EXPECT_EQ(add.at("name"), "add");
  EXPECT_EQ(add.contains("title"), cell.revision.titles);
  EXPECT_EQ(add.contains("icons"), cell.revision.icons);
  EXPECT_EQ(add.contains("annotations"), cell.revision.tool_annotations);
  EXPECT_EQ(add.contains("outputSchema"), cell.revision.structured_output);
}

void calls(const Cell& cell) {
  const json::object sum = cell.client.call("add", {{"a", 2}, {"b", 3}});
  expect_form(cell.revision, sum, false);
  EXPECT_EQ(text_of(sum), R"({"sum":5})");
  EXPECT_EQ(sum.contains("structuredContent"), cell.revision.structured_output);
  const json::object failed = cell.client.call("fail");
  EXPECT_EQ(failed.at("isError"), true);
  EXPECT_EQ(text_of(failed), "It broke");
  EXPECT_EQ(cell.client.error("tools/call", {{"name", "refuse"}}), 42);
}

void arguments(const Cell& cell) {
  const json::object call{{"name", "add"}, {"arguments", {{"a", "two"}, {"b", 3}}}};
  if (cell.revision.input_errors) {
    const json::object refused = cell.client.result("tools/call", call);
    EXPECT_EQ(refused.at("isError"), true);
    EXPECT_THAT(text_of(refused), HasSubstr("arguments.a"));
  } else {
    EXPECT_EQ(cell.client.error("tools/call", call), kInvalidParams);
  }
}

void contents(const Cell& cell) {
  const json::object result = cell.client.call("contents");
  const auto type = [&](std::size_t index) {
    return std::string(result.at("content").at(index).at("type").as_string());
  };
  EXPECT_EQ(type(0), "text");
  EXPECT_EQ(type(1), "image");
  EXPECT_EQ(type(2), cell.revision.audio ? "audio" : "text");
  EXPECT_EQ(type(3), cell.revision.resource_links ? "resource_link" : "text");
  EXPECT_EQ(type(4), "resource");
}

void progress(const Cell& cell) {
  const json::object result =
      cell.client.result("tools/call", {{"name", "count"}, {"_meta", {{"progressToken", "t"}}}});
  EXPECT_EQ(text_of(result), R"({"sum":3})");
  std::string told;
  double last = 0;
  while (cell.client.waiting("notifications/progress") > 0) {
    const json::object step = cell.client.notification("notifications/progress");
    EXPECT_EQ(step.at("progressToken"), "t");
    EXPECT_GT(step.at("progress").to_number<double>(), last);
    last = step.at("progress").to_number<double>();
    EXPECT_EQ(step.contains("message"), cell.revision.progress_message);
    if (const json::value* const message = step.if_contains("message")) {
      told += message->as_string();
    }
  }
  EXPECT_GT(last, 0);
  EXPECT_EQ(told, cell.revision.progress_message ? "one two " : "");
}

void logging(const Cell& cell) {
  json::object call{{"name", "log"}};
  if (cell.client.modern()) {
    call["_meta"] = {{"io.modelcontextprotocol/logLevel", "info"}};
  } else {
    EXPECT_EQ(cell.client.error("logging/setLevel", {{"level", "info"}}), 0);
  }
  cell.client.result("tools/call", call);
  // Without a session the log level is not remembered, so no messages are sent.
  if (!cell.client.modern() && !cell.transport.sessions) {
    EXPECT_EQ(cell.client.waiting("notifications/message"), 0U);
    return;
  }
  const json::object message = cell.client.notification("notifications/message");
  EXPECT_EQ(message.at("level"), "warning");
  EXPECT_EQ(message.at("logger"), "matrix");
  EXPECT_EQ(message.at("data"), "trouble");
  EXPECT_EQ(cell.client.waiting("notifications/message"), 0U);
}

void cancellation(const Cell& cell) {
  const std::int64_t id =
      cell.client.begin("tools/call", {{"name", "wait"}, {"_meta", {{"progressToken", 1}}}});
  cell.client.notification("notifications/progress");
  cell.client.cancel(id);
  cell.served.await_cancellation();
}

void resources(const Cell& cell) {
  std::set<std::string> uris;
  json::object page;
  int pages = 0;
  do {
    json::object params;
    if (page.contains("nextCursor")) params["cursor"] = page.at("nextCursor");
    page = cell.client.result("resources/list", params);
    expect_form(cell.revision, page, true);
    ++pages;
    for (const json::value& each : page.at("resources").as_array()) {
      uris.emplace(each.at("uri").as_string());
    }
  } while (page.contains("nextCursor"));
  EXPECT_TRUE(uris.contains("test://text") && uris.contains("test://bytes"));
  EXPECT_EQ(pages, (static_cast<int>(uris.size()) + Served::kPage - 1) / Served::kPage);
  EXPECT_EQ(cell.client.error("resources/list", {{"cursor", "forged"}}), kInvalidParams);

  const auto read = [&](std::string_view uri) {
    return cell.client.result("resources/read", {{"uri", uri}}).at("contents").at(0).as_object();
  };
  EXPECT_EQ(read("test://text").at("text"), "hello");
  EXPECT_EQ(read("test://bytes").at("blob"), "AAH/");
  EXPECT_EQ(read("test://item/7").at("text"), "item 7");
  EXPECT_EQ(cell.client.error("resources/read", {{"uri", "test://nothing"}}),
            cell.revision.unknown_resource);
  const json::object templates = cell.client.result("resources/templates/list");
  EXPECT_EQ(templates.at("resourceTemplates").at(0).at("uriTemplate"), "test://item/{id}");
}

void prompts(const Cell& cell) {
  const json::object listed = cell.client.result("prompts/list");
  expect_form(cell.revision, listed, true);
  EXPECT_EQ(listed.at("prompts").at(0).at("arguments").at(0).at("required"), true);
  const json::object got =
      cell.client.result("prompts/get", {{"name", "explain"}, {"arguments", {{"topic", "tides"}}}});
  EXPECT_EQ(got.at("messages").at(0).at("content").at("text"), "Explain tides plainly");
  EXPECT_EQ(cell.client.error("prompts/get", {{"name", "explain"}}), kInvalidParams);
  EXPECT_EQ(cell.client.error("prompts/get", {{"name", "nothing"}}), kInvalidParams);
}

void completion(const Cell& cell) {
  const auto complete = [&](const json::object& ref, std::string_view argument) {
    return to_json(cell.client
                       .result("completion/complete",
                               {{"ref", ref}, {"argument", {{"name", argument}, {"value", "x"}}}})
                       .at("completion")
                       .at("values"));
  };
  EXPECT_EQ(complete({{"type", "ref/prompt"}, {"name", "explain"}}, "style"),
            R"(["xfully","xbriefly"])");
  EXPECT_EQ(complete({{"type", "ref/resource"}, {"uri", "test://item/{id}"}}, "id"),
            R"(["x1","x2"])");
}

void questions(const Cell& cell) {
  if (!cell.client.can_be_asked()) {
    for (const std::string_view tool : {"elicit", "sample", "roots"}) {
      EXPECT_EQ(cell.client.error("tools/call", {{"name", tool}}), kInvalidRequest) << tool;
    }
    return;
  }
  if (cell.client.has("ElicitRequest")) {
    EXPECT_EQ(text_of(cell.client.call("elicit")), "Hello, Ada and Ada");
  }
  EXPECT_EQ(text_of(cell.client.call("sample")), "something");
  EXPECT_EQ(text_of(cell.client.call("roots")), "file:///home");
}

void undeclared_questions(const Cell& cell) {
  const auto client = Client::connect(cell.served, cell.transport, cell.revision, false);
  Client& silent = *client;
  for (const std::string_view tool : {"elicit", "sample", "roots"}) {
    EXPECT_EQ(silent.error("tools/call", {{"name", tool}}),
              silent.modern() ? kMissingClientCapability : kInvalidRequest)
        << tool;
  }
}

/// Begins a task that asks a question, in a revision where the client requests tasks.
std::string request_task(const Cell& cell) {
  const json::object created =
      cell.client.result("tools/call", {{"name", "job"}, {"task", {{"ttl", 60'000}}}});
  return std::string(created.at("task").at("taskId").as_string());
}

/// The task fails if its client cannot be asked.
void mute_task(const Cell& cell) {
  EXPECT_EQ(cell.client.error("tasks/result", {{"taskId", request_task(cell)}}), kInvalidRequest);
}

void requested_task(const Cell& cell) {
  const std::string id = request_task(cell);
  const json::object result = cell.client.result("tasks/result", {{"taskId", id}});
  EXPECT_EQ(text_of(result), "Done for Ada");
  EXPECT_EQ(cell.client.result("tasks/get", {{"taskId", id}}).at("status"), "completed");
  EXPECT_THAT(to_json(cell.client.result("tasks/list")), HasSubstr(id));
}

/// A task that asks a question, in a revision where the server decides on tasks (SEP-2663).
void extension_task(const Cell& cell) {
  const json::object created = cell.client.result("tools/call", {{"name", "job"}});
  EXPECT_EQ(created.at("resultType"), "task");
  const json::value id = created.at("taskId");
  const auto when = [&](std::string_view status) {
    json::object task;
    do {
      task = cell.client.result("tasks/get", {{"taskId", id}});
    } while (task.at("status").as_string() != status);
    return task;
  };
  const json::object asking = when("input_required");
  json::object answers;
  for (const auto& [key, question] : asking.at("inputRequests").as_object()) {
    answers[key] = Client::answer(question.at("method").as_string());
  }
  cell.client.result("tasks/update", {{"taskId", id}, {"inputResponses", answers}});
  EXPECT_EQ(text_of(when("completed").at("result").as_object()), "Done for Ada");
}

void tasks(const Cell& cell) {
  if (cell.revision.tasks == TaskModel::none) {
    EXPECT_EQ(cell.client.error("tasks/get", {{"taskId", "a"}}), kMethodNotFound);
  } else if (cell.revision.tasks == TaskModel::extension) {
    extension_task(cell);
  } else if (cell.client.can_be_asked()) {
    requested_task(cell);
  } else {
    mute_task(cell);
  }
}

void changes(const Cell& cell) {
  if (cell.client.modern()) {
    cell.client.begin("subscriptions/listen", {{"notifications",
                                                {{"toolsListChanged", true},
                                                 {"promptsListChanged", true},
                                                 {"resourcesListChanged", true},
                                                 {"resourceSubscriptions", {"test://text"}}}}});
    cell.client.notification("notifications/subscriptions/acknowledged");
  } else if (cell.transport.sessions) {
    cell.client.result("resources/subscribe", {{"uri", "test://text"}});
  } else {
    EXPECT_EQ(cell.client.error("resources/subscribe", {{"uri", "test://text"}}), kInvalidRequest);
    return;
  }
  const Server& server = cell.served.server();
  server.resource_updated("test://bytes");  // nobody has subscribed to this one
  server.resource_updated("test://text");
  server.tools_changed();
  server.prompts_changed();
  server.resources_changed();
  EXPECT_EQ(cell.client.notification("notifications/resources/updated").at("uri"), "test://text");
  cell.client.notification("notifications/tools/list_changed");
  cell.client.notification("notifications/prompts/list_changed");
  cell.client.notification("notifications/resources/list_changed");
  EXPECT_EQ(cell.client.waiting("notifications/resources/updated"), 0U);
}

/// A tool that is added while the server runs can be called, and one that is removed cannot.
void changes_of_tools(const Cell& cell) {
  if (cell.client.modern()) {
    cell.client.begin("subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
    cell.client.notification("notifications/subscriptions/acknowledged");
  }
  const auto told = [&] { cell.client.notification("notifications/tools/list_changed"); };
  const std::int64_t id =
      cell.client.begin("tools/call", {{"name", "wait"}, {"_meta", {{"progressToken", 1}}}});
  cell.client.notification("notifications/progress");
  Server& server = cell.served.server();
  server.tool("late", "Comes later", [] { return "here"; });
  told();
  EXPECT_EQ(text_of(cell.client.call("late")), "here");
  server.tool("late", "Comes later", [] { return "another"; });
  told();
  EXPECT_EQ(text_of(cell.client.call("late")), "another");
  EXPECT_TRUE(server.remove_tool("late"));
  told();
  EXPECT_FALSE(server.remove_tool("late"));  // and no notification is sent
  EXPECT_EQ(cell.client.error("tools/call", {{"name", "late"}}), kInvalidParams);
  EXPECT_THROW(server.tool("broken", "", [](const json::object&) { return 1; },
                           {.input_schema = {{"type", 7}}}),
               std::invalid_argument);
  // Running calls continue with the tool they started with.
  EXPECT_TRUE(server.remove_tool("wait"));
  told();
  EXPECT_EQ(cell.client.waiting("notifications/tools/list_changed"), 0U);
  cell.client.cancel(id);
  cell.served.await_cancellation();
}

void trace(const Cell& cell) {
  const json::object traced = cell.client.result(
      "tools/call",
      {{"name", "trace"},
       {"_meta", {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}});
  EXPECT_EQ(text_of(traced), "0af7651916cd43dd8448eb211c80319c");
}

void skills(const Cell& cell) {
  const json::object listed = cell.client.result("skills/list");
  const json::value uri = listed.at("skills").at(0).at("uri");
  EXPECT_EQ(uri, "skill://acme/refunds/SKILL.md");
  const json::object read = cell.client.result("resources/read", {{"uri", uri}});
  EXPECT_THAT(std::string(read.at("contents").at(0).at("text").as_string()),
              HasSubstr("# Refunds"));
}

void streams(const Cell& cell) {
  json::object started = cell.client.result("run", {{"stream", true}});
  EXPECT_EQ(started.at("status"), "streaming_started");
  std::string said;
  json::object read;
  std::int64_t next = 0;
  do {
    read = cell.client.result(
        "run", {{"stream_id", started.at("stream_id")}, {"from_seq", next}, {"wait_ms", 10'000}});
    for (const json::value& chunk : read.at("chunks").as_array()) {
      EXPECT_EQ(chunk.at("seq").as_int64(), next++);
      said += chunk.at("delta").as_string();
    }
  } while (read.at("has_more").as_bool());
  EXPECT_EQ(said, "one two");
}

void batches(const Cell& cell) {
  const json::value asked = {{{"jsonrpc", "2.0"}, {"id", 101}, {"method", "tools/list"}},
                             {{"jsonrpc", "2.0"}, {"id", 102}, {"method", "prompts/list"}}};
  const json::value said = cell.client.exchange(asked);
  if (cell.revision.batches) {
    ASSERT_TRUE(said.is_array()) << to_json(said);
    EXPECT_EQ(said.get_array().size(), 2U);
  } else {
    EXPECT_EQ(said.at("error").at("code"), kInvalidRequest);
  }
}

/// Whether the server tells clients of changes without being asked for each.
bool tells_of_changes(const Transport& transport, const Revision& revision) {
  return revision.era == Era::modern || transport.sessions;
}
/// Whether the client can send what no revision has.
bool writes_its_own_messages(const Transport& transport, const Revision& /*revision*/) {
  return transport.connect != nullptr;
}

struct Feature {
  std::string_view name;
  void (*check)(const Cell& cell);
  /// Where there is something to check. Null: everywhere.
  bool (*applies)(const Transport& transport, const Revision& revision) = nullptr;
};
constexpr std::array<Feature, 22> kFeatures = {{
    {"Negotiation", negotiation},
    {"Ping", ping},
    {"UnknownMethod", unknown_method},
    {"Tools", tools},
    {"Calls", calls},
    {"Arguments", arguments},
    {"Contents", contents},
    {"Progress", progress},
    {"Logging", logging},
    {"Cancellation", cancellation},
    {"Resources", resources},
    {"Prompts", prompts},
    {"Completion", completion},
    {"Questions", questions},
    {"UndeclaredQuestions", undeclared_questions},
    {"Tasks", tasks},
    {"Changes", changes},
    {"ChangesOfTools", changes_of_tools, tells_of_changes},
    {"Trace", trace},
    {"Skills", skills},
    {"Streams", streams},
    {"Batches", batches, writes_its_own_messages},
}};

using Coordinates = std::tuple<std::size_t, std::size_t, Feature>;

class MatrixTest : public ::testing::TestWithParam<Coordinates> {};

void check(const Coordinates& coordinates, bool waits) {
  const auto& [revision, transport, feature] = coordinates;
  const Transport& by = transports()[transport];
  Served served(by.sessions, waits);
  const auto client = Client::connect(served, by, revisions()[revision]);
  feature.check({served, by, revisions()[revision], *client});
}

TEST_P(MatrixTest, Works) {
  check(GetParam(), false);
}

TEST_P(MatrixTest, WorksBehindAMiddlewareThatWaits) {
  check(GetParam(), true);
}

std::string name_of(const ::testing::TestParamInfo<Coordinates>& info) {
  const auto& [revision, transport, feature] = info.param;
  std::string name(revisions()[revision].name);
  std::ranges::replace(name, '-', '_');
  return name.append("_").append(transports()[transport].name).append("_").append(feature.name);
}

std::vector<Coordinates> cells() {
  std::vector<Coordinates> out;
  for (std::size_t revision = 0; revision < revisions().size(); ++revision) {
    for (std::size_t transport = 0; transport < transports().size(); ++transport) {
      for (const Feature& feature : kFeatures) {
        const bool applies = feature.applies == nullptr ||
                             feature.applies(transports()[transport], revisions()[revision]);
        if (applies) out.emplace_back(revision, transport, feature);
      }
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Matrix, MatrixTest, ::testing::ValuesIn(cells()), name_of);

}  // namespace
}  // namespace sluice::matrix
