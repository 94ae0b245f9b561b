#include "engine/rkllm/prompt_cache/prompt_caches.hpp"

namespace sluice::rkllm {

PromptCaches::PromptCaches(PromptCacheFolder folder, Post files, Post loop)
    : folder_(std::move(folder)),
      files_(std::move(files)),
      loop_(std::move(loop)),
      least_prompt_(folder_.limits().least_prompt),
      bytes_(folder_.bytes()) {}

template <class Work>
void PromptCaches::post(Work work) {
  files_([this, work = std::move(work)]() mutable {
    work(folder_);
    bytes_ = folder_.bytes();
  });
}

void PromptCaches::plan(CachedPrompt prompt, std::function<void(CachePlan)> then) {
  post([this, prompt = std::move(prompt),
        then = std::move(then)](PromptCacheFolder& folder) mutable {
    loop_(
        [plan = folder.plan(prompt), then = std::move(then)]() mutable { then(std::move(plan)); });
  });
}

void PromptCaches::keep(CachePlan::Save save, std::uint32_t tokens) {
  post([save = std::move(save), tokens](PromptCacheFolder& folder) { folder.keep(save, tokens); });
}

void PromptCaches::discard(CachePlan::Save save, bool has_died) {
  post([save = std::move(save), has_died](PromptCacheFolder& folder) {
    folder.discard(save, has_died);
  });
}

void PromptCaches::forget(std::string name, std::string why) {
  post([name = std::move(name), why = std::move(why)](PromptCacheFolder& folder) {
    folder.forget(name, why);
  });
}

}  // namespace sluice::rkllm
