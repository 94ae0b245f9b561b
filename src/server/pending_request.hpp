#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/json.hpp"
#include "protocol/input_rounds.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/definition.hpp"
#include "server/offer.hpp"
#include "server/reply_channel.hpp"
#include "server/request_watch.hpp"
#include "server/session.hpp"
#include "server/task_record.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

class ResultWriter;
class StreamService;
struct CompiledTool;

/// A request that is answered later. What it emits goes to the caller before the response, through
/// a stream of its own with a stream's order, back-pressure and limits.
///
/// In a session over HTTP that stream is resumable: the caller's connection may break, and the call
/// goes on for the session's resume window, until its caller is back (2025-11-25, Streamable
/// HTTP). Otherwise the caller's going away cancels it. Belongs to the loop of the request.
///
/// One that runs as a task has no caller: what it emits and its answer go to the task's record.
class PendingRequest final : public std::enable_shared_from_this<PendingRequest>,
                             private ChunkEncoder {
 public:
  /// What is known of the request.
  struct Details {
    RequestId id;
    RequestContext context;
    std::string principal;
    std::shared_ptr<Session> session;     // or null
    std::unique_ptr<InputRounds> rounds;  // what it has answered before; null if it cannot be asked
    const CompiledTool* tool = nullptr;   // of the offer; whose result it is
    std::shared_ptr<TaskRecord> task = {};  // that it runs as; null if it has a channel
  };

  PendingRequest(Details details, std::shared_ptr<ReplyChannel> channel, StreamService& service,
                 RefPtr<LoopOffer> offer);
  ~PendingRequest() override;
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;

  /// Connects the call to its channel. Once, right after construction.
  void open();

  /// Told how the request ends. Or null.
  void set_watch(std::unique_ptr<RequestWatch> watch) {
    if (watch != nullptr) rare().watch = std::move(watch);
  }

  /// Told when to go on and when to stop. Not owned; reset to null before it goes.
  void set_producer(StreamProducer* producer);

  // What comes before the response. False: wait for the producer's on_room(). Dropped when the
  // caller did not ask for it.

  /// Text for the caller to see, as the message of a progress notification.
  bool emit(std::string_view text);
  /// A progress notification: `progress` rises from one to the next.
  bool progress(double progress, std::optional<double> total, std::string_view message);
  /// A log message; `data` is JSON text, `logger` may be empty.
  bool log(LoggingLevel level, std::string_view logger, std::string_view data);
  /// Any notification that belongs to this request; `params` is the JSON text of an object.
  bool notify(std::string_view method, std::string_view params);
  /// A whole message.
  bool send(std::string_view message);

  /// Sends what was emitted now instead of at the end of the loop's turn.
  void flush();
  /// Closes the caller's connection, which comes back after `retry` and misses nothing (SEP-1699).
  /// Does nothing where that is not possible.
  void disconnect(std::chrono::milliseconds retry);

  /// Asks the client. `answer` gets the result of each request in their order, or the first error:
  /// -32021 if the client has not declared what it would need, -32602 if an answer does not fit
  /// its request (check_answer()).
  ///
  /// In a session the requests go out and `answer` waits for the responses. From 2026-07-28 on the
  /// call ends with an InputRequiredResult, and the client comes back with a new call that has the
  /// answers: so a handler is run again from its start, must not do before asking what may not be
  /// done twice, and asks by the same keys each time. `answer` is then destroyed without a call.
  ///
  /// A task does not end so: it waits until its client has answered, in all revisions.
  using Answer = std::move_only_function<void(Result<std::vector<json::value>>)>;
  void ask(std::vector<InputRequest> requests, Answer answer);
  /// Why ask() would fail at once.
  [[nodiscard]] std::optional<Error> cannot_ask(const std::vector<InputRequest>& requests) const;

  /// Goes on as a task, if the tool `asks_first` and this client's call of it is to become one:
  /// the call is answered, and what it returns is the call to go on with. Else that is this one.
  /// -32010 when there are too many tasks.
  Result<std::shared_ptr<PendingRequest>> begin_task();
  using BeginTask =
      std::move_only_function<Result<std::shared_ptr<PendingRequest>>(PendingRequest* call)>;
  void set_begin_task(BeginTask begin) { rare().begin_task = std::move(begin); }

  // The answer; exactly one of these, once. After cancellation they do nothing.
  /// A result that does not follow the tool's output schema makes an error of it.
  void complete(const ToolResult& result);
  /// A result with these members (JSON members without braces), and these of its `_meta`.
  void complete(std::string_view members, std::string_view meta);
  /// The same with `ttlMs` and `cacheScope` where the revision has them.
  void complete_cacheable(std::string_view members);
  void fail(const Error& error);
  /// This whole response.
  void answer_with(std::string response);
  /// Answers with an existing stream of the caller instead: its deltas are emitted, its text is
  /// the result.
  void follow(const std::string& stream_id);

  /// Stops the call without an answer.
  void cancel();

  /// Whether it is answered or cancelled.
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] const RequestId& id() const { return id_; }
  [[nodiscard]] const std::string& principal() const { return principal_; }
  /// The tool whose output schema the result must follow, or null.
  [[nodiscard]] const CompiledTool* tool() const {
    return rare_ == nullptr ? nullptr : rare_->tool;
  }
  [[nodiscard]] const RefPtr<LoopOffer>& offer() const { return offer_; }
  [[nodiscard]] const RequestContext& context() const { return context_; }
  /// What the client has declared, with the request or for its session.
  [[nodiscard]] const ClientCapabilities& client() const;
  /// The loop this call belongs to.
  [[nodiscard]] Executor& executor() const;

 private:
  class Sink;

  /// Chunks as notifications/progress, the last one as the response.
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override;
  void append_progress(std::string& out, std::uint64_t progress,
                       std::string_view escaped_message) const;
  /// The response, from the end of the stream that came before it.
  void append_response(std::string& out, const ChunkStream& stream) const;
  bool start_stream();
  void read_through_channel();
  /// `error`: its code, 0 for a result.
  void answer(int http_status, std::string message, int error = 0);
  void end_task(TaskRecord::Ending ending, std::string_view why, std::string_view response);
  void on_departure(Departure departure);
  /// The connection is no longer there; the stream waits for another.
  void detach();
  /// Looks after the resume window whether somebody reads the stream, and goes on looking.
  void await_reader();
  /// Over: nothing of the session waits for this call any more.
  void leave_session();
  void ask_in_rounds(const std::vector<InputRequest>& requests, Answer answer);
  void ask_in_session(std::vector<InputRequest> requests, Answer answer);
  void close();

  /// What only a call in a session needs.
  struct InSession;

  /// What few requests have, so that an open stream is small.
  struct Rare {
    std::unique_ptr<InputRounds> rounds;  // null in a session
    std::unique_ptr<RequestWatch> watch;  // null without hooks
    const CompiledTool* tool = nullptr;   // null if it has no output schema
    std::shared_ptr<TaskRecord> task;     // null once it has ended
    BeginTask begin_task;
    std::uint64_t emitted = 0;  // progress notifications, of a task or a session
  };
  Rare& rare() {
    if (rare_ == nullptr) rare_ = std::make_unique<Rare>();
    return *rare_;
  }
  [[nodiscard]] TaskRecord* task() const { return rare_ == nullptr ? nullptr : rare_->task.get(); }
  [[nodiscard]] InputRounds* rounds() const {
    return rare_ == nullptr ? nullptr : rare_->rounds.get();
  }

  [[nodiscard]] bool resumable() const;
  [[nodiscard]] bool can_send() const;

  RequestId id_;
  RequestContext context_;
  std::string principal_;
  std::shared_ptr<ReplyChannel> channel_;  // null once it is answered, or its caller gone
  StreamService* service_;
  RefPtr<LoopOffer> offer_;  // what it is a request of
  StreamProducer* producer_ = nullptr;
  std::shared_ptr<ChunkStream> stream_;
  std::unique_ptr<PushCursor> cursor_;
  std::unique_ptr<InSession> in_session_;  // null without a session
  std::unique_ptr<Rare> rare_;             // null if there is none of it
  bool over_ = false;
};

}  // namespace sluice
