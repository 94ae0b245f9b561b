// The calls of one loop as a state machine, in any order on the manual executor. Handlers send
// messages, ask, answer, fail, are dropped or continue as tasks. Clients of all eras answer,
// cancel, disappear, return, read slowly or stop reading. Each call is answered exactly once unless
// its client has disappeared or cancelled, no question is answered twice, and all memory is
// returned.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "choices.hpp"
#include "core/log/log.hpp"
#include "core/manual_executor.hpp"
#include "json/json.hpp"
#include "require.hpp"
#include "server/calls/pending_request.hpp"
#include "server/calls/task_store.hpp"
#include "server/dispatch/dispatcher.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/notifications/message_events.hpp"
#include "server/sessions/session.hpp"
#include "server/sessions/session_registry.hpp"
#include "server/streams/stream_service.hpp"
#include "server/workers/long_messages.hpp"

namespace {

using namespace sluice;
using namespace std::chrono_literals;

/// What a client knows about one of its requests.
struct Asked {
  RequestId id;
  int answers = 0;
  /// The client has disappeared or cancelled, or was dropped: an answer is optional.
  bool given_up = false;
  std::string stream_id = {};  // to resume from
  Seq next = 0;
};

class Client;

/// The reply channel of one request, which passes everything on to the client.
class FuzzChannel final : public ReplyChannel, public std::enable_shared_from_this<FuzzChannel> {
 public:
  FuzzChannel(Client& client, std::shared_ptr<Asked> asked, bool streams)
      : client_(&client), asked_(std::move(asked)), streams_(streams) {}

  void reply(int /*http_status*/, std::string message) override;
  bool write(std::string_view block) override;
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override { end(); }
  void drop(const Error& /*error*/) override {
    asked_->given_up = true;
    end();
  }
  [[nodiscard]] const Framing& framing() const override { return sse_framing(); }
  [[nodiscard]] bool can_stream() const override { return streams_; }
  void on_close(CloseTask task) override {
    const CloseTask old = std::exchange(close_task_, done_ ? CloseTask() : std::move(task));
    if (vanished_ && close_task_) close(DisconnectReason::gone);
  }
  void on_drain(Executor::Task task) override {
    const Executor::Task old =
        std::exchange(drain_task_, done_ ? Executor::Task() : std::move(task));
  }

  void make_cancellable(std::unique_ptr<Session::Call> entry) { entry_ = std::move(entry); }
  void close(DisconnectReason reason) {
    const std::shared_ptr<FuzzChannel> keep = shared_from_this();
    if (done_) return;
    if (reason == DisconnectReason::cancelled) asked_->given_up = true;
    if (reason == DisconnectReason::gone) entry_ = nullptr;
    if (reason == DisconnectReason::gone) gone_ = true;
    if (CloseTask task = std::exchange(close_task_, {})) task(reason);
    gone_ = true;
    end();
  }
  /// The client disappears; the server notices it only when it asks.
  void vanish() {
    vanished_ = true;
    gone_ = true;
  }
  void set_writable(bool writable) {
    writable_ = writable;
    const std::shared_ptr<FuzzChannel> keep = shared_from_this();
    if (writable && drain_task_) {
      Executor::Task task = std::exchange(drain_task_, {});
      task();
      if (!drain_task_ && !done_) drain_task_ = std::move(task);
    }
  }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] Asked& asked() const { return *asked_; }

 private:
  void end() {
    done_ = true;
    entry_ = nullptr;
    const CloseTask close = std::exchange(close_task_, {});
    const Executor::Task drain = std::exchange(drain_task_, {});
  }

  Client* client_;
  std::shared_ptr<Asked> asked_;
  bool streams_;
  bool writable_ = true;
  bool done_ = false;
  bool gone_ = false;
  bool vanished_ = false;
  std::unique_ptr<Session::Call> entry_;
  CloseTask close_task_;
  Executor::Task drain_task_;
};

