#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/members.hpp"
#include "proxy/proxy.hpp"
#include "rpc/message.hpp"
#include "server/channel/framing.hpp"
#include "server/testing/in_memory_server.hpp"

namespace sluice {

// A proxy in memory: its server, clients in front of it, and servers behind it. All of them run on
// one loop, which a test moves by hand.

class FakeServer;

/// One connection to a FakeServer, as the proxy's session with it has it.
class FakeLink final : public ServerLink {
 public:
  FakeLink(FakeServer& server, std::size_t number) : server_(&server), number_(number) {}
  ~FakeLink() override;
  void open(Owner& owner) override { owner_ = &owner; }
  Result<void> send(OutgoingMessage message) override;
  bool drop(const RequestId& /*id*/) override { return false; }
  void pause(const RequestId& id, bool is_paused) override {
    if (is_paused) {
      paused.insert(id);
    } else {
      paused.erase(id);
    }
  }
  [[nodiscard]] bool shares_connection() const override;
  bool reopen() override { return true; }

  /// Sends the proxy a message now.
  void say(const json::object& message) {
    if (owner_ != nullptr) owner_->on_message(to_json(message));
  }
  /// The same in the reply to a request.
  void say_in_reply_to(const json::object& request, const json::object& message) {
    if (owner_ != nullptr) owner_->on_reply(to_json(request.at("id")), to_json(message));
  }
  /// As a transport that refuses the request in place of its server.
  void refuse(const json::object& request, int status) {
    if (owner_ == nullptr) return;
    owner_->on_unanswered(to_json(request.at("id")), {status, "Server not initialized", {}});
  }
  void die() {
    if (Owner* const owner = std::exchange(owner_, nullptr)) {
      owner->on_lost({kLostConnection, "it has died", {}});
    }
  }
  void begin_listening() {
    if (owner_ != nullptr) owner_->on_listening();
  }
  void forget_session(const RequestId& id) {
    if (owner_ != nullptr) owner_->on_session_over(id);
  }
  void close(std::function<void()> done) override {
    owner_ = nullptr;
    done();
  }
  [[nodiscard]] std::size_t number() const { return number_; }

  std::set<RequestId> paused;

 private:
  FakeServer* server_;
  std::size_t number_;
  Owner* owner_ = nullptr;
};

/// A server behind the proxy. It finishes handshakes by itself; the rest is for `on_message`.
class FakeServer {
 public:
  FakeServer(std::string called, bool is_modern) : name(std::move(called)), modern(is_modern) {}

  /// Of one server among several, or of the only one.
  [[nodiscard]] UpstreamOptions upstream(bool has_prefix = false) {
    return {.prefix = has_prefix ? name : "",
            .label = name,
            .open_link = [this](Executor& executor) -> Result<std::unique_ptr<ServerLink>> {
              loop = &executor;
              if (absent) return fail(kLostConnection, "nobody listens");
              if (failure) return std::unexpected(*failure);
              auto link = std::make_unique<FakeLink>(*this, ++opened);
              links.push_back(link.get());
              return link;
            }};
  }
  void take(FakeLink& link, const json::object& message) {
    const std::string_view method = text_at(message, "method");
    if (is_silent) return;
    if (method == "server/discover") {
      if (!modern) return refuse(link, message, -32601, "Method not found");
      return answer(link, message,
                    {{"resultType", "complete"},
                     {"supportedVersions", {"2026-07-28"}},
                     {"capabilities", capabilities},
                     {"instructions", "Use " + name},
                     {"ttlMs", 0},
                     {"cacheScope", "private"},
                     {"_meta", {{"io.modelcontextprotocol/serverInfo", info()}}}});
    }
    if (method == "initialize") {
      clients.push_back(to_json(message.at("params").at("clientInfo").at("name")));
      if (!refusal.empty()) return refuse(link, message, -32000, refusal);
      return answer(link, message,
                    {{"protocolVersion", legacy_revision},
                     {"capabilities", capabilities},
                     {"serverInfo", info()},
                     {"instructions", "Use " + name}});
    }
    if (method == "notifications/initialized") return;
    heard.push_back(to_json(message));
    if (on_message) on_message(link, message);
  }
  /// Answers `to`, a request, in a later turn.
  void answer(FakeLink& link, const json::object& to, json::object result) {
    if (!modern) result.erase("resultType");
    post(link, {{"jsonrpc", "2.0"}, {"id", to.at("id")}, {"result", std::move(result)}});
  }
  void refuse(FakeLink& link, const json::object& to, int code, std::string_view why) {
    post(link,
         {{"jsonrpc", "2.0"}, {"id", to.at("id")}, {"error", {{"code", code}, {"message", why}}}});
  }
  /// Sends in a later turn, if the link is still there.
  void post(FakeLink& link, json::object message) {
    loop->post([this, to = link.number(), message = std::move(message)] {
      for (FakeLink* const each : links) {
        if (each->number() == to) return each->say(message);
      }
    });
  }
  [[nodiscard]] json::object info() const { return {{"name", name}, {"version", "7"}}; }

