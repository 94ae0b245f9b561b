#pragma once

#include <deque>
#include <expected>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "protocol/wire_schemas_test_support.hpp"
#include "server/calls/pending_request.hpp"
#include "server/channel/framing.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/dispatch/dispatcher.hpp"
#include "server/sessions/session_registry.hpp"
#include "server/streams/stream_service.hpp"
#include "server/workers/long_messages.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

// What the tests of this folder share.

/// A channel that records what it is given. Messages of a stream arrive as SSE events.
class RecordingChannel final : public ReplyChannel {
 public:
  void reply(int http_status, std::string message) override {
    check.expect_valid(message);
    status = http_status;
    replies.push_back(std::move(message));
    done();
  }
  bool write(std::string_view block) override {
    ++blocks;
    written.append(block);
    check_events();
    if (const auto told = std::exchange(when_written, {})) told();
    return writable;
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {
    ++finishes;
    done();
  }
  void drop(const Error& error) override {
    dropped = error;
    done();
  }
  [[nodiscard]] const Framing& framing() const override { return sse_framing(); }
  [[nodiscard]] bool can_stream() const override { return streams; }
  void on_close(CloseTask task) override {
    // The old task may own what owns this channel, so it is destroyed last.
    const CloseTask old = std::exchange(close_task_, std::move(task));
    if (gone_) close();
  }
  void on_drain(Executor::Task task) override { drain_task_ = std::move(task); }
  std::unique_ptr<Session::Call> give_entry() override { return std::move(entry); }

  /// The caller goes away.
  void close(DisconnectReason reason = DisconnectReason::gone) {
    if (CloseTask task = std::exchange(close_task_, {})) task(reason);
  }
  /// The caller has gone, but nobody has been told yet.
  void vanish() { gone_ = true; }
  /// The caller can take more.
  void drain() {
    writable = true;
    if (drain_task_) drain_task_();
  }
  [[nodiscard]] bool waits_for_close() const { return static_cast<bool>(close_task_); }

  std::function<void()> when_written;  // called once
  SentCheck check;                     // of the request that this channel answers
  int status = 0;
  std::vector<std::string> replies;
  std::string written;
  int blocks = 0;
  int finishes = 0;
  std::optional<Error> dropped;
  bool writable = true;
  bool streams = true;
  std::unique_ptr<Session::Call> entry;  // of its request in the session, or null

 private:
  void done() { const CloseTask released = std::exchange(close_task_, {}); }

  /// Checks the messages in the events since the last check.
  void check_events() {
    static constexpr std::string_view kData = "data: ";
    for (std::size_t end; (end = written.find('\n', checked_)) != std::string::npos;
         checked_ = end + 1) {
      const std::string_view line = std::string_view(written).substr(checked_, end - checked_);
      if (line.starts_with(kData)) check.expect_valid(line.substr(kData.size()));
    }
  }

  bool gone_ = false;
  std::size_t checked_ = 0;  // the characters of `written` that have been checked
  CloseTask close_task_;
  Executor::Task drain_task_;
};

class RecordingCaller final : public Caller {
 public:
  explicit RecordingCaller(std::string principal = "alice", bool isolated = true)
      : principal_{std::move(principal), isolated} {}
  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override {
    if (full) return fail(kBusy, "Too many unanswered requests");
    ids.push_back(id);
    channels.push_back(std::make_shared<RecordingChannel>());
    channels.back()->streams = streams;
    channels.back()->check = check;
    return channels.back();
  }
  Result<std::shared_ptr<Session>> session() override { return agreed; }
  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override {
    agreed = std::make_shared<Session>(session_id, principal_.id, revision, client);
    return agreed;
  }
  RetainedCaller keep() override {
    return {std::shared_ptr<Caller>(std::shared_ptr<Caller>(), this)};
  }
  RecordingChannel& channel() { return *channels.back(); }

