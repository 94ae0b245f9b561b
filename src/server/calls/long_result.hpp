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

/// A long result of a tool. A worker checks it and writes the response, because doing so on the
/// loop would delay others noticeably. Belongs to its loop. The destructor drops the job if the
/// worker has not started it.
class LongResult {
 public:
  /// A result with more bytes of text is long.
  static constexpr std::size_t kLong = std::size_t{64} << 10U;

  static bool is_long(const ToolResult& result);
  /// The approximate memory of a result, in bytes.
  static std::size_t size_of(const ToolResult& result);

  /// What the response is made from. `tool` has the output schema that the result must follow; it
  /// may be null. `results` must outlive the worker.
  struct Source {
    ToolResult result;
    const CompiledTool* tool;
    const ResultWriter* results;
    RequestId id;
    const Revision* revision;
    std::string meta;
  };

  /// Queues the job for `client`. `loop` must outlive `workers`, and `workers` must outlive this
  /// object. Unless the job is dropped, `done` runs in a later turn of the loop, even if this
  /// object has been destroyed by then.
  LongResult(Source source, WorkerPool& workers, std::string client, Executor& loop,
             MemoryHold memory, Executor::Task done);
  ~LongResult();
  LongResult(const LongResult&) = delete;
  LongResult& operator=(const LongResult&) = delete;

  // Call these only once `done` has been called.

  /// The response, or the Error to answer with.
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
