#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "json/json.hpp"
#include "protocol/client_capabilities.hpp"
#include "protocol/logging_level.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"
#include "server/sessions/change.hpp"
#include "server/sessions/session_storage.hpp"
#include "stream/stream.hpp"

namespace sluice {

class StandaloneStream;

/// The error message for a request whose session does not exist or belongs to another principal.
inline constexpr std::string_view kNoSuchSession =
    "Session not found; it has ended or expired: begin another with initialize";

/// The error for a subscription for which the client has no memory left.
Error no_memory_for_subscriptions();
/// The bytes that a subscription takes. A change of the resource that waits to be told takes as
/// many again. They are reserved with the subscription, so that no change is lost for lack of
/// memory.
constexpr std::size_t memory_of_subscription(std::string_view uri) {
  return 2 * (128 + uri.size());
}

/// What the server and a client of the session eras (2024-11-05 to 2025-11-25) have agreed on with
/// `initialize`, and what is under way between them. Thread-safe, because its requests may be on
/// any loop. Callbacks run on the loop they were given with, after the call that causes them.
class Session {
 public:
  /// `id` identifies the session to its client. It is empty on transports where the connection is
  /// the session. `resume_window` is how long a call continues after its caller has gone.
  Session(std::string id, std::string principal, const Revision& revision, ClientDescription client,
          Duration resume_window = {});

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const std::string& principal() const { return principal_; }
  /// The principal that owns the session's own streams, so that nobody finds them by the caller's.
  [[nodiscard]] std::string stream_principal() const { return "session:" + id_; }
  [[nodiscard]] const Revision& revision() const { return *revision_; }
  [[nodiscard]] const ClientCapabilities& capabilities() const { return client_.capabilities; }
  /// What the client says about itself; null: nothing.
  [[nodiscard]] const std::shared_ptr<const ClientInfo>& client_info() const {
    return client_.info;
  }
  /// What handlers keep for it, unless its connection keeps it.
  [[nodiscard]] SessionStorage& storage();
  [[nodiscard]] Duration resume_window() const { return resume_window_; }

  // --- what the client set -------------------------------------------------------------------

  /// The least severe level of log messages that the client wants. All, unless it has sent
  /// logging/setLevel.
  [[nodiscard]] LoggingLevel logging_level() const { return level_.load(); }
  void set_logging_level(LoggingLevel level) { level_.store(level); }
  /// Subscriptions are charged to `memory`, the share of the session's client, until they or the
  /// session end; null: there is no limit. kLimitReached beyond kMaxSubscriptions or
  /// kMaxSubscribedBytes, and without memory.
  Result<void> subscribe(const std::string& uri, std::shared_ptr<MemoryShare> memory = nullptr);
  void unsubscribe(const std::string& uri);
  [[nodiscard]] bool subscribed(const std::string& uri) const;
  /// The URIs that it has subscribed to.
  [[nodiscard]] std::set<std::string, std::less<>> subscriptions() const;
  /// Whether the client wants to hear of `change`: of lists always, of resources that it has
  /// subscribed to, and of elicitations that it was asked to open.
  [[nodiscard]] bool wants(const Change& change) const;
  /// Keeps a change that the client could not be told of, once, as long as the client wants it.
  void miss(const Change& change);
  /// Removes the next change that is kept. Nothing if there is none.
  std::optional<Change> take_missed();

  // --- requests of the client that are under way ---------------------------------------------