  SentCheck check;         // of the request being handled
  std::string session_id;  // of the session that initialize begins
  std::shared_ptr<Session> agreed;
  bool full = false;
  bool streams = true;
  std::vector<RequestId> ids;
  std::vector<std::shared_ptr<RecordingChannel>> channels;

 private:
  Principal principal_;
};

/// Counts its calls.
struct CountingStreamProducer final : StreamProducer {
  void on_writable() override { ++writable_calls; }
  void on_cancel() override { ++cancels; }
  int writable_calls = 0;
  int cancels = 0;
};

/// A server with `loops` event loops and no network. Its tool `later` stores its calls in `calls`,
/// and its method `run` stores its streams in `runs`.
class ServerBench {
 public:
  explicit ServerBench(std::size_t loops = 1)
      : policy({}, std::size_t{64} << 20U, 1000, 1000), executors(loops) {
    definition.name = "test";
    definition.version = "1";
    definition.instructions = "Be \"kind\"";
    definition.tools.push_back(
        {.name = "echo",
         .description = "Says it again",
         .input_schema = R"({"type":"object"})",
         .handler = Tool::Immediate([](const json::object& arguments) -> Result<ToolResult> {
           const json::value* const text = arguments.if_contains("text");
           if (text == nullptr || !text->is_string()) return fail(-32602, "text must be a string");
           return ToolResult{.text = std::string(text->get_string()),
                             .structured_text = R"({"n":1})",
                             .is_error = arguments.contains("wrong")};
         })});
    definition.tools.push_back(
        {.name = "later",
         .description = "",
         .input_schema = R"({"type":"object"})",
         .handler = Tool::Deferred([this](const json::object& arguments,
                                          std::shared_ptr<PendingRequest> call) -> Result<void> {
           if (arguments.contains("refuse")) return fail(-32602, "refused");
           calls.push_back(std::move(call));
           return {};
         })});
    definition.stream_methods.push_back(
        {.name = "run",
         .handler = [this](const json::object& params, const MethodCaller& /*caller*/,
                           const std::shared_ptr<ChunkStream>& stream) -> Result<void> {
           if (params.contains("refuse")) return fail(-32602, "refused");
           run_params.push_back(to_json(params));
           runs.push_back(stream);
           return {};
         },
         .status = [](const ChunkStream&) { return std::string(R"("queue_position":3)"); }});
    std::vector<StreamShard> shards;
    for (std::size_t i = 0; i < loops; ++i) {
      managers.push_back(std::make_unique<StreamManager>(executors[i], policy, i, loops));
      shards.push_back({&executors[i], managers.back().get()});
    }
    for (std::size_t i = 0; i < loops; ++i) {
      services.push_back(std::make_unique<StreamService>(definition, shards, i));
    }
    changes = std::make_unique<ChangeNotifier>(shards);
    tasks = std::make_unique<TaskStore>(TaskLimits{}, executors[0].clock(), *changes);
    serve();
  }
  ~ServerBench() {
    run_all();
    for (const auto& manager : managers) manager->end_all({});
    run_all();
  }
  ServerBench(const ServerBench&) = delete;
  ServerBench& operator=(const ServerBench&) = delete;

  /// Rebuilds the dispatcher from the changed definition.
  void serve() {
    results.emplace(definition);
    catalog = RefPtr(new LoopCatalog(Catalog::make(definition).value(), *results, executors[0]));
    dispatcher.emplace(catalog, *services[0], sessions, quota, *changes, *tasks, long_messages,
                       checks);
  }

