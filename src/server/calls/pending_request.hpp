#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/sharing/client_memory.hpp"
#include "json/json.hpp"
#include "protocol/input_rounds.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/calls/call_outlet.hpp"
#include "server/calls/call_permit.hpp"
#include "server/calls/call_request.hpp"
#include "server/calls/long_result.hpp"
#include "server/calls/task_record.hpp"
#include "server/catalog/catalog.hpp"
#include "server/catalog/definition.hpp"
#include "server/channel/request_watch.hpp"
#include "server/sessions/session.hpp"
#include "stream/stream.hpp"

namespace sluice {

class Calls;
class SessionQuestions;
struct CompiledTool;

/// The answer to a call that is not answered in time.
inline Error call_timed_out() {
  return {kTimedOut, "The call took longer than it may", {}};
}

/// A request that is answered later. Its messages and its answer go to an outlet, of which there
/// are several kinds. The request is either cancelled or answered exactly once: by its handler, by
/// what ends it, or, if it is destroyed unanswered, by its destructor with an error. Belongs to the
/// loop of the request. Created by Calls.
///
/// A call is cancelled when its caller goes away; in a session over HTTP, only if the caller does
/// not come back within the session's resume window. A call that runs as a task has no caller: its
/// messages and its answer go to the task's record.
class PendingRequest final : public std::enable_shared_from_this<PendingRequest>,
                             public OutletEvents {
 public:
  /// What is known about the request.
  struct Details {
    RequestId id;
    RequestContext context;
    std::shared_ptr<Session> session = {};     // or null
    std::unique_ptr<InputRounds> rounds = {};  // earlier answers; null if there can be none
    const CompiledTool* tool = nullptr;        // of the catalog, or null
    CallPermit permit = {};
    MemoryHold memory = MemoryHold();       // for what is kept of the request
    std::shared_ptr<TaskRecord> task = {};  // the task that it runs as, or null
  };

  PendingRequest(Details details, Calls& calls, RefPtr<LoopCatalog> catalog);
  ~PendingRequest() override;
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;

  /// Lets handlers that begin during its lifetime read the parameters of the request, which may be
  /// null.
  class Parameters {
   public:
    Parameters(PendingRequest& request, const json::object* params);
    ~Parameters();
    Parameters(const Parameters&) = delete;
    Parameters& operator=(const Parameters&) = delete;

   private:
    friend class PendingRequest;
    Calls* calls_;  // null: the request is over
    const PendingRequest* request_;
    const json::object* params_;
    const Parameters* before_;  // the one that this one hides
  };
  /// The parameters of the request; null if there are none, or if they no longer exist.
  [[nodiscard]] const json::object* params() const;

  /// Adds an object that is told how the request ends. May be null.
  void add_watch(std::unique_ptr<RequestWatch> watch) {
    if (watch == nullptr) return;
    watch->watch(*this);
    rare().watches.push_back(std::move(watch));
  }

  /// Sets the producer, which is told when to continue and when to stop. It is not owned: reset it
  /// to null before it is destroyed.
  void set_producer(StreamProducer* producer) { producer_ = producer; }

  // These send messages before the response. They return false under backpressure: wait for the
  // producer's on_writable(). A message that the caller did not ask for is dropped.

  /// Text for the caller to see, as the message of a progress notification.
  bool emit(std::string_view text);
  /// A progress notification. A value that is not above the last one sent, by progress() or
  /// emit(), is replaced by the next larger number (2026-07-28, Progress), because a client may
  /// treat a falling value as an error.
  bool progress(double progress, std::optional<double> total, std::string_view message);
  /// A log message; `data` is JSON text, `logger` may be empty.
  bool log(LoggingLevel level, std::string_view logger, std::string_view data);
  /// Any notification that belongs to this request; `params` is the JSON text of an object.
  bool notify(std::string_view method, std::string_view params);
  /// A whole message.
  bool send(std::string_view message);

  /// Sends queued messages now instead of at the end of the loop's turn.
  void flush();
  /// Closes the caller's connection and asks the caller to reconnect after `retry`; it misses
  /// nothing (SEP-1699). Does nothing if that is not possible.
  void disconnect(std::chrono::milliseconds retry);

  /// Asks the client. `answer` gets the results in the order of the requests, or the first error:
  /// -32021 (-32600 before 2026-07-28) if the client has not declared a capability that is needed,
  /// -32602 if an answer does not fit its request (check_answer()), kLimitReached if there is no
  /// memory for the questions or the answers, which the client's share holds. Any number of
  /// questions may be open at the same time. If `requests` is empty, `answer` gets an empty list at
  /// once.
  ///
  /// In a session the requests are sent, and `answer` is called when the responses are there. From
  /// 2026-07-28 on, the call ends with an InputRequiredResult, `answer` is destroyed without being
  /// called, and the client sends a new call with the answers. The handler then runs again from its
  /// start. So, before it asks, a handler must not do anything that must not happen twice, and it
  /// must use the same keys each time.
  ///
  /// A call that runs as a task waits for the client's answers, in all revisions.
  ///
  /// The returned function withdraws what the client has not answered, when nobody waits for the
  /// answers any more. It may be empty, and does nothing if there is nothing to withdraw. A call
  /// that ends withdraws everything that it has asked.
  using Answer = std::move_only_function<void(Result<std::vector<json::value>>)>;
  using Withdraw = std::move_only_function<void()>;
  Withdraw ask(std::vector<InputRequest> requests, Answer answer);
  /// The Error that ask() would give because the client cannot be asked, or nothing.
  [[nodiscard]] std::optional<Error> cannot_ask(const std::vector<InputRequest>& requests) const;

  /// Turns the call into a task if the tool has `asks_first` and the client's calls of it become
  /// tasks: answers this call and returns the one that runs as the task, with which the handler
  /// must go on. Otherwise returns this call. Error: kLimitReached if there are too many tasks.
  Result<std::shared_ptr<PendingRequest>> begin_task();
  using BeginTask =
      std::move_only_function<Result<std::shared_ptr<PendingRequest>>(PendingRequest* call)>;
  void set_begin_task(BeginTask begin) { rare().begin_task = std::move(begin); }
  /// Whether begin_task() makes a task of it.
  [[nodiscard]] bool may_become_task() const { return rare_ != nullptr && rare_->begin_task; }

  // These answer the request. Call exactly one of them, once. After that, and after cancellation,
  // they do nothing.
  /// A result that CompiledTool::check() refuses becomes an error. A long result is sent when a
  /// worker has checked and written it; until then the call can be stopped.
  void complete(ToolResult result);
  /// Answers with a result that has these members. A worker writes them if they are long.
  void complete(UnwrittenMembers members);
  /// Answers with a result that has `members` (JSON members without braces) and, in its `_meta`,
  /// `meta` (in the same form).
  void complete(std::string_view members, std::string_view meta);
  void fail(const Error& failure);
  /// Answers with `response`, a whole JSON-RPC response.
  void answer_with(std::string response);
  /// Answers with `result`, the JSON text of an object. `is_error`: the result of a tool that says
  /// that it has failed.
  void answer_with_result(std::string_view result, bool is_error = false);
  /// Answers with an existing stream of the caller: its deltas are emitted, and its text is the
  /// result.
  void follow(const std::string& stream_id);

  /// Stops the call without an answer.
  void cancel();
  /// Stops the call, and answers it with `error`.
  void abandon(const Error& error);

  /// Whether it is answered or cancelled.
  [[nodiscard]] bool over() const { return over_; }
  /// Whether its client can be sent something before the answer.
  [[nodiscard]] bool carries() const { return !over_ && outlet_->carries(); }
  [[nodiscard]] const RequestId& id() const { return request_->id; }
  [[nodiscard]] const Principal& principal() const { return permit_.principal(); }
  /// The tool whose result it is, or null.
  [[nodiscard]] const CompiledTool* tool() const { return tool_; }
  [[nodiscard]] const RefPtr<LoopCatalog>& catalog() const { return catalog_; }
  [[nodiscard]] const RequestContext& context() const { return request_->context; }
  /// Call::idempotency_key().
  [[nodiscard]] const std::string& idempotency_key();
  /// What the client has declared, with the request or for its session.
  [[nodiscard]] const ClientCapabilities& client() const;
  /// Takes memory for what the handler gets, until the call is over. Error: kLimitReached if the
  /// client's share does not have it.
  Result<void> hold_input(std::size_t bytes);
  /// Moves out the memory that it holds for its request, for a call that continues the request.
  MemoryHold take_memory();
  /// Its client's share of the memory of all streams; null once the call is over.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory() const;
  /// The calls of its loop; null once this one is over.
  [[nodiscard]] Calls* calls() const { return calls_; }
  /// The loop this call belongs to.
  [[nodiscard]] Executor& executor() const { return catalog_->loop(); }

 private:
  friend class Calls;
  friend class SessionQuestions;

  // OutletEvents
  std::shared_ptr<ChunkStream> begin_stream(std::string finder) override;
  void on_outlet_writable() override;
  void on_outlet_closed(DisconnectReason reason) override;

  /// Ends the call; each way to end it goes through here. Returns the outlet, which the caller must
  /// tell of the end, or null if the call was over before.
  std::shared_ptr<CallOutlet> end();
  void conclude(CallAnswer answer, std::optional<int> error = {});
  void conclude(CallAnswer answer, Result<std::string> response);
  void write_later(CallAnswer answer, std::size_t bytes, LongResult::Write write);
  void on_written();
  void fail_now(const Error& failure);
  /// Whether a worker is writing its answer.
  [[nodiscard]] bool is_answered() const { return rare_ != nullptr && rare_->writing != nullptr; }
  [[nodiscard]] CallAnswer answer_of(const ToolResult& result) const;
  void stop(bool leaves_outlet);
  [[nodiscard]] double next_progress(double wanted) const;
  bool send_progress(double progress, std::optional<double> total, std::string_view message);
  void ask_in_rounds(std::vector<InputRequest> requests, Answer answer);
  Withdraw ask_in_session(std::vector<InputRequest> requests, Answer answer, MemoryHold memory);
  Result<void> hold_answers(const std::vector<json::value>& answers);
  Result<void> hold_more(std::size_t bytes, std::string_view what);
  void forget(const SessionQuestions& questions);

  /// An answer whose response a worker writes.
  struct Writing {
    std::shared_ptr<PendingRequest> keep;  // the request that it answers
    CallAnswer answer;                     // without the response
    std::unique_ptr<LongResult> result;
  };
  /// Members that few requests need. They are separate to keep a call small.
  struct Rare {
    std::unique_ptr<InputRounds> rounds;  // null if the client cannot be asked in rounds
    std::vector<std::unique_ptr<RequestWatch>> watches;
    std::shared_ptr<TaskRecord> task;  // null if it does not run as one
    MemoryHold memory;                 // for request and answers, until it is over
    BeginTask begin_task;
    std::string key;  // idempotency_key() if there are no rounds; empty until asked for
    std::vector<std::shared_ptr<SessionQuestions>> questions;    // not answered yet
    double progress = -std::numeric_limits<double>::infinity();  // sent last as a message
    bool reports = false;  // the handler reports progress itself
    std::unique_ptr<Writing> writing;
  };
  Rare& rare() {
    if (rare_ == nullptr) rare_ = std::make_unique<Rare>();
    return *rare_;
  }
  [[nodiscard]] TaskRecord* task() const { return rare_ == nullptr ? nullptr : rare_->task.get(); }
  [[nodiscard]] InputRounds* rounds() const {
    return rare_ == nullptr ? nullptr : rare_->rounds.get();
  }
  /// The member of `_meta` that its messages and its result carry; empty for most.
  [[nodiscard]] std::string_view task_meta() const;

  std::shared_ptr<const CallRequest> request_;
  CallPermit permit_;
  Calls* calls_;              // null once it is over
  const CompiledTool* tool_;  // or null
  std::uint32_t number_ = 0;  // its index in calls_
  bool over_ = false;
  RefPtr<LoopCatalog> catalog_;  // the catalog that it was made for
  StreamProducer* producer_ = nullptr;
  std::shared_ptr<CallOutlet> outlet_;  // null once it is over
  std::shared_ptr<Session> session_;    // or null
  std::unique_ptr<Rare> rare_;          // null if none of it is needed
};

}  // namespace sluice
