#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/executor.hpp"
#include "engine/engine.hpp"
#include "engine/rkllm/prompt_cache/prompt_cache_folder.hpp"

namespace sluice::rkllm {

/// A PromptCacheFolder for the loop of an engine, which does not wait for files. What it is asked
/// is done in order, on another thread.
class PromptCaches {
 public:
  /// Does a task later, after those before it; or destroys it, when the engine ends.
  using Post = std::function<void(Executor::Task)>;

  /// `files`: on a thread that may wait, one at a time; such tasks are not done after this has
  /// ended. `loop`: on the engine's loop.
  PromptCaches(PromptCacheFolder folder, Post files, Post loop);
  PromptCaches(const PromptCaches&) = delete;
  PromptCaches& operator=(const PromptCaches&) = delete;

  /// Those of PromptCacheFolder. `then` is called on the loop, not from within this.
  void plan(CachedPrompt prompt, std::function<void(CachePlan)> then);
  void keep(CachePlan::Save save, std::uint32_t tokens);
  void discard(CachePlan::Save save, bool has_died);
  void forget(std::string name, std::string why);

  /// Whether a prompt of so many bytes, of which the runtime has `live` in its memory, is worth
  /// asking for.
  [[nodiscard]] bool is_worth(std::size_t bytes, std::size_t live) const {
    return bytes >= live + least_prompt_;
  }
  /// Counts a prompt that was worth asking for, and whether a cache was loaded. Thread-safe, as is
  /// the next.
  void count(bool was_loaded) { ++(was_loaded ? hits_ : misses_); }
  [[nodiscard]] PromptCacheStats stats() const {
    return {.hits = hits_, .misses = misses_, .bytes = bytes_};
  }

 private:
  /// Does `work` with the folder.
  template <class Work>
  void post(Work work);

  PromptCacheFolder folder_;  // of the thread of `files_`
  const Post files_;
  const Post loop_;
  const std::size_t least_prompt_;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> misses_ = 0;
  std::atomic<std::uint64_t> bytes_;
};

}  // namespace sluice::rkllm
