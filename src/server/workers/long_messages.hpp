#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "net/http/http_exchange.hpp"
#include "rpc/message.hpp"
#include "server/sessions/session.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {

/// The most messages that one batch may have.
inline constexpr std::size_t kMaxBatch = 100;

class LongMessages;

/// A long message or a long batch that has been parsed, is being parsed or waits to be. Belongs to
/// its loop. Its destruction lets the client's next message be parsed.
class LongMessage final : public PreparedBody {
 public:
  ~LongMessage() override;
  LongMessage(const LongMessage&) = delete;
  LongMessage& operator=(const LongMessage&) = delete;

  /// Moves what has been parsed into a new object, which may live longer. Do not use this object
  /// afterwards.
  std::unique_ptr<LongMessage> take();

  [[nodiscard]] bool is_ready() const override { return is_ready_; }
  [[nodiscard]] std::string_view text() const override;
  /// Says that this has arrived in `session`, whose client may cancel what it contains. Null: no
  /// session.
  void arrived_in(std::shared_ptr<Session> session);
  /// Whether the client has cancelled this request meanwhile. Nothing is to be done for it then.
  [[nodiscard]] bool is_cancelled(const Message& message) const;

  // Call these only when is_ready() returns true.

  /// The result of MessageParser::parse(), for a message that is not a batch. Valid as long as this
  /// object.
  [[nodiscard]] const std::expected<Message, MessageError>& message() const;
  /// The result of MessageParser::parse_batch() with kMaxBatch, for a batch.
  [[nodiscard]] const std::expected<std::vector<std::string_view>, MessageError>& batch() const;
  /// The parsed message at `index` of the batch. Valid as long as this object.
  [[nodiscard]] const std::expected<Message, MessageError>& message(std::size_t index) const;

 private:
  friend class LongMessages;
  /// The data that the worker uses. It may outlive this object.
  struct Work;

  LongMessage(LongMessages& all, const std::string& principal, std::string text,
              Executor::Task ready);
  LongMessage(LongMessage&& other) noexcept;

  LongMessages* all_;
  std::string client_;
  std::shared_ptr<Work> work_;  // null after take()
  Executor::Task ready_;
  CoarseHold hold_;                            // of the text
  std::unique_ptr<Session::Arrival> arrival_;  // null without a session
  bool is_ready_ = false;
};

/// Parses long messages on a worker thread, because parsing them on the loop would delay others
/// noticeably. Each loop parses the messages of one client one after another: a parsed message may
/// be many times as large as its text, so only one of them is in memory. The worker serves the
/// clients in turn, each with its messages from all loops. Belongs to its loop, and must outlive
/// its messages.
class LongMessages {
 public:
  /// A message of more bytes is long. Parsing a shorter one takes about as long as a read.
  static constexpr std::size_t kLong = std::size_t{64} << 10U;

  /// `workers` and `memory` must outlive this object. `workers` must refuse no job. If it is null,
  /// or if there is no memory for a job, messages are parsed on the loop. If `memory` is null,
  /// there is no limit.
  LongMessages(Executor& loop, WorkerPool* workers, ClientMemory* memory)
      : loop_(&loop), workers_(workers), memory_(memory) {}
  LongMessages(const LongMessages&) = delete;
  LongMessages& operator=(const LongMessages&) = delete;

  /// The memory share that messages of `principal` are charged to. Null: there is no limit.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory_of(const std::string& principal) const {
    return memory_ == nullptr ? nullptr : memory_->of(principal);
  }

  /// May be null.
  [[nodiscard]] WorkerPool* workers() const { return workers_; }

  static bool is_long(std::string_view text) { return text.size() > kLong; }

  /// The number of messages that have not been handled yet. Thread-safe.
  [[nodiscard]] std::size_t under_way() const { return under_way_.load(std::memory_order_relaxed); }

  /// More slow work on a parsed message, which is not a batch. Runs on the worker's thread.
  using Check = std::move_only_function<void(const Message&)>;

  /// Parses `text`, and then runs `check` if it is a valid message. `ready` runs at the end of the
  /// turn or later, unless the returned object has been destroyed by then. If `principal` has no
  /// memory for the text, the result of parsing is an error that says so, with the id of a request.
  std::unique_ptr<LongMessage> parse(std::string text, Executor::Task ready,
                                     const std::string& principal, Check check = {});

 private:
  friend class LongMessage;
  /// A client that has messages here. What has changed for it takes effect at the end of the turn,
  /// because destructors change it, and what begins then may lack memory.
  struct Client final : Executor::TurnHook {
    explicit Client(LongMessages& owner) : all(&owner) {}
    ~Client() override { all->loop_->forget(*this); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    void on_turn_end() override { all->begin_next(*this); }

    LongMessages* all;
    std::string_view name;  // its key in clients_
    std::deque<LongMessage*> waiting;
    LongMessage* current = nullptr;  // parsed or being parsed
    bool is_busy = false;            // a job is under way, perhaps for a destroyed message
  };
  void remove(LongMessage& message);
  /// Begins the client's next message, or forgets a client that has none.
  void begin_next(Client& client);
  /// Returns false if no worker takes the work.
  bool hand_over(Client& client, const std::shared_ptr<LongMessage::Work>& work);
  void end(Client& client, LongMessage::Work& work);

  Executor* loop_;
  WorkerPool* workers_;
  ClientMemory* memory_;
  std::map<std::string, Client, std::less<>> clients_;
  std::atomic<std::size_t> under_way_ = 0;
};

}  // namespace sluice