/// A client of one kind, and what it has received.
class Client final : public Caller {
 public:
  Client(std::shared_ptr<Session> session, bool streams, Executor& loop)
      : session_(std::move(session)), streams_(streams), loop_(&loop) {}

  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& /*id*/) override {
    if (full) return fail(kBusy, "full");
    auto channel = std::make_shared<FuzzChannel>(*this, current, streams_);
    if (session_ != nullptr) {
      Result<std::unique_ptr<Session::Call>> entry =
          Session::add_call(session_, current->id, *loop_, [weak = std::weak_ptr(channel)] {
            if (const auto open = weak.lock()) open->close(DisconnectReason::cancelled);
          });
      if (!entry) return std::unexpected(entry.error());
      channel->make_cancellable(std::move(*entry));
    }
    channels.push_back(channel);
    return channel;
  }
  Result<std::shared_ptr<Session>> session() override { return session_; }
  Result<std::shared_ptr<Session>> begin_session(const Revision& /*revision*/,
                                                 const ClientDescription& /*client*/) override {
    return fail(-32600, "there is one");
  }
  RetainedCaller keep() override {
    return {std::shared_ptr<Caller>(std::shared_ptr<Caller>(), this)};
  }

  /// Receives events for `asked`.
  void take(Asked& asked, std::string_view block) {
    while (!block.empty()) {
      const std::string_view line = block.substr(0, block.find('\n'));
      block.remove_prefix(std::min(block.size(), line.size() + 1));
      if (line.starts_with("id: ")) {
        const std::optional<EventPosition> position = parse_event_id(line.substr(4));
        require(position.has_value());
        // Each event is one that the client has not seen.
        require(asked.stream_id.empty() || position->next > asked.next || position->next == 0);
        asked.stream_id = position->stream_id;
        asked.next = position->next;
      } else if (line.starts_with("data: {")) {
        take_message(asked, line.substr(6));
      }
    }
  }
  void take_message(Asked& asked, std::string_view text) {
    const Result<json::value> parsed = parse_json(text);
    require(parsed.has_value() && parsed->is_object());
    const json::object& message = parsed->get_object();
    if (!message.contains("method")) {
      ++asked.answers;
      require(asked.answers == 1);
      remember_round(message);
    } else if (message.contains("id")) {
      questions.push_back(std::string(to_json(message.at("id"))));
    }
  }
  void remember_round(const json::object& message) {
    const json::value* const result = message.if_contains("result");
    if (result == nullptr || !result->is_object()) return;
    if (const json::value* const state = result->get_object().if_contains("requestState")) {
      round = to_json(*state);
    }
    const json::object* members = &result->get_object();
    if (const json::value* const task = members->if_contains("task")) members = &task->get_object();
    if (const json::value* const id = members->if_contains("taskId")) {
      tasks.push_back(to_json(*id));
    }
  }

  std::shared_ptr<Asked> current;  // the request being handled
  bool full = false;
  std::vector<std::shared_ptr<FuzzChannel>> channels;
  std::vector<std::string> questions;  // ids of requests from the server to this client
  std::vector<std::string> tasks;      // ids, as JSON
  std::string round;                   // the last requestState, as JSON
  std::shared_ptr<Session> session_;

 private:
  Principal principal_{.id = "alice"};
  bool streams_;
  Executor* loop_;
};

void FuzzChannel::reply(int /*http_status*/, std::string message) {
  require(!done_ || gone_);
  if (!gone_) client_->take_message(*asked_, message);
  end();
}

bool FuzzChannel::write(std::string_view block) {
  require(!done_ || gone_);
  if (!gone_) client_->take(*asked_, block);
  return writable_;
}

/// The handler that answers a call.
struct Handler final : StreamProducer {
  ~Handler() override {
    if (call != nullptr) call->set_producer(nullptr);
  }
  void on_writable() override { require(cancels == 0); }
  void on_cancel() override { require(++cancels == 1); }

  std::shared_ptr<PendingRequest> call;
  int cancels = 0;
};

