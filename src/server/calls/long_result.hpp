#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/content.hpp"

namespace sluice {

/// A long result. A worker checks it and writes the response, because doing so on the loop would
/// delay others noticeably. Belongs to its loop. The destructor drops the job if the worker has not
/// started it.
class LongResult {
 public:
  /// A result with more bytes of text is long.
  static constexpr std::size_t kLong = std::size_t{64} << 10U;

  static bool is_long(const ToolResult& result);
  /// The approximate memory of a result, in bytes. Of a value with many parts, only some are
  /// examined.
  static std::size_t size_of(const ToolResult& result);

  /// Makes the response from the result that it holds. Returns the Error to answer with, if the
  /// result cannot be sent.
  using Write = std::move_only_function<Result<std::string>()>;

  /// Queues the job for `client`: a worker calls and destroys `write`. `loop` must outlive
  /// `workers`, and `workers` must outlive this object. `done` runs in a later turn of the loop,
  /// even if this object has been destroyed by then, unless that was before a worker took the job.
  /// If the pool refuses the job, the response is the Error kBusy.
  LongResult(Write write, WorkerPool& workers, std::string client, Executor& loop,
             MemoryHold memory, Executor::Task done);
  ~LongResult();
  LongResult(const LongResult&) = delete;
  LongResult& operator=(const LongResult&) = delete;

  /// The response, or the Error to answer with. Call it only once `done` has been called.
  [[nodiscard]] Result<std::string>& response();

 private:
  struct Work;

  std::shared_ptr<Work> work_;
  WorkerPool* workers_;
  std::string client_;
  WorkerPool::JobId job_;
  MemoryHold memory_;  // of the result
};

/// A result as JSON members without braces: its own, and those of its `_meta`.
struct ResultMembers {
  ResultMembers(std::string own, std::string of_meta = {})  // NOLINT(google-explicit-constructor)
      : members(std::move(own)), meta(std::move(of_meta)) {}

  std::string members;
  std::string meta;
};

/// The members of a result that are still to be written.
struct UnwrittenMembers {
  std::size_t bytes;  // the approximate size of the data that they are written from
  std::move_only_function<ResultMembers()> write;
};

}  // namespace sluice