  std::string name;
  bool modern;
  bool absent = false;
  bool is_silent = false;
  std::string legacy_revision = "2025-11-25";
  std::string refusal = {};      // of each initialize; empty: none is refused
  std::optional<Error> failure;  // of opening a connection
  bool shares_connection = false;
  bool keeps_notifications = false;              // it does not take them
  std::vector<std::shared_ptr<void>> kept = {};  // the memory of those
  json::object capabilities = {{"tools", {{"listChanged", true}}},
                               {"prompts", json::object()},
                               {"resources", {{"subscribe", true}}},
                               {"logging", json::object()}};
  std::function<void(FakeLink&, const json::object& message)> on_message;
  Executor* loop = nullptr;
  std::size_t opened = 0;
  std::vector<FakeLink*> links;      // open ones
  std::vector<std::string> clients;  // that have initialized, as JSON texts
  std::vector<std::string> heard;
};

inline FakeLink::~FakeLink() {
  std::erase(server_->links, this);
}
inline bool FakeLink::shares_connection() const {
  return server_->shares_connection;
}
inline Result<void> FakeLink::send(OutgoingMessage message) {
  if (owner_ == nullptr) return {};
  if (server_->keeps_notifications && message.memory != nullptr) {
    server_->kept.push_back(std::move(message.memory));
  }
  server_->loop->post([server = server_, to = number_, text = std::move(message.text)] {
    for (FakeLink* const each : server->links) {
      if (each->number() == to) return server->take(*each, parse_json(text).value().as_object());
    }
  });
  return {};
}

/// A client in front of the proxy.
class FakeClient final : public Caller {
 public:
  /// `session`: a connection that begins with initialize. `connection`: one of the modern era.
  /// `request`: each request comes by itself, as over HTTP.
  enum class Kind : std::uint8_t { session, connection, request };

  FakeClient(testing::InMemoryServer& server, Kind kind, Principal principal = {.id = "alice"})
      : server_(&server), kind_(kind), principal_(std::move(principal)) {
    if (kind == Kind::connection) storage_ = std::make_shared<SessionStorage>();
  }
  ~FakeClient() override {
    for (const auto& [id, channel] : channels_) channel->leave(DisconnectReason::gone);
  }

