#include "server/calls/long_result.hpp"

#include <new>
#include <optional>
#include <utility>

#include "sluice/error.hpp"

namespace sluice {

struct LongResult::Work {
  explicit Work(Source its_source) : source(std::move(its_source)) {
    if (source.tool != nullptr) tool = *source.tool;
  }

  void write() noexcept {
    try {
      if (tool) {
        if (Result<void> fits = tool->check(source.result); !fits) {
          response = std::unexpected(std::move(fits.error()));
          return;
        }
      }
      std::string text;
      text.reserve(2 * size_of(source.result));
      source.results->append_tool_result(text, source.id, *source.revision, source.result,
                                         source.meta);
      response = std::move(text);
    } catch (const std::bad_alloc&) {
      response = fail(kBusy, "The server has no memory for this result; try it again");
    }
  }

  Source source;
  std::optional<CompiledTool> tool;  // its own: the offer that it is of belongs to the loop
  Result<std::string> response;
};

LongResult::LongResult(Source source, WorkerPool& workers, std::string client, Executor& loop,
                       MemoryHold memory, Executor::Task done)
    : work_(std::make_shared<Work>(std::move(source))),
      workers_(&workers),
      client_(std::move(client)),
      job_(workers.new_id()),
      memory_(std::move(memory)) {
  workers.run(job_, client_, [work = work_, &loop, done = std::move(done)]() mutable {
    work->write();
    loop.post([work, done = std::move(done)]() mutable { done(); });
  });
}

LongResult::~LongResult() {
  workers_->drop(job_, client_);
}

Result<std::string>& LongResult::response() {
  return work_->response;
}

const ToolResult& LongResult::result() const {
  return work_->source.result;
}

}  // namespace sluice
