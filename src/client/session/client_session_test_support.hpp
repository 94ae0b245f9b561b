#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/session/client_session.hpp"
#include "core/manual_executor.hpp"

namespace sluice::test {

/// A link whose other end is the test.
struct Wire {
  ServerLink::Owner* owner = nullptr;
  std::deque<OutgoingMessage> sent;
  std::vector<RequestId> dropped;
  std::set<RequestId> paused;
  bool drops_by_transport = false;
  bool carries_headers = false;
  bool shares_connection = false;
  bool tells_connected = false;
  bool can_reopen = true;
  int reopened = 0;
  std::optional<Error> full;
};
class FakeLink final : public ServerLink {
 public:
  explicit FakeLink(Wire& wire) : wire_(&wire) {}
  void open(Owner& owner) override { wire_->owner = &owner; }
  Result<void> send(OutgoingMessage message) override {
    if (wire_->full) return std::unexpected(*wire_->full);
    wire_->sent.push_back(std::move(message));
    return {};
  }
  bool drop(const RequestId& id) override {
    wire_->dropped.push_back(id);
    return wire_->drops_by_transport;
  }
  void pause(const RequestId& id, bool is_paused) override {
    if (is_paused) {
      wire_->paused.insert(id);
    } else {
      wire_->paused.erase(id);
    }
  }
  [[nodiscard]] bool carries_headers() const override { return wire_->carries_headers; }
  [[nodiscard]] bool tells_connected() const override { return wire_->tells_connected; }
  [[nodiscard]] bool shares_connection() const override { return wire_->shares_connection; }
  bool reopen() override {
    if (wire_->can_reopen) ++wire_->reopened;
    return wire_->can_reopen;
  }

 private:
  Wire* wire_;
};

/// A session, and the test as its server.
class ClientSessionTest : public ::testing::Test {
 protected:
  void open() {
    wire.sent.clear();  // by a session before
    options.info = {.name = "test", .version = "1"};
    options.capabilities = {{"elicitation", {{"form", json::object()}}}, {"roots", json::object()}};
    options.on_question = [this](ServerQuestion question) {
      asked.push_back(std::move(question));
      if (when_asked) when_asked();
    };
    options.on_withdrawn = [this](std::uint64_t number) { withdrawn.push_back(number); };
    options.on_notification = [this](std::string_view method, const json::object&) {
      notified.emplace_back(method);
    };
    options.on_lost = [this](const Error& why) { lost.push_back(why.message); };
    session = std::make_shared<ClientSession>(loop, std::make_unique<FakeLink>(wire), options);
    session->connect([this](Result<ServerDescription> outcome) { connected = std::move(outcome); });
    loop.run();
  }
  void open_modern() {
    open();
    reply(R"("result":{"supportedVersions":["2026-07-28"],"capabilities":{}})");
    ASSERT_TRUE(connected && *connected);
  }
  void open_legacy() {
    options.revision = "2025-11-25";
    open();
    reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
    ASSERT_TRUE(connected && *connected);
    EXPECT_EQ(take(), R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  }
  /// The next message that was sent.
  std::string take() {
    if (wire.sent.empty()) return "nothing";
    last = std::move(wire.sent.front());
    wire.sent.pop_front();
    return last.text;
  }
  void receive(const std::string& message) {
    wire.owner->on_message(message);
    loop.run();
  }
  /// Takes the next request and answers it.
  void reply(const std::string& outcome) {
    take();
    ASSERT_FALSE(last.id.empty()) << last.text;
    receive(R"({"jsonrpc":"2.0","id":)" + last.id + "," + outcome + "}");
  }
  ClientSession::Number call(const RequestOptions& with = {}) {
    return session->begin("tools/call", {{"name", "tool"}}, with,
                          {.on_progress =
                               [this](const json::object& params) {
                                 said.push_back("progress " + to_json(params.at("progress")));
                               },
                           .on_answer =
                               [this](Result<json::object> answer) {
                                 said.push_back(answer ? to_json(*answer)
                                                       : std::to_string(answer.error().code) + " " +
                                                             answer.error().message);
                               }});
  }

  ManualExecutor loop;
  Wire wire;
  ClientSessionOptions options;
  std::shared_ptr<ClientSession> session;
  OutgoingMessage last;
  std::optional<Result<ServerDescription>> connected;
  std::vector<std::string> said;  // of calls
  std::vector<ServerQuestion> asked;
  std::function<void()> when_asked;
  std::vector<std::uint64_t> withdrawn;
  std::vector<std::string> notified;
  std::vector<std::string> lost;
};

}  // namespace sluice::test
