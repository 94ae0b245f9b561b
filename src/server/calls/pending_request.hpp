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

#include "core/client_memory.hpp"
#include "core/error.hpp"
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

/// A request that is answered later, whatever kind of outlet its messages and its answer go to. It
/// is answered exactly once or cancelled: by its handler, by what ends it, or, if it is dropped
/// unanswered, by its own end. Belongs to the loop of the request. Calls begins them.
///
/// A call is cancelled when its caller goes away, and in a session over HTTP when it does not come
/// back within the session's resume window. One that runs as a task has no caller: what it says and
/// its answer go to the task's record.
class PendingRequest final : public std::enable_shared_from_this<PendingRequest>,
                             public OutletEvents {
 public:
  /// What is known of the request.
  struct Details {
    RequestId id;
    RequestContext context;
    std::shared_ptr<Session> session = {};     // or null
    std::unique_ptr<InputRounds> rounds = {};  // answered before; null if it cannot be asked so
    const CompiledTool* tool = nullptr;        // of the offer; whose result it is, or null
    CallPermit permit = {};
    MemoryHold memory = MemoryHold();       // of what it keeps of the request
    std::shared_ptr<TaskRecord> task = {};  // that it runs as, or null
  };

  PendingRequest(Details details, Calls& calls, RefPtr<LoopCatalog> catalog);
  ~PendingRequest() override;
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;

  /// Told how the request ends. Or null.
  void set_watch(std::unique_ptr<RequestWatch> watch) {
    if (watch == nullptr) return;
    watch->watch(*this);
    rare().watch = std::move(watch);
  }

  /// Told when to go on and when to stop. Not owned; reset to null before it goes.
  void set_producer(StreamProducer* producer) { producer_ = producer; }

  // What comes before the response. False: wait for the producer's on_writable(). Dropped when the
  // caller did not ask for it.

  /// Text for the caller to see, as the message of a progress notification.
  bool emit(std::string_view text);
  /// A progress notification. What does not rise from one to the next, texts included, is sent as
  /// the least that does (2026-07-28, Progress): a client may take what falls for an error.
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
  /// its request (check_answer()). Any number of questions may be open at once. Of no requests it
  /// gets none at once.
  ///
  /// In a session the requests go out and `answer` waits for the responses. From 2026-07-28 on the
  /// call ends with an InputRequiredResult, and the client comes back with a new call that has the
  /// answers: so a handler is run again from its start, must not do before asking what may not be
  /// done twice, and asks by the same keys each time. `answer` is then destroyed without a call.
  ///
  /// A task does not end so: it waits until its client has answered, in all revisions.
  ///
  /// What is returned takes back what the client has not answered: for an asker that does not wait
  /// any more. It may be empty, and does nothing when there is nothing to take back. A call that
  /// ends takes back whatever it has asked.
  using Answer = std::move_only_function<void(Result<std::vector<json::value>>)>;
  using Withdraw = std::move_only_function<void()>;
  Withdraw ask(std::vector<InputRequest> requests, Answer answer);
  /// Why ask() would fail at once.
  [[nodiscard]] std::optional<Error> cannot_ask(const std::vector<InputRequest>& requests) const;

  /// Goes on as a task, if the tool `asks_first` and this client's call of it is to become one:
  /// the call is answered, and what it returns is the call to go on with. Else that is this one.
  /// kLimitReached when there are too many tasks.
  Result<std::shared_ptr<PendingRequest>> begin_task();
  using BeginTask =
      std::move_only_function<Result<std::shared_ptr<PendingRequest>>(PendingRequest* call)>;
  void set_begin_task(BeginTask begin) { rare().begin_task = std::move(begin); }

  // The answer; exactly one of these, once. After it, and after cancellation, they do nothing.
  /// A result that CompiledTool::check() refuses makes an error of it. A long one is answered when
  /// a worker has checked and written it; until then the call can be stopped.
  void complete(ToolResult result);
  /// A result with these members, which a worker writes if they are long.
  void complete(UnwrittenMembers members);
  /// A result with these members (JSON members without braces), and these of its `_meta`.
  void complete(std::string_view members, std::string_view meta);
  void fail(const Error& failure);
  /// This whole response.
  void answer_with(std::string response);
  /// Answers with an existing stream of the caller instead: its deltas are emitted, its text is
  /// the result.
  void follow(const std::string& stream_id);

  /// Stops the call without an answer.
  void cancel();
  /// Stops the call, and answers it with `error`.
  void abandon(const Error& error);

  /// Whether it is answered or cancelled.
  [[nodiscard]] bool over() const { return over_; }
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
  /// What it holds for its request, for a call that goes on with that.
  MemoryHold take_memory();
  /// Its client's share in the memory of all streams; null once it is over.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory() const;
  /// Those of its loop; null once it is over.
  [[nodiscard]] Calls* calls() const { return calls_; }
  /// The loop this call belongs to.
  [[nodiscard]] Executor& executor() const { return *executor_; }

 private:
  friend class Calls;
  friend class SessionQuestions;

  // OutletEvents
  std::shared_ptr<ChunkStream> begin_stream(std::string finder) override;
  void on_outlet_writable() override;
  void on_outlet_closed(DisconnectReason reason) override;

  /// The only way to an end: what is told to whom is up to the caller, which gets the outlet. Null
  /// if the call was over before.
  std::shared_ptr<CallOutlet> end();
  void conclude(CallAnswer answer, std::optional<int> error = {});
  void conclude(CallAnswer answer, Result<std::string> response);
  void write_later(CallAnswer answer, std::size_t bytes, LongResult::Write write);
  void on_written();
  void fail_now(const Error& failure);
  /// Whether its answer is being written.
  [[nodiscard]] bool is_answered() const { return rare_ != nullptr && rare_->writing != nullptr; }
  [[nodiscard]] CallAnswer answer_of(const ToolResult& result) const;
  void stop(bool leaves_outlet);
  [[nodiscard]] double next_progress(double wanted) const;
  bool send_progress(double progress, std::optional<double> total, std::string_view message);
  void ask_in_rounds(std::vector<InputRequest> requests, Answer answer);
  Withdraw ask_in_session(std::vector<InputRequest> requests, Answer answer);
  void forget(const SessionQuestions& questions);

  /// An answer whose response a worker writes.
  struct Writing {
    std::shared_ptr<PendingRequest> keep;  // whose answer it is
    CallAnswer answer;                     // all of it but the response
    std::unique_ptr<LongResult> result;
  };
  /// What few requests have, so that an open call is small.
  struct Rare {
    std::unique_ptr<InputRounds> rounds;  // null in a session
    std::unique_ptr<RequestWatch> watch;  // null without middleware
    std::shared_ptr<TaskRecord> task;     // null if it does not run as one
    MemoryHold memory;                    // until it is over
    BeginTask begin_task;
    std::string key;  // idempotency_key() without rounds, if somebody has asked
    std::vector<std::shared_ptr<SessionQuestions>> questions;    // that the client has not answered
    double progress = -std::numeric_limits<double>::infinity();  // that was last sent as a message
    bool reports = false;  // the handler has said how far it is, beside its texts
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
  [[nodiscard]] bool carries() const { return !over_ && outlet_->carries(); }

  std::shared_ptr<const CallRequest> request_;
  CallPermit permit_;
  Calls* calls_;              // null once it is over
  const CompiledTool* tool_;  // or null
  std::uint32_t number_ = 0;  // among those of calls_
  bool over_ = false;
  Executor* executor_;
  RefPtr<LoopCatalog> catalog_;  // what it is a request of
  StreamProducer* producer_ = nullptr;
  std::shared_ptr<CallOutlet> outlet_;  // null once it is over
  std::shared_ptr<Session> session_;    // or null
  std::unique_ptr<Rare> rare_;          // null if there is none of it
};

}  // namespace sluice
