#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <variant>

#include "engine/rkllm/prompt_cache/prompt_caches.hpp"
#include "engine/rkllm/rkllm_slot.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "sluice/schema.hpp"

namespace sluice::rkllm {
namespace {

/// A file as it is now, without reading it.
std::string describe_file(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return std::to_string(status.st_size) + " " + std::to_string(status.st_ino) + " " +
         std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
}

/// The tokens of a prompt, from what rkllm_get_kv_cache_size() has said after its run; 0: nobody
/// knows.
std::uint32_t prompt_tokens(const Result<json::object>& answer, std::int32_t generated) {
  const auto result = decode<Returned>(answer ? json::value(*answer) : json::value(), "result");
  if (!result || !result->kv_cache_sizes || result->kv_cache_sizes->empty()) return 0;
  const std::int32_t all = result->kv_cache_sizes->front();
  return generated < 0 || all <= generated ? 0 : static_cast<std::uint32_t>(all - generated);
}

}  // namespace

std::string RkllmSlot::describe_model() const {
  return to_json(json::value(json::array{
      describe_file(options_->model_path), describe_file(library_->path), library_->version,
      library_->abi == nullptr ? std::string_view() : library_->abi->name,
      options_->chat_template != nullptr, options_->context_tokens, options_->cross_attention}));
}

bool RkllmSlot::has_memory() const {
  return library_->abi == nullptr || library_->abi->has_history;
}

std::size_t RkllmSlot::live_bytes(std::string_view prompt) const {
  const std::string_view live = has_memory() ? live_ : std::string_view();
  return static_cast<std::size_t>(std::ranges::mismatch(live, prompt).in1 - live.begin());
}

bool RkllmSlot::may_use_caches() const {
  const auto* const prompt = std::get_if<std::string>(&run_->input.input);
  return caches_ != nullptr && prompt != nullptr && caches_->is_worth(prompt->size(), 0) &&
         !run_->cache_owner.empty() && !run_->choice && run_->params.mode == InferMode::generate &&
         run_->params.lora_adapter_name.empty() && run_->params.prompt_cache_path.empty() &&
         !run_->params.keep_history && !assets_->shapes_prompts();
}

void RkllmSlot::plan_caches() {
  const RunInput& input = run_->input;
  const std::string& prompt = std::get<std::string>(input.input);
  const bool has_own_template = library_->abi == nullptr || library_->abi->has_chat_template;
  caches_->plan(
      {.model = model_ + (input.enable_thinking ? " thinks " : " ") + input.role,
       .owner = run_->cache_owner,
       .text = prompt,
       .is_closed = options_->chat_template == nullptr && has_own_template,
       .live = live_bytes(prompt)},
      [this, run = run_number_](CachePlan plan) { on_caches_planned(run, std::move(plan)); });
}

void RkllmSlot::on_caches_planned(std::uint64_t run, CachePlan plan) {
  const bool is_current = phase_ == Phase::running && run == run_number_;
  if (!is_current || run_ == nullptr) {
    if (plan.save) caches_->discard(*std::move(plan.save), false);
    if (is_current) settle();
    return;
  }
  plan_ = std::move(plan);
  if (!plan_.load) return on_cache_loaded(false);
  set_timer(options_->load_timeout, &RkllmSlot::on_cache_late);
  process_->ask(method::kLoadPromptCache,
                encode(PathParams{.prompt_cache_path = plan_.load->path}).get_object(),
                [this](const Result<json::object>& answer) {
                  cancel_timer();
                  const bool is_loaded = returned_by(answer) == 0;
                  if (!is_loaded) {
                    caches_->forget(std::move(plan_.load->name), "the runtime does not take it");
                    plan_.load = std::nullopt;
                  }
                  on_cache_loaded(is_loaded);
                });
}

void RkllmSlot::on_cache_loaded(bool is_loaded) {
  if (run_ == nullptr) return end_caches(false);
  const std::string& prompt = std::get<std::string>(run_->input.input);
  if (is_loaded) {
    run_->cached_tokens += plan_.load->tokens;
    run_->prompt_tokens += plan_.load->tokens;
  }
  if (is_loaded || caches_->is_worth(prompt.size(), live_bytes(prompt))) {
    caches_->count(is_loaded);
  }
  ask_to_run();
}

void RkllmSlot::end_caches(bool is_good) {
  if (!plan_.load) return end_save(is_good);
  set_timer(options_->load_timeout, &RkllmSlot::on_cache_late);
  process_->ask(method::kReleasePromptCache, {},
                [this, is_good](const Result<json::object>& answer) {
                  if (returned_by(answer) != 0) {
                    // The next prompt would be taken for another one.
                    return give_up("it does not release a prompt cache");
                  }
                  plan_.load = std::nullopt;
                  end_save(is_good);
                });
}

void RkllmSlot::end_save(bool is_good) {
  if (!plan_.save) return settle();
  if (!is_good) {
    caches_->discard(*std::exchange(plan_.save, std::nullopt), false);
    return settle();
  }
  set_timer(options_->load_timeout, &RkllmSlot::on_cache_late);
  process_->ask(method::kGetKvCacheSize, {}, [this](const Result<json::object>& answer) {
    caches_->keep(*std::exchange(plan_.save, std::nullopt), prompt_tokens(answer, generated_));
    settle();
  });
}

void RkllmSlot::lose_caches() {
  const CachePlan plan = std::exchange(plan_, {});
  live_.clear();
  if (plan.load) caches_->forget(plan.load->name, "the process of the model has died with it");
  // A process that was killed for an answer that nobody wants has not died of its save.
  if (plan.save) caches_->discard(*plan.save, run_ != nullptr);
}

void RkllmSlot::on_cache_late() {
  give_up("it takes too long with a prompt cache");
}

}  // namespace sluice::rkllm