/// Reads the rest of a stream whose connection was lost.
struct Resumed final : BlockSink {
  Resumed(Client& to, std::shared_ptr<Asked> of) : client(&to), asked(std::move(of)) {}
  bool write(std::string_view block) override {
    client->take(*asked, block);
    return true;
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {}
  void drop(const Error& /*error*/) override { asked->given_up = true; }

  Client* client;
  std::shared_ptr<Asked> asked;
};

class World {
 public:
  explicit World(Choices& choices) : choices_(choices) {
    definition_.name = "fuzz";
    definition_.version = "1";
    for (const bool asks_first : {false, true}) {
      definition_.tools.push_back(
          {.name = asks_first ? "first" : "later",
           .description = "",
           .input_schema = R"({"type":"object"})",
           .handler = Tool::Deferred([this](const json::object& arguments,
                                            std::shared_ptr<PendingRequest> call) -> Result<void> {
             ++started_;
             if (arguments.contains("refuse")) return fail(-32602, "refused");
             auto handler = std::make_unique<Handler>();
             call->set_producer(handler.get());
             handler->call = std::move(call);
             handlers_.push_back(std::move(handler));
             return {};
           }),
           .task_support = TaskSupport::optional,
           .asks_first = asks_first});
    }
    definition_.middleware = {[this](Request& request) -> Task<> {
                                ++begun_;
                                co_await request.next();
                                ++heard_;
                              },
                              [this](Request& request) { return wander(request); }};
    results_.emplace(definition_);
    offer_ = RefPtr(new LoopCatalog(Catalog::make(definition_).value(), *results_, executor_));
    const std::vector<StreamShard> shards{{&executor_, &manager_}};
    service_.emplace(offer_->definition(), shards, 0);
    changes_.emplace(shards);
    tasks_.emplace(TaskLimits{.max_tasks = 6, .per_client = 4}, executor_.clock(), *changes_);
    dispatcher_.emplace(offer_, *service_, sessions_, quota_, *changes_, *tasks_, long_messages_,
                        checks_);
    const ClientDescription all{
        .capabilities = {.roots = true, .sampling = true, .elicitation_form = true}};
    const Revision& legacy = newest_revision(Era::legacy);
    resumable_ = std::make_shared<Session>("s", "alice", legacy, all, 60s);
    connected_ = std::make_shared<Session>("", "alice", legacy, all);
    clients_.reserve(4);
    clients_.emplace_back(nullptr, true, executor_);
    clients_.emplace_back(nullptr, false, executor_);
    clients_.emplace_back(connected_, true, executor_);
    clients_.emplace_back(resumable_, true, executor_);
  }

  ~World() {
    // Requests that wait in the middleware continue.
    executor_.advance(10s);
    for (Client& client : clients_) {
      for (const auto& channel : client.channels) channel->set_writable(true);
    }
    for (const auto& handler : handlers_) {
      if (choices_.below(2) == 0) handler->call->complete({.text = "at last"});
    }
    // The remaining handlers are dropped, which answers their calls too.
    handlers_.clear();
    executor_.run();
    tasks_->end_all({kBusy, "over", {}});
    executor_.run();
    for (Client& client : clients_) {
      for (const auto& channel : client.channels) channel->set_writable(true);
    }
    // Code that waits in the middleware after the end continues too.
    executor_.advance(10s);
    resume_all();
    for (const auto& [client, asked] : asked_) {
      require(asked->answers <= 1);
      require(asked->given_up || asked->answers == 1);
    }
    require(quota_.in_use() == 0);
    require(begun_ == heard_);
    readers_.clear();
    for (Client& client : clients_) {
      for (const auto& channel : client.channels) channel->close(DisconnectReason::gone);
    }
    executor_.advance(std::chrono::hours(1));
    require(manager_.counters().open == 0);
    require(policy_.budget.used() == 0);
    dispatcher_.reset();
    executor_.run();
  }