  /// Sends a request and returns its id. `params` get what the era needs.
  std::int64_t request(std::string_view method, json::object params = {},
                       json::object more_meta = {}) {
    const std::int64_t id = ++last_id_;
    json::object meta{{"progressToken", id}};
    if (kind_ != Kind::session) {
      meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28";
      meta["io.modelcontextprotocol/clientInfo"] = {{"name", name}, {"version", "1"}};
      meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    }
    for (const auto& [key, value] : more_meta) meta[key] = value;
    params["_meta"] = std::move(meta);
    send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
    return id;
  }
  std::int64_t initialize() {
    const std::int64_t id = ++last_id_;
    send({{"jsonrpc", "2.0"},
          {"id", id},
          {"method", "initialize"},
          {"params",
           {{"protocolVersion", "2025-11-25"},
            {"capabilities", capabilities},
            {"clientInfo", {{"name", name}, {"version", "1"}}}}}});
    return id;
  }
  void cancel(std::int64_t id) {
    if (kind_ == Kind::session) {
      send({{"jsonrpc", "2.0"},
            {"method", "notifications/cancelled"},
            {"params", {{"requestId", id}}}});
    } else if (const auto found = channels_.find(std::to_string(id)); found != channels_.end()) {
      const auto channel = found->second;
      channel->leave(DisconnectReason::cancelled);
    }
  }
  /// Reads again after `reads` was false.
  void drain() {
    reads = true;
    for (const auto& [id, channel] : std::map(channels_)) channel->drained();
  }
  void send(const json::object& message) {
    const std::string text = to_json(message);
    std::string out;
    MessageParser parser;
    const std::expected<Message, MessageError> parsed = parser.parse(text);
    ASSERT_TRUE(parsed) << text;
    server_->service().dispatcher.dispatch(*parsed, nullptr, *this, out);
    if (!out.empty()) hear(out);
  }
  /// The answer to a request: its result or its error. Null: there is none.
  [[nodiscard]] const json::object* answer_to(std::int64_t id) const {
    for (const json::object& each : heard) {
      const json::value* const of = each.if_contains("id");
      if (of != nullptr && *of == id && !each.contains("method")) return &each;
    }
    return nullptr;
  }
  /// As JSON text; "nothing" without an answer.
  [[nodiscard]] std::string result_of(std::int64_t id) const {
    const json::object* const answer = answer_to(id);
    if (answer == nullptr) return "nothing";
    const json::value* const result = answer->if_contains("result");
    return to_json(result == nullptr ? answer->at("error") : *result);
  }
  [[nodiscard]] std::vector<const json::object*> heard_of(std::string_view method) const {
    std::vector<const json::object*> out;
    for (const json::object& each : heard) {
      if (text_at(each, "method") == method) out.push_back(&each);
    }
    return out;
  }

  // Caller
  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override {
    auto channel = std::make_shared<Channel>(*this, id);
    if (session_ != nullptr) {
      auto entry =
          Session::add_call(session_, id, server_->loop(), [weak = std::weak_ptr(channel)] {
            if (const auto open = weak.lock()) open->leave(DisconnectReason::cancelled);
          });
      if (!entry) return std::unexpected(entry.error());
      channel->entry = std::move(*entry);
    }
    channels_[id] = channel;
    return channel;
  }
  Result<std::shared_ptr<Session>> session() override { return session_; }
  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override {
    session_ = std::make_shared<Session>("", principal_.id, revision, client);
    // The session may outlive its client, for its tasks.
    session_->set_outlet(server_->loop(), [this, alive = std::weak_ptr(alive_)](
                                              const std::string&, const std::string& message) {
      if (!alive.expired()) hear(message);
    });
    return session_;
  }
  std::shared_ptr<SessionStorage> storage() override { return storage_; }
  RetainedCaller keep() override {
    return {std::shared_ptr<Caller>(std::shared_ptr<Caller>(), this)};
  }

  std::string name = "client";
  json::object capabilities = {{"elicitation", {{"form", json::object()}}}};
  std::vector<json::object> heard;
  bool reads = true;
  std::function<void(const json::object& message)> on_heard;

 private:
  class Channel final : public ReplyChannel {
   public:
    Channel(FakeClient& client, RequestId id) : client_(&client), id_(std::move(id)) {}
    void reply(int /*status*/, std::string message) override {
      done();
      if (client_ != nullptr) client_->hear(message);
    }
    bool write(std::string_view block) override {
      while (client_ != nullptr && !block.empty()) {
        const auto end = std::min(block.find('\n'), block.size());
        if (end > 0) client_->hear(block.substr(0, end));
        block.remove_prefix(std::min(end + 1, block.size()));
      }
      return client_ == nullptr || client_->reads;
    }
    bool write(const Bytes& block) override { return write(block.view()); }
    void finish() override { done(); }
    void drop(const Error& /*error*/) override { done(); }
    [[nodiscard]] const Framing& framing() const override { return line_framing(); }
    [[nodiscard]] bool can_stream() const override { return true; }
    void on_close(CloseTask task) override {
      const CloseTask old = std::exchange(close_, std::move(task));
    }
    void on_drain(Executor::Task task) override { drain_ = std::move(task); }
    void drained() {
      if (drain_) drain_();
    }
    std::unique_ptr<Session::Call> give_entry() override { return std::move(entry); }
    void leave(DisconnectReason why) {
      client_ = nullptr;
      if (CloseTask task = std::exchange(close_, {})) task(why);
    }

