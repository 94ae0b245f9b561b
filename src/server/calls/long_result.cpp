#include "server/calls/long_result.hpp"

#include <new>
#include <optional>
#include <utility>

#include "json/json.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

std::size_t memory_of(const json::value& value) {
  std::size_t bytes = sizeof value;
  if (const json::string* text = value.if_string()) {
    bytes += text->size();
  } else if (const json::array* array = value.if_array()) {
    for (const json::value& each : *array) bytes += memory_of(each);
  } else if (const json::object* object = value.if_object()) {
    for (const auto& [key, member] : *object) bytes += key.size() + memory_of(member);
  }
  return bytes;
}

}  // namespace

bool LongResult::is_long(const ToolResult& result) {
  return result.text.size() + result.structured.size() > kLong ||
         (result.value != nullptr && is_longer_than(*result.value, kLong));
}

std::size_t LongResult::size_of(const ToolResult& result) {
  return result.text.size() + result.structured.size() +
         (result.value == nullptr ? 0 : memory_of(*result.value));
}

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
      source.results->append_tool_result(text, source.id, *source.revision, source.result,
                                         source.meta);
      // Freeing it takes long too, so the worker does that.
      source.result.value = nullptr;
      response = std::move(text);
    } catch (const std::bad_alloc&) {
      response = fail(kBusy, "The server has no memory for this result; try it again");
    }
  }

  Source source;
  std::optional<CompiledTool> tool;  // a copy: the catalog belongs to the loop
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
