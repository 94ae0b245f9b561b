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

#include "core/client_memory.hpp"
#include "core/executor.hpp"
#include "net/http/http_exchange.hpp"
#include "rpc/message.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {

/// Messages that one batch may have.
inline constexpr std::size_t kMaxBatch = 100;

class LongMessages;

/// A long message, or a long batch, that is parsed, or waits for it. Belongs to its loop.
/// Destroyed, it makes room for the next.
class LongMessage final : public PreparedBody {
 public:
  ~LongMessage() override;
  LongMessage(const LongMessage&) = delete;
  LongMessage& operator=(const LongMessage&) = delete;

  /// What has been parsed, for longer than this lives. Nothing is asked of this afterwards.
  std::unique_ptr<LongMessage> take();

  [[nodiscard]] bool is_ready() const override { return is_ready_; }
  [[nodiscard]] std::string_view text() const override;

  // When it is ready.

  /// As MessageParser::parse(), of what is no batch. Lives as long as this.
  [[nodiscard]] const std::expected<Message, MessageError>& message() const;
  /// As MessageParser::parse_batch() with kMaxBatch.
  [[nodiscard]] const std::expected<std::vector<std::string_view>, MessageError>& batch() const;
  /// That of the batch's texts, parsed. Lives as long as this.
  [[nodiscard]] const std::expected<Message, MessageError>& message(std::size_t index) const;

 private:
  friend class LongMessages;
  /// What the worker has meanwhile.
  struct Work;

  LongMessage(LongMessages& all, const std::string& principal, std::string text,
              Executor::Task ready);
  LongMessage(LongMessage&& other) noexcept;

  LongMessages* all_;
  std::string client_;
  std::shared_ptr<Work> work_;  // null once it has been taken
  Executor::Task ready_;
  CoarseHold hold_;  // of the text
  bool is_ready_ = false;
};

/// Has long messages parsed by a worker, for that takes long enough for others on the loop to
/// notice; those of one client one after another, so that the value of only one, which may be many
/// times as large as its text, is in memory. Clients have their turns at the worker, with their
/// messages on all loops. Belongs to its loop, and outlives its messages.
class LongMessages {
 public:
  /// Bytes of a message that is worth it. Parsing a shorter one takes about as long as a read.
  static constexpr std::size_t kLong = std::size_t{64} << 10U;

  /// `workers` and `memory` outlive this. Without the one messages are parsed at once; without the
  /// other there is no limit.
  LongMessages(Executor& loop, WorkerPool* workers, ClientMemory* memory)
      : loop_(&loop), workers_(workers), memory_(memory) {}
  LongMessages(const LongMessages&) = delete;
  LongMessages& operator=(const LongMessages&) = delete;

  /// What messages of `principal` count in; null: there is no limit.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory_of(const std::string& principal) const {
    return memory_ == nullptr ? nullptr : memory_->of(principal);
  }

  /// Or null.
  [[nodiscard]] WorkerPool* workers() const { return workers_; }

  static bool is_long(std::string_view text) { return text.size() > kLong; }

  /// How many there are that have not been handled. Thread-safe.
  [[nodiscard]] std::size_t under_way() const { return under_way_.load(std::memory_order_relaxed); }

  /// What else takes long and needs the message, which is no batch. On the worker's thread.
  using Check = std::move_only_function<void(const Message&)>;

  /// Parses `text`, and runs `check` if it is a message. `ready` runs on a later turn, unless the
  /// message is gone by then. When `principal` has no memory for it, what comes of it is an error
  /// that says so, with the id if it is a request.
  std::unique_ptr<LongMessage> parse(std::string text, Executor::Task ready,
                                     const std::string& principal, Check check = {});

 private:
  friend class LongMessage;
  /// One that has messages here.
  struct Client {
    std::deque<LongMessage*> waiting;
    LongMessage* current = nullptr;  // whose value is in memory, or being made
    bool is_busy = false;            // so is the worker, perhaps for one that is gone
  };
  void remove(LongMessage& message);
  void begin_next(const std::string& name);
  void end(const std::string& name, const std::shared_ptr<LongMessage::Work>& work);

  Executor* loop_;
  WorkerPool* workers_;
  ClientMemory* memory_;
  std::map<std::string, Client, std::less<>> clients_;
  std::atomic<std::size_t> under_way_ = 0;
};

}  // namespace sluice