  void step() {
    switch (choices_.below(16)) {
      case 0:
      case 1:
        call();
        break;
      case 2:
        speak();
        break;
      case 3:
        ask();
        break;
      case 4:
        respond();
        break;
      case 5:
        end_handler();
        break;
      case 6:
        if (const auto* handler = choices_.pick(handlers_)) {
          const std::size_t index = static_cast<std::size_t>(handler - handlers_.data());
          handlers_.erase(handlers_.begin() + static_cast<std::ptrdiff_t>(index));
        }
        break;
      case 7:
        leave();
        break;
      case 8:
        resume_all();
        break;
      case 9:
        read();
        break;
      case 10:
        task();
        break;
      case 11:
        executor_.advance(
            std::array<Duration, 6>{1ms, 1s, 6s, 61s, 601s, 4000s}[choices_.below(6)]);
        break;
      case 12:
        if (const auto* handler = choices_.pick(handlers_)) {
          (*handler)->call->disconnect(std::chrono::milliseconds(choices_.below(2)));
        }
        break;
      case 13:
        begin_task();
        break;
      case 14:
        if (choices_.below(8) == 0)
          dispatcher_->end_calls({kBusy, "The server is shutting down", {}});
        break;
      default:
        executor_.run();
    }
  }

 private:
  /// A middleware that also does what it should not.
  Task<> wander(Request& request) {
    const std::size_t way = choices_.below(16);
    if (way == 0) throw Error{403, "no", {}};
    if (way == 1) co_return;
    if (way < 5) co_await request.sleep(1s);
    if (way == 5) co_await request.callback<void>([](const Resolver<void>&) {});
    if (way == 4) throw Error{403, "no", {}};
    if (way == 6) {
      const Awaiting<RequestEnd> end = request.next();
      co_await request.sleep(1s);
      throw Error{kTimedOut, "too long", {}};
    }
    co_await request.next();
    if (way == 7) throw std::runtime_error("too late");
    if (way < 10) co_await request.sleep(1s);
  }

