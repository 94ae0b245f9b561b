#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "core/text/text.hpp"
#include "json/json.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/revision.hpp"
#include "protocol/tool_result.hpp"
#include "rpc/error_codes.hpp"
#include "server/api/server_state.hpp"
#include "server/testing/in_memory_server.hpp"
#include "server/transport/message/message_connection.hpp"
#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice::testing {
namespace {

/// The most rounds of one request (MRTR).
constexpr int kMaxRounds = 100;
/// How long, in real time, virtual time waits for workers that do not end.
constexpr auto kWorkers = std::chrono::seconds(3);
/// How long to wait for other threads before looking at them again.
constexpr auto kLook = std::chrono::milliseconds(10);

const PushedChunkEncoder& line_encoder() {
  static const PushedChunkEncoder encoder(line_framing());
  return encoder;
}

const json::value* find(const json::object& object, std::string_view key) {
  return object.if_contains(key);
}

json::object object_at(const json::object& object, std::string_view key) {
  const json::value* const value = find(object, key);
  return value != nullptr && value->is_object() ? value->get_object() : json::object();
}

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* const value = find(object, key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string texts_of(const std::vector<json::object>& progress) {
  std::string out;
  for (const json::object& each : progress) out.append(text_at(each, "message"));
  return out;
}

}  // namespace

json::object accept(json::object content) {
  return {{"action", "accept"}, {"content", std::move(content)}};
}
json::object decline() {
  return {{"action", "decline"}};
}
json::object dismiss() {
  return {{"action", "cancel"}};
}

bool Reply::failed() const {
  return error || is_tool_error(result);
}

std::string Reply::text() const {
  return error ? error->message : text_of_tool_result(result);
}

std::string Reply::partial_text() const {
  return texts_of(progress);
}

const json::value& Reply::structured() const {
  return structured_of_tool_result(result);
}

const json::value& Reply::checked() const {
  if (error) throw Error(*error);
  if (failed()) throw Error{kInternalError, text(), {}};
  return structured();
}

void Reply::throw_unfit(const DecodeError& error) {
  throw Error{kInvalidParams, error.describe(), {}};
}

/// A request, through all of its rounds.
struct PendingReply::State {
  Client::State* client;
  std::string method;
  json::object params;  // of the first round, without `_meta`
  std::int64_t id = 0;  // of the current round
  int rounds = 0;
  bool cancelled = false;
  std::optional<Reply> reply = {};
  std::vector<json::object> progress = {};
};

/// The client's end of a connection in memory.
struct Client::State final : MessageOutput {
  State(const Server& server, ClientOptions wanted)
      : options(std::move(wanted)), definition(server.state()), revision(revision_named()) {
    Result<std::unique_ptr<InMemoryServer>> started = definition->start<InMemoryServer>();
    if (!started) throw std::invalid_argument(started.error().message);
    host = std::move(*started);
    connection = std::make_shared<MessageConnection>(host->service(), options.principal,
                                                     line_encoder(), fields_sent());
    connection->attach(*this);
  }
  ~State() override {
    definition->forget(*host);
    connection->on_close();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // MessageOutput
  bool send(std::string message) override {
    received.push_back(std::move(message));
    return true;
  }
  bool send_framed(std::string_view messages) override {
    while (!messages.empty()) {
      const std::size_t end = messages.find('\n');
      received.emplace_back(messages.substr(0, end));
      messages.remove_prefix(end == std::string_view::npos ? messages.size() : end + 1);
    }
    return true;
  }
  bool send_framed(const Bytes& messages) override { return send_framed(messages.view()); }
  void flush() override {}
  bool push_framed(std::string_view messages) override { return send_framed(messages); }

  [[nodiscard]] bool is_modern() const { return revision.era == Era::modern; }
  [[nodiscard]] const Revision& revision_named() const {
    const Revision* const found = find_revision(options.revision);
    if (found == nullptr) {
      throw std::invalid_argument("there is no MCP revision \"" + options.revision + '"');
    }
    return *found;
  }

  /// The header fields that handlers may read.
  [[nodiscard]] std::vector<RequestField> fields_sent() const {
    std::vector<RequestField> out;
    for (const std::string& name : definition->definition().request_headers) {
      RequestField& field = out.emplace_back(name);
      for (const auto& [sent, value] : options.headers) {
        if (to_lower(sent) == to_lower(name)) field.value = value;
      }
    }
    return out;
  }

  [[nodiscard]] json::object client_info() const {
    json::object out{{"name", options.client_info.name}, {"version", options.client_info.version}};
    if (!options.client_info.title.empty()) out["title"] = options.client_info.title;
    return out;
  }

  [[nodiscard]] json::object capabilities() const {
    json::object out;
    if (options.on_elicitation) {
      out["elicitation"] = {{"form", json::object()}, {"url", json::object()}};
    }
    if (options.on_sampling) out["sampling"] = json::object();
    if (options.on_roots) out["roots"] = json::object();
    if (options.tasks) {
      out["extensions"] = {{"io.modelcontextprotocol/tasks", json::object()}};
    }
    return out;
  }

  /// Begins the first or the next round of a request.
  void begin(const std::shared_ptr<PendingReply::State>& request, const json::object& params) {
    request->id = ++last_id;
    waiting[request->id] = request;
    json::object all = params;
    json::value& meta = all["_meta"];
    if (!meta.is_object()) meta.emplace_object();
    meta.get_object().emplace("progressToken", request->id);
    post({{"jsonrpc", "2.0"}, {"id", request->id}, {"method", request->method}}, std::move(all));
  }

  /// Sends a request or a notification.
  void post(json::object message, json::object params) {
    if (is_modern()) {
      json::value& meta = params["_meta"];
      if (!meta.is_object()) meta.emplace_object();
      json::object& members = meta.get_object();
      members.emplace("io.modelcontextprotocol/protocolVersion", revision.name);
      members.emplace(kClientInfoKey, client_info());
      members.emplace("io.modelcontextprotocol/clientCapabilities", capabilities());
      members.emplace("io.modelcontextprotocol/logLevel", "debug");
    }
    if (!params.empty()) message["params"] = std::move(params);
    to_send.push_back(to_json(message));
  }

  /// Moves the clock of the server to the real time, and as far beyond as advance() was asked to.
  void catch_up() {
    const TimePoint now = std::chrono::steady_clock::now() + ahead;
    const TimePoint there = host->loop().clock().now();
    if (there < now) host->advance(now - there);
  }

  /// Passes messages to the server and takes its own, until there are none.
  void run() {
    if (!options.virtual_time) catch_up();
    host->loop().run();  // changes of the Server come first
    do {
      while (!server_reads_later && !to_send.empty()) {
        const std::string message = std::move(to_send.front());
        to_send.pop_front();
        Executor::Task handled = [this] { server_reads_later = false; };
        server_reads_later = true;
        if (connection->on_message(message, handled)) server_reads_later = false;
      }
      host->loop().run();
      while (!received.empty()) {
        const std::string message = std::move(received.front());
        received.pop_front();
        take(message);
      }
    } while (!server_reads_later && !to_send.empty());
  }

  void take(const std::string& text) {
    const Result<json::value> parsed = parse_json(text);
    const json::object& message = parsed.value().as_object();
    const json::value* const id = find(message, "id");
    if (!message.contains("method")) {
      if (id == nullptr || id->is_null()) {
        throw std::runtime_error("the server refuses a message: " + text);
      }
      const auto found =
          id == nullptr || !id->is_int64() ? waiting.end() : waiting.find(id->get_int64());
      if (found == waiting.end()) return;
      const std::shared_ptr<PendingReply::State> request = std::move(found->second);
      waiting.erase(found);
      answer(request, message);
    } else if (id != nullptr) {
      const json::object result = ask(text_at(message, "method"), object_at(message, "params"));
      to_send.push_back(to_json(json::object{{"jsonrpc", "2.0"}, {"id", *id}, {"result", result}}));
    } else {
      note(text_at(message, "method"), object_at(message, "params"));
    }
  }

  void answer(const std::shared_ptr<PendingReply::State>& request, const json::object& message) {
    if (const json::value* const error = find(message, "error")) {
      const json::object& said = error->as_object();
      const json::value* const data = find(said, "data");
      request->reply = {.error = Error{said.at("code").to_number<int>(), text_at(said, "message"),
                                       data == nullptr ? "" : to_json(*data)}};
      return;
    }
    json::object result = object_at(message, "result");
    if (text_at(result, "resultType") != "input_required") {
      request->reply = {.result = std::move(result)};
      return;
    }
    if (++request->rounds > kMaxRounds) {
      throw std::runtime_error(request->method + " asks for more input in each of " +
                               std::to_string(kMaxRounds) + " rounds");
    }
    json::object params = request->params;
    json::object answers;
    for (const auto& [key, question] : object_at(result, "inputRequests")) {
      const json::object& asked = question.as_object();
      answers[key] = ask(text_at(asked, "method"), object_at(asked, "params"));
    }
    if (request->cancelled) return;
    params["inputResponses"] = std::move(answers);
    if (const json::value* const state = find(result, "requestState")) {
      params["requestState"] = *state;
    }
    begin(request, params);
  }

  /// Answers a question of the server. It asks only what capabilities() declares.
  json::object ask(std::string_view method, const json::object& params) {
    const Answer& answer = method == "elicitation/create"       ? options.on_elicitation
                           : method == "sampling/createMessage" ? options.on_sampling
                           : method == "roots/list"             ? options.on_roots
                                                                : none;
    if (answer) return answer(params);
    if (method == "ping") return {};
    throw std::runtime_error("the server asks for " + std::string(method) +
                             ", which this client cannot answer");
  }

  void note(const std::string& method, json::object params) {
    if (method == "notifications/progress") {
      const json::value* const token = find(params, "progressToken");
      const auto request =
          token == nullptr || !token->is_int64() ? waiting.end() : waiting.find(token->get_int64());
      if (request != waiting.end()) {
        request->second->progress.push_back(std::move(params));
        return;
      }
    }
    notifications.emplace_back(method, std::move(params));
  }

  /// Does what comes next: waits for workers, or lets time pass to the next timer, but not beyond
  /// `until`. Returns false if there is nothing to wait for.
  bool step(TimePoint until) {
    ManualExecutor& loop = host->loop();
    const TimePoint real_now = std::chrono::steady_clock::now();
    const bool is_busy = host->has_workers_busy();
    if (!is_busy) busy_since.reset();
    if (!options.virtual_time) {
      loop.wait(kLook);
    } else if (is_busy && real_now - busy_since.value_or(real_now) < kWorkers) {
      if (!busy_since) busy_since = real_now;
      loop.wait(kLook);
    } else if (loop.has_tasks()) {
      // A worker has just posted its last result.
    } else if (const std::optional<TimePoint> next = loop.next_timer(); next || is_busy) {
      const TimePoint now = loop.clock().now();
      host->advance(std::min(std::max(next.value_or(until), now), until) - now);
    } else {
      return false;
    }
    run();
    return true;
  }

  /// Lets time pass until the request is answered.
  Reply wait_for(PendingReply::State& request) {
    run();
    const TimePoint until = host->loop().clock().now() + at_most_forever(options.patience);
    while (!request.reply) {
      if (host->loop().clock().now() >= until) {
        throw_late(request, "it takes longer than `patience`");
      }
      if (!step(until)) throw_late(request, "nothing is left that the server waits for");
    }
    request.reply->progress = request.progress;
    return *request.reply;
  }

  void advance(Duration time) {
    if (!options.virtual_time) {
      ahead += std::max(time, Duration());
      return run();
    }
    const TimePoint until = host->loop().clock().now() + time;
    run();
    while (host->loop().clock().now() < until && step(until)) {
    }
    if (host->loop().clock().now() < until) host->advance(until - host->loop().clock().now());
    run();
  }

  [[noreturn]] static void throw_late(const PendingReply::State& request, const char* why) {
    throw std::runtime_error("no answer to " + request.method + ": " + why);
  }

  Answer none;
  ClientOptions options;
  std::shared_ptr<detail::ServerState> definition;
  const Revision& revision;
  std::unique_ptr<InMemoryServer> host;
  std::shared_ptr<MessageConnection> connection;
  std::deque<std::string> to_send;   // to the server
  std::deque<std::string> received;  // from it
  bool server_reads_later = false;   // it has not handled the last message yet
  std::map<std::int64_t, std::shared_ptr<PendingReply::State>> waiting;
  std::vector<std::pair<std::string, json::object>> notifications;
  Duration ahead{};                     // of the real time, if time is not virtual
  std::optional<TimePoint> busy_since;  // when workers were first seen at work, in real time
  std::int64_t last_id = 0;
  json::object about;
};

bool PendingReply::is_ready() const {
  return state_->reply.has_value();
}
const std::vector<json::object>& PendingReply::progress() const {
  return state_->progress;
}
std::string PendingReply::partial_text() const {
  return texts_of(state_->progress);
}
Reply PendingReply::get() {
  return state_->client->wait_for(*state_);
}
void PendingReply::cancel() {
  if (state_->reply) return;
  state_->cancelled = true;
  Client::State& client = *state_->client;
  client.waiting.erase(state_->id);
  client.post({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}},
              {{"requestId", state_->id}});
  client.run();
}

Client::Client(const Server& server, ClientOptions options)
    : state_(std::make_unique<State>(server, std::move(options))) {
  if (state_->is_modern()) {
    state_->about = request("server/discover").result;
    return;
  }
  Reply agreed = request("initialize", {{"protocolVersion", state_->revision.name},
                                        {"capabilities", state_->capabilities()},
                                        {"clientInfo", state_->client_info()}});
  if (agreed.error) throw std::invalid_argument(agreed.error->message);
  state_->about = std::move(agreed.result);
  notify("notifications/initialized");
}

Client::~Client() = default;

Reply Client::call(std::string_view tool, json::object arguments) {
  return begin_call(tool, std::move(arguments)).get();
}
Reply Client::request(std::string_view method, json::object params) {
  return begin(method, std::move(params)).get();
}
PendingReply Client::begin_call(std::string_view tool, json::object arguments) {
  return begin("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}});
}
PendingReply Client::begin(std::string_view method, json::object params) {
  auto request = std::make_shared<PendingReply::State>(PendingReply::State{
      .client = state_.get(), .method = std::string(method), .params = std::move(params)});
  state_->begin(request, request->params);
  state_->run();
  return PendingReply(std::move(request));
}
void Client::notify(std::string_view method, json::object params) {
  state_->post({{"jsonrpc", "2.0"}, {"method", method}}, std::move(params));
  state_->run();
}

std::vector<json::object> Client::take_notifications(std::string_view method) {
  std::vector<json::object> out;
  std::erase_if(state_->notifications, [&](auto& each) {
    if (each.first != method) return false;
    out.push_back(std::move(each.second));
    return true;
  });
  return out;
}
const json::object& Client::server_info() const {
  return state_->about;
}

void Client::run() {
  state_->run();
}
void Client::advance(std::chrono::nanoseconds time) {
  state_->advance(at_most_forever(time));
}

}  // namespace sluice::testing