  /// The entry of a request. Its destructor removes it.
  class Call {
   public:
    Call(std::shared_ptr<Session> session, RequestId request_id)
        : session_(std::move(session)), request_id_(std::move(request_id)) {}
    ~Call() { session_->forget_call(request_id_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// Hands the request to a new owner: `cancel` replaces the previous cancel task. If that one is
    /// already queued, `cancel` runs as well, because the previous owner may be gone.
    void hand_over(Executor& loop, std::function<void()> cancel) {
      session_->hand_over_call(request_id_, loop, std::move(cancel));
    }

   private:
    std::shared_ptr<Session> session_;
    RequestId request_id_;
  };

  /// `cancel` runs when the client cancels the request (2025-11-25, Cancellation), or the session
  /// ends. kLimitReached beyond kMaxCalls, -32600 if `request_id` is under way already.
  static Result<std::unique_ptr<Call>> add_call(const std::shared_ptr<Session>& session,
                                                RequestId request_id, Executor& loop,
                                                std::function<void()> cancel);
  /// Cancels the request, if it is under way. If it is not, but a message of the session has yet to
  /// be handled, that may be the request: see Arrival.
  void cancel_call(const RequestId& request_id);

  /// A message that has arrived but is not known yet, because parsing it takes long. While there is
  /// one, the session remembers the last kMaxEarlyCancellations of requests that were not under
  /// way.
  class Arrival {
   public:
    explicit Arrival(std::shared_ptr<Session> session);
    ~Arrival();
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;

    /// Whether the client has cancelled the request before it was under way.
    [[nodiscard]] bool is_cancelled(const RequestId& request_id) const;

   private:
    std::shared_ptr<Session> session_;
  };

  /// A task of the session begins, or has ended.
  void add_task() { tasks_.fetch_add(1); }
  void remove_task() { tasks_.fetch_sub(1); }
  /// Whether a task has not ended.
  [[nodiscard]] bool has_tasks() const { return tasks_.load() > 0; }

  // --- requests to the client ----------------------------------------------------------------

  /// The outcome of a request to the client: the result, or the client's error.
  using Answer = std::move_only_function<void(Result<json::value>)>;
  /// Registers `answer` for the response to a request that is about to be sent. Returns the
  /// request's id as JSON text. kLimitReached beyond kMaxRequests.
  Result<RequestId> expect_response(Executor& loop, Answer answer);
  /// Remembers an elicitation in URL mode, so that the client is told when it is completed. Beyond
  /// kMaxElicitations the oldest is forgotten.
  void ask_to_open(std::string elicitation_id);
  [[nodiscard]] bool asked_to_open(std::string_view elicitation_id) const;
  /// Drops the answer for `id` without running it.
  void forget_response(const RequestId& id);
  /// Whether an answer waits for its response.
  [[nodiscard]] bool awaits_response() const;
  /// Passes a response to the answer that waits for it. Returns false if there is none.
  bool on_response(const Message& message);

  // --- streams of messages -------------------------------------------------------------------

  /// The reader of one of the streams. Its destructor removes it.
  class Reader {
   public:
    Reader(std::shared_ptr<Session> session, std::uint64_t number)
        : session_(std::move(session)), number_(number) {}
    ~Reader() { session_->forget_reader(number_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    std::shared_ptr<Session> session_;
    std::uint64_t number_;
  };

  /// Adds a reader. `close` runs when the session ends. Returns null once it has ended.
  static std::unique_ptr<Reader> add_reader(const std::shared_ptr<Session>& session, Executor& loop,
                                            std::function<void()> close);
  /// The stream for messages that belong to no request, if there is one yet.
  [[nodiscard]] std::optional<StreamId> standalone_stream() const;
  /// What appends to that stream, on its loop; null: there is no such stream.
  [[nodiscard]] std::shared_ptr<StandaloneStream> standalone_writer() const;
  /// Makes `stream`, which belongs to `loop`, the standalone stream if there is none, and keeps it.
  /// The session owns `writer` for as long as `stream` is its standalone stream. Returns the id of
  /// the standalone stream.
  StreamId offer_standalone_stream(const std::shared_ptr<ChunkStream>& stream, Executor& loop,
                                   std::shared_ptr<StandaloneStream> writer);
  /// Call when `stream` has expired.
  void forget_standalone_stream(const StreamId& stream);
  /// Discards `stream`, which belongs to `loop`, when the session ends.
  void keep(const std::shared_ptr<ChunkStream>& stream, Executor& loop);

  /// Where messages that belong to no request go, if the session's connection takes them itself.
  /// Runs on the loop that it was given with. If `state_of` is not empty, the message reports the
  /// state of what it names: a client that does not keep up is sent the last message of each name.
  /// Other messages may be left out for such a client. The same is true of the standalone stream.
  using Outlet = std::function<void(const std::string& state_of, const std::string& message)>;
  void set_outlet(Executor& loop, Outlet outlet);
  /// Sends `message` to the outlet. Returns false if there is none; there may be a standalone
  /// stream.
  bool send(const std::string& state_of, const std::shared_ptr<const std::string>& message);

  // --- lifetime ------------------------------------------------------------------------------

  /// Records that the session was used at `now`. A sweep at the same time may not see it.
  void touch(TimePoint now) { used_.store(now.time_since_epoch().count()); }
  /// When the session was last used; nothing while a call is under way or a stream is read.
  [[nodiscard]] std::optional<TimePoint> idle_since() const;
  /// Whether nothing is under way, and the session was not used for `expiry` before `now`. If
  /// something is under way, that counts as use.
  [[nodiscard]] bool expired(TimePoint now, Duration expiry);
  /// Cancels its requests, closes its readers and discards its streams. Nothing can be added
  /// afterwards.
  void end();
  [[nodiscard]] bool ended() const;

  static constexpr std::size_t kMaxSubscriptions = 1000;
  static constexpr std::size_t kMaxSubscribedBytes = std::size_t{128} << 10U;  // of their URIs
  static constexpr std::size_t kMaxCalls = 1000;
  static constexpr std::size_t kMaxEarlyCancellations = 100;
  static constexpr std::size_t kMaxEarlyId = 256;  // bytes; no longer ids are remembered
  static constexpr std::size_t kMaxRequests = 1000;
  static constexpr std::size_t kMaxElicitations = 100;

 private:
  struct PostedTask {
    Executor* loop = nullptr;
    std::function<void()> run;
    void post() const { loop->post(run); }
  };
  struct CallEntry {
    PostedTask cancel;
    bool is_cancelled = false;
  };
  struct Arrivals {
    std::size_t count = 0;
    std::deque<RequestId> cancelled;  // the newest last
  };
  struct Expected {
    Executor* loop;
    Answer answer;
  };

  struct Subscriptions {
    std::set<std::string, std::less<>> uris;
    std::size_t bytes = 0;  // of the URIs
    MemoryHold memory;
  };
  /// What the client was asked.
  struct Asked {
    std::unordered_map<RequestId, Expected> expected;
    std::vector<std::string> elicitations;  // in URL mode; the newest last
  };

  struct Kept {
    Executor* loop;
    std::weak_ptr<ChunkStream> stream;
    void discard() const;
  };
  struct Streams {
    std::optional<StreamId> standalone;
    std::shared_ptr<StandaloneStream> standalone_writer;
    std::vector<Kept> kept;
    std::size_t sweep_at = 8;  // the size of `kept` at which expired streams are dropped from it
  };
  struct Connected {
    Executor* loop;
    Outlet outlet;
  };

  Asked& asked() {
    if (asked_ == nullptr) asked_ = std::make_unique<Asked>();
    return *asked_;
  }
  void hand_over_call(const RequestId& request_id, Executor& loop, std::function<void()> cancel);
  [[nodiscard]] bool wants_locked(const Change& change) const;
  void forget_missed_locked(const Change& change);
  void forget_call(const RequestId& request_id);
  void forget_reader(std::uint64_t number);
  Streams& streams_locked();
  void keep_locked(const std::shared_ptr<ChunkStream>& stream, Executor& loop);

  const std::string id_;
  const std::string principal_;
  const Revision* const revision_;
  const ClientDescription client_;
  const Duration resume_window_;
  std::atomic<LoggingLevel> level_ = LoggingLevel::debug;
  std::atomic<std::uint32_t> tasks_ = 0;  // that have not ended
  std::atomic<TimePoint::rep> used_ = 0;

  mutable std::mutex mutex_;
  bool ended_ = false;
  std::uint64_t last_number_ = 0;
  std::unique_ptr<Subscriptions> subscriptions_;  // null before the first
  std::unique_ptr<MissedChanges> missed_;         // null before the first
  std::unique_ptr<Asked> asked_;                  // null before the first
  std::unique_ptr<SessionStorage> storage_;       // null before the first use
  std::unique_ptr<Streams> streams_;              // null before the first
  std::unique_ptr<Connected> connected_;          // null: there is no outlet
  std::unique_ptr<Arrivals> arrivals_;            // null while there are none
  std::unordered_map<RequestId, CallEntry> calls_;
  std::map<std::uint64_t, PostedTask> readers_;  // most sessions have at most one
};

}  // namespace sluice
