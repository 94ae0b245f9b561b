// Three clients and two servers whose messages and faults come from a seed. Each call has a secret,
// which everything that belongs to it repeats. No client may see the secret of another, no call
// that of another call, and every call that is not cancelled is answered. A failure names its seed:
// SLUICE_PROXY_FIRST and SLUICE_PROXY_SEEDS repeat it.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

#ifdef SLUICE_SANITIZED
constexpr std::size_t kUsualSeeds = 200;  // each takes ten times as long
#else
constexpr std::size_t kUsualSeeds = 1000;
#endif
constexpr int kSteps = 60;

std::size_t number_from(const char* variable, std::size_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::stoul(text);
}

/// "<client.call>", found anywhere in a text.
std::set<std::string> secrets_in(const std::string& text) {
  std::set<std::string> found;
  for (auto at = text.find("<c"); at != std::string::npos; at = text.find("<c", at + 1)) {
    found.insert(text.substr(at, text.find('>', at) - at + 1));
  }
  return found;
}
std::string owner_of(const std::string& secret) {
  return secret.substr(0, secret.find('.') + 1);
}

json::object question_with(const std::string& secret) {
  return {
      {"message", secret},
      {"requestedSchema", {{"type", "object"}, {"properties", {{"said", {{"type", "string"}}}}}}}};
}

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : dice_(seed) {
    servers_[1].modern = true;
    for (FakeServer& server : servers_) {
      server.on_message = [this, &server](FakeLink& link, const json::object& message) {
        take(server, link, message);
      };
    }
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].name = "c" + std::to_string(i);
      clients_[i].on_heard = [this, i](const json::object& message) { hear(i, message); };
    }
    clients_[0].initialize();
    run();
  }

  void play() {
    for (int step = 0; step < kSteps; ++step) {
      const std::size_t what = below(10);
      if (what < 3) {
        call(below(clients_.size()));
      } else if (what < 8) {
        serve(below(4) == 0);
      } else if (what == 8) {
        cancel();
      } else {
        proxy_.advance(std::chrono::milliseconds(below(3000)));
      }
      // Sometimes several things happen in one turn.
      if (below(3) != 0) run();
    }
    finish();
  }

 private:
  struct Pending {
    FakeServer* server;
    std::size_t link;
    json::object request;
    std::string secret;
  };
  struct Call {
    std::size_t client;
    std::string secret;
    std::string tool;
    bool is_cancelled = false;
  };

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(dice_() % limit); }
  void run() { proxy_.run(); }

  // --- clients ---

  void call(std::size_t client) {
    const std::string secret =
        "<c" + std::to_string(client) + "." + std::to_string(++last_secret_) + ">";
    const std::string tool = below(2) == 0 ? "red_tool" : "blue_tool";
    const auto id = clients_[client].request("tools/call",
                                             {{"name", tool}, {"arguments", {{"secret", secret}}}},
                                             {{"io.modelcontextprotocol/logLevel", "debug"}});
    calls_[{client, id}] = {client, secret, tool};
  }
  void cancel() {
    if (calls_.empty()) return;
    auto chosen = std::next(calls_.begin(), static_cast<std::ptrdiff_t>(below(calls_.size())));
    chosen->second.is_cancelled = true;
    clients_[chosen->first.first].cancel(chosen->first.second);
  }
  void hear(std::size_t client, const json::object& message) {
    const std::string text = to_json(message);
    const std::string own = "<c" + std::to_string(client) + ".";
    for (const std::string& secret : secrets_in(text)) {
      EXPECT_EQ(owner_of(secret), own) << "client " << client << " hears " << text;
    }
    const std::string_view method = text_at(message, "method");
    if (method == "notifications/progress") {
      const auto id = message.at("params").at("progressToken").as_int64();
      expect_only(client, id, text);
    } else if (method == "elicitation/create") {
      answer_later(client, {{"jsonrpc", "2.0"},
                            {"id", message.at("id")},
                            {"result", accepted(message.at("params").as_object())}});
    } else if (method.empty() && message.contains("result")) {
      const auto id = message.at("id").as_int64();
      const json::object& result = message.at("result").as_object();
      if (!calls_.contains({client, id})) return;  // that of initialize
      // Where a question does not say which call it belongs to, another of the client may ask it.
      if (text_at(result, "resultType") == "input_required") return go_on_later(client, id, result);
      expect_only(client, id, text);
    }
  }
  void expect_only(std::size_t client, std::int64_t id, const std::string& text) {
    const auto found = calls_.find({client, id});
    ASSERT_NE(found, calls_.end()) << text;
    for (const std::string& secret : secrets_in(text)) {
      EXPECT_EQ(secret, found->second.secret) << text;
    }
  }
  static json::object accepted(const json::object& params) {
    return {{"action", "accept"}, {"content", {{"said", params.at("message")}}}};
  }
  void answer_later(std::size_t client, json::object message) {
    proxy_.server->loop().post([this, client, message = std::move(message)] {
      if (!secrets_in(to_json(message)).empty()) clients_[client].send(message);
    });
  }
  void go_on_later(std::size_t client, std::int64_t id, const json::object& result) {
    const Call call = calls_.at({client, id});
    json::object responses;
    for (const auto& [key, input] : result.at("inputRequests").as_object()) {
      responses[key] = accepted(input.at("params").as_object());
    }
    json::object params{{"name", call.tool},
                        {"arguments", {{"secret", call.secret}}},
                        {"requestState", result.at("requestState")},
                        {"inputResponses", std::move(responses)}};
    proxy_.server->loop().post([this, client, call, params = std::move(params)]() mutable {
      const auto next = clients_[client].request("tools/call", std::move(params),
                                                 {{"io.modelcontextprotocol/logLevel", "debug"}});
      calls_[{client, next}] = call;
    });
  }

  // --- servers ---

  void take(FakeServer& server, FakeLink& link, const json::object& message) {
    const std::string text = to_json(message);
    const std::string_view method = text_at(message, "method");
    std::set<std::string> secrets = secrets_in(text);
    auto& seen = seen_[{server.name, link.number()}];
    seen.insert(secrets.begin(), secrets.end());
    if (!server.modern) {
      for (const std::string& each : seen) {
        EXPECT_EQ(owner_of(each), owner_of(*seen.begin())) << "one session has two clients";
        // The third client is one that others may share an address with.
        EXPECT_TRUE(owner_of(each) != "<c2." || each == *seen.begin()) << text;
      }
    }
    if (method == "tools/call") {
      if (!server.modern && forgets_ && below(2) == 0) {
        forgets_ = false;
        return link.forget_session(to_json(message.at("id")));
      }
      ASSERT_EQ(secrets.size(), 1U) << text;
      pending_.push_back({&server, link.number(), message, *secrets.begin()});
    } else if (method == "notifications/cancelled") {
      // Half of the servers answer nevertheless.
      if (below(2) == 0) drop(server, link.number(), message.at("params").at("requestId"));
    } else if (method.empty()) {
      const auto asked = questions_.find(to_json(message.at("id")));
      ASSERT_NE(asked, questions_.end()) << text;
      for (const std::string& each : secrets) EXPECT_EQ(each, asked->second) << text;
    } else if (message.contains("id")) {
      server.answer(link, message, json::object());
    }
  }
  void drop(const FakeServer& server, std::size_t link, const json::value& id) {
    std::erase_if(pending_, [&](const Pending& each) {
      return each.server == &server && each.link == link && each.request.at("id") == id;
    });
  }
  FakeLink* link_of(const Pending& pending) {
    for (FakeLink* const each : pending.server->links) {
      if (each->number() == pending.link) return each;
    }
    return nullptr;
  }
  /// Does something about one of the requests that are open.
  void serve(bool with_fault) {
    if (pending_.empty()) return;
    const std::size_t index = below(pending_.size());
    const Pending pending = pending_[index];
    FakeLink* const link = link_of(pending);
    if (link == nullptr) {
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
      return;
    }
    if (with_fault) return misbehave(pending, *link);
    FakeServer& server = *pending.server;
    switch (below(4)) {
      case 0:
        return server.post(
            *link,
            {{"jsonrpc", "2.0"},
             {"method", "notifications/progress"},
             {"params",
              {{"progressToken", pending.request.at("params").at("_meta").at("progressToken")},
               {"progress", ++last_progress_},
               {"message", pending.secret}}}});
      case 1:
        return server.post(*link, {{"jsonrpc", "2.0"},
                                   {"method", "notifications/message"},
                                   {"params", {{"level", "info"}, {"data", pending.secret}}}});
      case 2:
        return ask(pending, *link, index);
      default:
        answer(pending, *link);
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  void answer(const Pending& pending, FakeLink& link) {
    pending.server->answer(
        link, pending.request,
        {{"resultType", "complete"}, {"content", {{{"type", "text"}, {"text", pending.secret}}}}});
  }
  void ask(const Pending& pending, FakeLink& link, std::size_t index) {
    if (pending.server->modern) {
      pending.server->answer(
          link, pending.request,
          {{"resultType", "input_required"},
           {"requestState", pending.secret},
           {"inputRequests",
            {{"k",
              {{"method", "elicitation/create"}, {"params", question_with(pending.secret)}}}}}});
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
      return;
    }
    const std::string id = "q" + std::to_string(++last_question_);
    questions_["\"" + id + "\""] = pending.secret;
    pending.server->post(link, {{"jsonrpc", "2.0"},
                                {"id", id},
                                {"method", "elicitation/create"},
                                {"params", question_with(pending.secret)}});
  }
  void misbehave(const Pending& pending, FakeLink& link) {
    json::object wrong = pending.request;
    switch (below(5)) {
      case 0:
        return link.die();
      case 1:  // answers what nobody has asked
        wrong["id"] = 100000 + static_cast<std::int64_t>(below(1000));
        return answer({pending.server, pending.link, wrong, pending.secret}, link);
      case 2:  // answers twice
        answer(pending, link);
        return answer(pending, link);
      case 3:
        forgets_ = true;
        return;
      default:  // says what is no message
        return link.say({{"secret", pending.secret}});
    }
  }

  /// Lets everything end, and looks whether it has.
  void finish() {
    for (int round = 0; round < 200; ++round) {
      run();
      for (const Pending& pending : std::exchange(pending_, {})) {
        if (FakeLink* const link = link_of(pending)) answer(pending, *link);
      }
      run();
      if (pending_.empty()) break;
    }
    // Servers that hang are given up.
    proxy_.advance(10min);
    for (const auto& [key, call] : calls_) {
      if (call.is_cancelled) continue;
      EXPECT_NE(clients_[key.first].answer_to(key.second), nullptr)
          << "client " << key.first << " has no answer to " << key.second << " " << call.secret;
    }
    bool is_closed = false;
    proxy_.proxy->close([&is_closed] { is_closed = true; });
    run();
    EXPECT_TRUE(is_closed);
  }

  std::mt19937_64 dice_;
  std::array<FakeServer, 2> servers_{{{"red", false}, {"blue", true}}};
  FakeProxy proxy_{{servers_[0].upstream(true), servers_[1].upstream(true)}};
  std::array<FakeClient, 3> clients_{
      {{*proxy_.server, FakeClient::Kind::session, {.id = "alice"}},
       {*proxy_.server, FakeClient::Kind::connection, {.id = "bob"}},
       {*proxy_.server, FakeClient::Kind::request, {.id = "10.0.0.1", .isolated = false}}}};
  std::map<std::pair<std::size_t, std::int64_t>, Call> calls_;
  std::vector<Pending> pending_;
  std::map<std::pair<std::string, std::size_t>, std::set<std::string>> seen_;
  std::map<std::string, std::string> questions_;
  bool forgets_ = false;
  std::uint64_t last_secret_ = 0;
  std::uint64_t last_question_ = 0;
  std::uint64_t last_progress_ = 0;
};

TEST(ProxySimulationTest, NoMessageReachesTheWrongParty) {
  const std::size_t first = number_from("SLUICE_PROXY_FIRST", 1);
  const std::size_t seeds = number_from("SLUICE_PROXY_SEEDS", kUsualSeeds);
  for (std::size_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation(seed).play();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
