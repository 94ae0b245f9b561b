#include "server/calls/long_result.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "json/json.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

/// How many parts of a value are examined to estimate its memory.
constexpr std::size_t kLookedAt = 10'000;

/// Returns the approximate memory of `value`, in bytes. Parts that are not examined count as the
/// average of the others.
std::size_t memory_of(const json::value& value) {
  std::size_t bytes = 0;
  std::size_t seen = 0;
  std::size_t unseen = 0;
  std::vector<const json::value*> left = {&value};
  while (!left.empty() && seen < kLookedAt) {
    const json::value& next = *left.back();
    left.pop_back();
    ++seen;
    bytes += sizeof next;
    if (const json::string* const text = next.if_string()) {
      bytes += text->size();
    } else if (const json::array* const array = next.if_array()) {
      const std::size_t taken = std::min(array->size(), kLookedAt);
      for (std::size_t i = 0; i < taken; ++i) left.push_back(&(*array)[i]);
      unseen += array->size() - taken;
    } else if (const json::object* const object = next.if_object()) {
      const std::size_t taken = std::min(object->size(), kLookedAt);
      for (std::size_t i = 0; i < taken; ++i) {
        const auto& [key, member] = object->begin()[i];
        bytes += key.size();
        left.push_back(&member);
      }
      unseen += object->size() - taken;
    }
  }
  return bytes + bytes / seen * (unseen + left.size());
}

std::size_t text_size(const ToolResult& result) {
  std::size_t bytes = result.text.size() + result.structured_text.size();
  for (const Content& block : result.content) bytes += block.size();
  for (const auto& [name, value] : result.meta) bytes += name.size() + memory_of(value);
  return bytes;
}

}  // namespace

bool LongResult::is_long(const ToolResult& result) {
  return text_size(result) > kLong ||
         (result.value != nullptr && is_longer_than(*result.value, kLong));
}

std::size_t LongResult::size_of(const ToolResult& result) {
  return text_size(result) + (result.value == nullptr ? 0 : memory_of(*result.value));
}

struct LongResult::Work {
  Work(Write its_write, Executor::Task its_done)
      : write(std::move(its_write)), done(std::move(its_done)) {}

  void run() noexcept {
    try {
      response = write();
    } catch (...) {
      static LogLimit limit;
      log_exception(limit, "A result could not be written");
    }
    // Freeing it takes long too, so the worker does that.
    write = {};
  }

  Write write;
  Executor::Task done;
  /// Made before there may be no memory for it.
  Result<std::string> response =
      fail(kBusy, "The server could not write this result, perhaps for lack of memory; try again");
};

LongResult::LongResult(Write write, WorkerPool& workers, std::string client, Executor& loop,
                       MemoryHold memory, Executor::Task done)
    : work_(std::make_shared<Work>(std::move(write), std::move(done))),
      workers_(&workers),
      client_(std::move(client)),
      job_(workers.new_id()),
      memory_(std::move(memory)) {
  const auto job = [work = work_, &loop] {
    work->run();
    loop.post([work] { work->done(); });
  };
  // Without a worker the error is the answer.
  workers.run(job_, client_, job, [work = work_, &loop] { loop.post([work] { work->done(); }); });
}

LongResult::~LongResult() {
  workers_->drop(job_, client_);
}

Result<std::string>& LongResult::response() {
  return work_->response;
}

}  // namespace sluice
