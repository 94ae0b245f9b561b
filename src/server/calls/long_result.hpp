#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/client_memory.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/content.hpp"

namespace sluice {

/// A result that is so long that a worker checks it and writes the response: that takes long
/// enough for others on the loop to notice. Belongs to its loop. Destroyed, it takes back what the
/// worker has not begun.
class LongResult {
 public:
  /// Bytes of text that are worth it.
  static constexpr std::size_t kLong = std::size_t{64} << 10U;

  static bool is_long(const ToolResult& result);
  /// Bytes that a result holds, about: of a value with many parts, only some are looked at.
  static std::size_t size_of(const ToolResult& result);

  /// Makes the response, or the Error that is to be one, of the result that it holds.
  using Write = std::move_only_function<Result<std::string>()>;

  /// Gives the worker its job, in the turn of `client`: `write` is called and destroyed there.
  /// `loop` outlives `workers`, and they this. `done` runs on a later turn of the loop, though this
  /// may be gone by then.
  LongResult(Write write, WorkerPool& workers, std::string client, Executor& loop,
             MemoryHold memory, Executor::Task done);
  ~LongResult();
  LongResult(const LongResult&) = delete;
  LongResult& operator=(const LongResult&) = delete;

  /// What `write` has made, when it is done.
  [[nodiscard]] Result<std::string>& response();

 private:
  struct Work;

  std::shared_ptr<Work> work_;
  WorkerPool* workers_;
  std::string client_;
  WorkerPool::JobId job_;
  MemoryHold memory_;  // of the result
};

/// The members of a result (JSON members without braces), not written yet.
struct UnwrittenMembers {
  std::size_t bytes;  // of what they are written of, about
  std::move_only_function<std::string()> write;
};

}  // namespace sluice