  /// The response of loop 0, or "" if it comes later or never. Everything that a RecordingCaller is
  /// sent must follow the schema of the revision it speaks.
  std::string send(std::string_view text, Caller& caller,
                   const MirroredHeaders* headers = nullptr) {
    std::string out;
    const std::expected<Message, MessageError> message = parser.parse(text);
    auto* const recording = dynamic_cast<RecordingCaller*>(&caller);
    if (recording != nullptr && message) recording->check = check_of(*message, *recording, headers);
    outcome = message ? dispatcher->dispatch(*message, headers, caller, out)
                      : Dispatcher::reject(message.error(), out);
    if (recording != nullptr) recording->check.expect_valid(out);
    return out;
  }
  /// How the answers to `message` are checked.
  static SentCheck check_of(const Message& message, const RecordingCaller& caller,
                            const MirroredHeaders* headers) {
    SentCheck check{&newest_revision(Era::legacy), std::string(message.method)};
    if (is_self_contained(message)) {
      check.revision = &newest_revision(Era::modern);
    } else if (message.method == "initialize") {
      const json::value* const version =
          message.params == nullptr ? nullptr : message.params->if_contains("protocolVersion");
      if (version != nullptr && version->is_string()) {
        check.revision = &negotiate_initialize(version->get_string());
      }
    } else if (caller.agreed != nullptr) {
      check.revision = &caller.agreed->revision();
    } else if (headers != nullptr && find_revision(headers->protocol_version) != nullptr) {
      check.revision = find_revision(headers->protocol_version);
    }
    return check;
  }
  /// Sends a request with the id 1 and these members as params.
  std::string request(std::string_view method, std::string_view params, Caller& caller) {
    return send(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) + R"(","params":{)" +
                    std::string(params) + "}}",
                caller);
  }

  /// Runs all loops until nothing is left to do.
  void run_all() {
    for (bool busy = true; busy;) {
      busy = false;
      for (ManualExecutor& executor : executors) busy = executor.run() > 0 || busy;
    }
  }

  /// A stream of `loop` that the principal alice has started.
  std::shared_ptr<ChunkStream> start(std::size_t loop) {
    return managers[loop]->start({.principal = "alice", .method = "run"}).value();
  }

  StreamPolicy policy;
  ClientQuota quota{100};  // of calls
  std::deque<ManualExecutor> executors;
  ServerDefinition definition;
  std::vector<std::unique_ptr<StreamManager>> managers;
  std::vector<std::unique_ptr<StreamService>> services;
  SessionRegistry sessions{{}, executors[0].clock()};
  std::unique_ptr<ChangeNotifier> changes;
  std::unique_ptr<TaskStore> tasks;
  std::optional<ResultWriter> results;
  RefPtr<LoopCatalog> catalog;
  LongMessages long_messages{executors[0], nullptr, nullptr};
  LongMessages checks{executors[0], nullptr, nullptr};
  std::optional<Dispatcher> dispatcher;
  MessageParser parser;
  Outcome outcome;
  std::vector<std::shared_ptr<PendingRequest>> calls;
  std::vector<std::string> run_params;
  std::vector<std::shared_ptr<ChunkStream>> runs;
};

/// An empty resource.
inline Resource resource_at(std::string uri) {
  return {.uri = std::move(uri),
          .name = "a resource",
          .description = "",
          .mime_type = "text/plain",
          .read = [](const std::string&) { return ResourceResult(); }};
}

inline constexpr std::string_view kPing = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
inline constexpr std::string_view kPong = R"({"jsonrpc":"2.0","id":1,"result":{}})";

/// A ping with that id, which is JSON.
inline std::string ping(std::string_view id) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"ping"})";
}

/// {"jsonrpc":"2.0","id":1,"result":<result>}.
inline std::string result_text(std::string_view result) {
  return R"({"jsonrpc":"2.0","id":1,"result":)" + std::string(result) + "}";
}

/// The code of an error response, or 0.
inline int error_code(std::string_view response) {
  const Result<json::value> value = parse_json(response);
  if (!value || !value->is_object()) return 0;
  const json::value* const error = value->get_object().if_contains("error");
  return error == nullptr ? 0 : static_cast<int>(error->at("code").as_int64());
}

}  // namespace sluice