  std::shared_ptr<Asked> send(Client& client, std::string_view method, const std::string& params) {
    auto asked = std::make_shared<Asked>();
    asked->id = std::to_string(++last_id_);
    client.current = asked;
    asked_.emplace_back(&client, asked);
    const std::string text = R"({"jsonrpc":"2.0","id":)" + asked->id + R"(,"method":")" +
                             std::string(method) + R"(","params":{)" + params + "}}";
    const auto message = parser_.parse(text);
    require(message.has_value());
    std::string out;
    const std::size_t opened = client.channels.size();
    const int started = started_;
    const Outcome outcome = dispatcher_->dispatch(*message, nullptr, client, out);
    if (!out.empty()) {
      require(outcome.kind == Outcome::Kind::answered);
      client.take_message(*asked, out);
      // A refused request must not have run a handler.
      require(started == started_);
      if (client.channels.size() > opened)
        client.channels.back()->close(DisconnectReason::cancelled);
    } else {
      require(client.channels.size() == opened + 1);
    }
    return asked;
  }

  static std::string modern(bool tasks) {
    return std::string(
               R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
               R"("progressToken":1,"io.modelcontextprotocol/logLevel":"debug",)"
               R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{})") +
           (tasks ? R"(,"extensions":{"io.modelcontextprotocol/tasks":{}})" : "") + "}}";
  }

  void call() {
    Client& client = clients_[choices_.below(clients_.size())];
    const std::uint8_t how = choices_.next();
    client.full = how % 16 == 15;
    std::string params = how % 2 == 0 ? R"("name":"later")" : R"("name":"first")";
    if (how % 32 == 30) params += R"(,"arguments":{"refuse":1})";
    if (client.session_ == nullptr) {
      params += "," + modern((how & 4U) != 0);
      if ((how & 8U) != 0 && !client.round.empty()) {
        params += R"(,"inputResponses":{"a":{"action":"accept","content":{}},"b":{"roots":[]}},)"
                  R"("requestState":)" +
                  client.round;
      }
    } else {
      params += R"(,"_meta":{"progressToken":1})";
      if ((how & 4U) != 0) params += R"(,"task":{"ttl":60000})";
    }
    send(client, "tools/call", params);
    client.full = false;
  }

  void speak() {
    auto* const handler = choices_.pick(handlers_);
    if (handler == nullptr) return;
    PendingRequest& call = *(*handler)->call;
    switch (choices_.below(5)) {
      case 0:
        call.emit("text");
        break;
      case 1:
        call.emit(std::string(2000, 'x'));
        break;
      case 2:
        call.progress(0.5, 1, "half");
        break;
      case 3:
        call.log(LoggingLevel::error, "fuzz", "{}");
        break;
      default:
        call.flush();
    }
  }

  void ask() {
    auto* const handler = choices_.pick(handlers_);
    if (handler == nullptr) return;
    const std::shared_ptr<PendingRequest> call = (*handler)->call;
    std::vector<InputRequest> requests;
    if (choices_.below(2) == 0) {
      requests.push_back({"a",
                          "elicitation/create",
                          {{"message", choices_.below(4) == 0 ? "Other?" : "Sure?"},
                           {"requestedSchema", {{"type", "object"}}}}});
    }
    if (requests.empty() || choices_.below(2) == 0) requests.push_back({"b", "roots/list", {}});
    const std::size_t count = requests.size();
    const auto heard = std::make_shared<int>(0);
    call->ask(std::move(requests), [heard, count](Result<std::vector<json::value>> answers) {
      require(++*heard == 1);
      require(!answers || answers->size() == count);
    });
  }

  void respond() {
    Client& client = clients_[2 + choices_.below(2)];
    auto* const id = choices_.pick(client.questions);
    if (id == nullptr) return;
    static constexpr std::array<std::string_view, 4> kOutcomes = {
        R"("result":{"roots":[]})", R"("result":{"action":"accept","content":{}})",
        R"("result":{"action":7})", R"("error":{"code":-1,"message":"no"})"};
    const std::string text = R"({"jsonrpc":"2.0","id":)" + *id + "," +
                             std::string(kOutcomes[choices_.below(kOutcomes.size())]) + "}";
    const auto message = parser_.parse(text);
    require(message.has_value());
    client.session_->on_response(*message);
  }

  void end_handler() {
    auto* const handler = choices_.pick(handlers_);
    if (handler == nullptr) return;
    const std::shared_ptr<PendingRequest> call = (*handler)->call;
    switch (choices_.below(4)) {
      case 0:
        call->complete({.text = "done"});
        break;
      case 1:
        call->fail({-32603, "failed", {}});
        break;
      case 2:
        call->complete(R"("a":1)", {});
        break;
      default:
        // The effect of a time limit.
        call->fail({kTimedOut, "too long", {}});
        call->complete({.text = "late"});
    }
    require(call->over());
  }

  void leave() {
    Client& client = clients_[choices_.below(clients_.size())];
    auto* const channel = choices_.pick(client.channels);
    if (channel == nullptr) return;
    const std::shared_ptr<FuzzChannel> leaving = *channel;
    // Only a client with a session returns.
    const bool returns = client.session_ == resumable_;
    switch (choices_.below(4)) {
      case 0:
        leaving->close(DisconnectReason::cancelled);
        break;
      case 1:
        if (client.session_ != nullptr) client.session_->cancel_call(leaving->asked().id);
        leaving->asked().given_up = true;
        break;
      case 2:
        leaving->asked().given_up = true;
        leaving->vanish();
        break;
      default:
        if (!returns || !leaving->asked().answers) leaving->asked().given_up = true;
        leaving->close(DisconnectReason::gone);
    }
  }

  /// Clients that have lost a stream which is still kept continue to read it.
  void resume_all() {
    for (const auto& [client, asked] : asked_) {
      if (client->session_ != resumable_ || asked->stream_id.empty() || asked->answers > 0)
        continue;
      const bool is_read = std::ranges::any_of(client->channels, [&](const auto& channel) {
        return &channel->asked() == asked.get() && !channel->done() && !channel->gone();
      });
      if (is_read) continue;
      std::erase_if(readers_, [&](const auto& each) { return each.first == asked.get(); });
      service_->subscribe(asked->stream_id, resumable_->stream_principal(), asked->next, 0,
                          message_events(), false, std::make_unique<Resumed>(*client, asked),
                          [&](Result<std::unique_ptr<Subscription>> subscribed) {
                            // The stream may have expired, or have been cancelled because it had no
                            // reader.
                            if (!subscribed) {
                              asked->given_up = true;
                              return;
                            }
                            readers_.emplace_back(asked.get(), std::move(*subscribed));
                          });
      if (!readers_.empty()) readers_.back().second->resume();
    }
    executor_.run();
  }

  void read() {
    Client& client = clients_[choices_.below(clients_.size())];
    if (auto* const channel = choices_.pick(client.channels)) {
      const std::shared_ptr<FuzzChannel> reading = *channel;
      reading->set_writable(choices_.below(2) == 0);
    }
  }

  void task() {
    Client& client = clients_[choices_.below(clients_.size())];
    auto* const id = choices_.pick(client.tasks);
    if (id == nullptr) return;
    std::string params = R"("taskId":)" + *id;
    const bool is_modern = client.session_ == nullptr;
    if (is_modern) params += "," + modern(true);
    switch (choices_.below(3)) {
      case 0:
        send(client, "tasks/get", params);
        break;
      case 1:
        send(client, "tasks/cancel", params);
        break;
      default:
        if (is_modern) {
          const bool fits = choices_.below(2) == 0;
          params += fits ? R"(,"inputResponses":{"a":{"action":"decline"},"b":{"roots":[]}})"
                         : R"(,"inputResponses":{"a":{"action":7},"b":{}})";
          send(client, "tasks/update", params);
        } else {
          send(client, "tasks/result", params);
        }
    }
  }

  void begin_task() {
    auto* const handler = choices_.pick(handlers_);
    if (handler == nullptr) return;
    Handler& here = **handler;
    Result<std::shared_ptr<PendingRequest>> begun = here.call->begin_task();
    if (!begun || *begun == here.call) return;
    require(here.call->over());
    here.call->set_producer(nullptr);
    here.call = std::move(*begun);
    here.call->set_producer(&here);
  }

  Choices& choices_;
  ManualExecutor executor_;
  StreamPolicy policy_{
      {.max_chunks = 8, .max_bytes = 6000, .retained_bytes = 2000, .stall = 5s}, 40'000, 100, 100};
  StreamManager manager_{executor_, policy_, 0, 1};
  ClientQuota quota_{12};
  ServerDefinition definition_;
  std::optional<ResultWriter> results_;
  RefPtr<LoopCatalog> offer_;
  std::optional<StreamService> service_;
  std::optional<ChangeNotifier> changes_;
  std::optional<TaskStore> tasks_;
  SessionRegistry sessions_{{}, executor_.clock()};
  LongMessages long_messages_{executor_, nullptr, nullptr};
  LongMessages checks_{executor_, nullptr, nullptr};
  std::optional<Dispatcher> dispatcher_;
  MessageParser parser_;
  std::shared_ptr<Session> resumable_;
  std::shared_ptr<Session> connected_;
  std::vector<Client> clients_;
  std::vector<std::pair<Client*, std::shared_ptr<Asked>>> asked_;
  std::vector<std::pair<Asked*, std::unique_ptr<Subscription>>> readers_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  int started_ = 0;
  int begun_ = 0;  // requests that have reached the middleware
  int heard_ = 0;  // requests whose end the middleware has been told of
  int last_id_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Handlers fail on purpose, so the log is silenced.
  static const bool quiet = [] {
    set_logging(LogLevel::off, LogFormat::text, false);
    return true;
  }();
  (void)quiet;
  Choices choices(data, size);
  World world(choices);
  while (!choices.empty()) world.step();
  return 0;
}
