#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/client_memory.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "rpc/message.hpp"
#include "server/catalog/result_writer.hpp"
#include "server/catalog/tool_schemas.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {

/// A tool's result that is so long that a worker checks it and writes the response: that takes long
/// enough for others on the loop to notice. Belongs to its loop. Destroyed, it takes back what the
/// worker has not begun.
class LongResult {
 public:
  /// Bytes of text that are worth it.
  static constexpr std::size_t kLong = std::size_t{64} << 10U;

  static bool is_long(const ToolResult& result);
  /// Bytes that a result holds, about.
  static std::size_t size_of(const ToolResult& result);

  /// What the response is made of. `tool`: whose output schema the result must follow, or null.
  /// `results` outlives the worker.
  struct Source {
    ToolResult result;
    const CompiledTool* tool;
    const ResultWriter* results;
    RequestId id;
    const Revision* revision;
    std::string meta;
  };

  /// Gives the worker its job, in the turn of `client`. `loop` outlives `workers`, and they this.
  /// `done` runs on a later turn of the loop, though this may be gone by then.
  LongResult(Source source, WorkerPool& workers, std::string client, Executor& loop,
             MemoryHold memory, Executor::Task done);
  ~LongResult();
  LongResult(const LongResult&) = delete;
  LongResult& operator=(const LongResult&) = delete;

  // When it is done.

  /// The response, or the Error that is to be one.
  [[nodiscard]] Result<std::string>& response();
  [[nodiscard]] const ToolResult& result() const;

 private:
  struct Work;

  std::shared_ptr<Work> work_;
  WorkerPool* workers_;
  std::string client_;
  WorkerPool::JobId job_;
  MemoryHold memory_;  // of the result
};

}  // namespace sluice