    std::unique_ptr<Session::Call> entry;

   private:
    void done() {
      entry = nullptr;
      const CloseTask released = std::exchange(close_, {});
    }
    FakeClient* client_;
    RequestId id_;
    CloseTask close_;
    Executor::Task drain_;
  };

  void hear(std::string_view text) {
    const Result<json::value> message = parse_json(text);
    ASSERT_TRUE(message && message->is_object()) << text;
    heard.push_back(message->get_object());
    if (on_heard) on_heard(json::object(heard.back()));
  }

  std::shared_ptr<void> alive_ = std::make_shared<char>();
  testing::InMemoryServer* server_;
  Kind kind_;
  Principal principal_;
  std::shared_ptr<SessionStorage> storage_;
  std::shared_ptr<Session> session_;
  std::map<RequestId, std::shared_ptr<Channel>> channels_;
  std::int64_t last_id_ = 0;
};

/// The proxy and the server in front of it.
struct FakeProxy {
  explicit FakeProxy(std::vector<UpstreamOptions> upstreams, ProxyOptions options = {}) {
    options.upstreams = std::move(upstreams);
    proxy = std::make_shared<Proxy>(std::move(options));
    ServerDefinition definition;
    definition.name = "proxy";
    definition.version = "1";
    definition.announces_changes = true;
    definition.has_streams = false;
    definition.forwarder = proxy;
    server = testing::InMemoryServer::start(std::move(definition)).value();
  }
  ~FakeProxy() {
    proxy->close([] {});
    run();
  }
  FakeProxy(const FakeProxy&) = delete;
  FakeProxy& operator=(const FakeProxy&) = delete;

  void run() { server->loop().run(); }
  void advance(Duration time) {
    server->loop().advance(time);
    run();
  }

  std::shared_ptr<Proxy> proxy;
  std::unique_ptr<testing::InMemoryServer> server;
};

inline json::object text_result(std::string_view text) {
  return {{"resultType", "complete"}, {"content", {{{"type", "text"}, {"text", text}}}}};
}

/// Answers calls with the name of the server, of the tool and the number of the connection.
inline void answer_calls(FakeServer& server) {
  server.on_message = [&server](FakeLink& link, const json::object& message) {
    const std::string_view method = text_at(message, "method");
    if (method == "tools/call") {
      const std::string text = server.name + " " +
                               std::string(message.at("params").at("name").as_string()) + " " +
                               std::to_string(link.number());
      return server.answer(link, message, text_result(text));
    }
    if (method == "tools/list") {
      return server.answer(
          link, message,
          {{"tools", {{{"name", "tool"}, {"inputSchema", {{"type", "object"}}}, {"x-own", 1}}}}});
    }
    const bool is_open = method == "subscriptions/listen";
    if (message.contains("id") && !is_open) server.answer(link, message, json::object());
  };
}

/// A call of a client that does not read, up to the moment at which the server has to wait.
class UnreadCall {
 public:
  UnreadCall(FakeServer& server, FakeProxy& proxy, FakeClient& client)
      : server_(&server), proxy_(&proxy) {
    server.on_message = [this](FakeLink& link, const json::object& message) {
      if (text_at(message, "method") != "tools/call") return;
      asked_ = message;
      by = &link;
    };
    id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    client.reads = false;
    while (by->paused.empty() && said < 1000) say();
    server.heard.clear();
  }
  void say() {
    by->say({{"jsonrpc", "2.0"},
             {"method", "notifications/progress"},
             {"params",
              {{"progressToken", asked_.at("params").at("_meta").at("progressToken")},
               {"progress", ++said},
               {"message", std::string(10'000, 'x')}}}});
    proxy_->run();
  }
  void answer() {
    server_->answer(*by, asked_, text_result("done"));
    proxy_->run();
  }

  FakeLink* by = nullptr;
  std::int64_t id = 0;
  int said = 0;

 private:
  FakeServer* server_;
  FakeProxy* proxy_;
  json::object asked_;
};

}  // namespace sluice
